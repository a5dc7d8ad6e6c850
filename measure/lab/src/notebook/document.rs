//! All cases in one document.

use seawall_page::{Document, Section};

use super::Results;
use super::section::section;

/// The document.
pub fn document(all: &[Results]) -> Document {
    let mut sections = vec![rules()];
    sections.extend(all.iter().map(section));
    Document {
        brand: "Seawall · lab".into(),
        title: format!("Lab notebook: {}", databases(all)),
        medium: media(all),
        facts: facts(all),
        sections,
    }
}

/// Every medium that a log lay on.
fn media(all: &[Results]) -> Option<String> {
    let mut media: Vec<&str> = Vec::new();
    for turn in all.iter().flat_map(|r| r.configurations.iter().flat_map(|c| r.turns(&c.name))) {
        if let Some(medium) = turn.medium.as_deref().filter(|m| !media.contains(m)) {
            media.push(medium);
        }
    }
    (!media.is_empty()).then(|| media.join("; "))
}

/// What was measured: `PostgreSQL`, or several.
fn databases(all: &[Results]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all.iter().flat_map(|r| r.run.versions.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.join(", ")
}

fn facts(all: &[Results]) -> Vec<(String, String)> {
    let Some(run) = all.iter().map(|r| &r.run).next_back() else { return Vec::new() };
    let m = &run.machine;
    let mut versions: Vec<String> = Vec::new();
    for (name, version) in all.iter().flat_map(|r| &r.run.versions) {
        let said = format!("{name} {version}");
        if !versions.contains(&said) {
            versions.push(said);
        }
    }
    vec![
        (
            "machine".into(),
            format!("{} CPUs, {}, {} MB, Linux {}, {}", m.cpus, m.cpu, m.memory_mb, m.kernel, m.system),
        ),
        ("idle processors".into(), m.idle.clone()),
        ("data on".into(), m.filesystem.clone()),
        ("versions".into(), versions.join(", ")),
        (
            "made by".into(),
            "seawall lab report, from the lines that seawall lab run left; do not edit".into(),
        ),
    ]
}

fn rules() -> Section {
    let mut section = Section::new("How to read it");
    section.words(
        "Figures are of this machine, on this day. Configurations take turns in every round, each round begins with another \
         one, and the database is restarted for every turn. The baseline is measured twice in each round, under two names: \
         what the two differ by is noise. A machine is faster in one round than in another, so ratios are formed within a round, \
         to the mean of the baseline's turns there. A difference counts as shown only after three rounds, if it was larger in \
         each of them than that noise in any; otherwise the verdict is “no difference shown”.",
    );
    section.words(
        "Durability stands in every row. “Emulated” is a log in RAM: it survives a crash of the database and not one of the \
         machine, and stands for persistent memory, whose writes take a few hundred nanoseconds more.",
    );
    section
}
