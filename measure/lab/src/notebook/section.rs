//! One case's section: the question, what was found, how equal the work was, where things lay, what others found.

use seawall_page::chart::{Chart, Spread as SpreadChart};
use seawall_page::scale::{bytes, digits};
use seawall_page::{Block, Note, Section, Table, Weight};

use super::judge::{judge, noise};
use super::sliced::sliced;
use super::{Results, answer, equal};
use crate::case::{Configuration, Measure, Role};
use crate::spread::Spread;
use crate::table::{short, thousands};
use crate::verdict::{ROUNDS, Verdict};

/// Others' use of the CPUs above which figures are called disturbed, percent.
const DISTURBED: f64 = 15.0;

/// The section.
pub fn section(results: &Results) -> Section {
    let mut section = Section::new(&results.case.title);
    section.words(results.case.question.clone());
    section.blocks.push(Block::Facts(facts(results)));
    section.blocks.extend(warnings(results).into_iter().map(Block::Note));
    match sliced(results) {
        Some(sliced) => {
            section.blocks.push(Block::Note(sliced.finding()));
            section.table(sliced.table());
            section.chart(sliced.chart());
        }
        None => section.blocks.push(Block::Note(findings(results))),
    }
    section.table(figures(results));
    section.chart(results.case.slices.is_none().then(|| chart(results)).flatten());
    section.table(others(results));
    section.table(waits(results));
    section.table(work(results));
    section.table(places(results));
    section.table(not_possible(results));
    source(results, &mut section);
    section
}

fn facts(results: &Results) -> Vec<(String, String)> {
    let run = &results.run;
    let others = results.others_cpu().map_or_else(String::new, |s| {
        format!("; others used {:.0} % of the CPUs before turns (at most {:.0} %)", s.median, s.max)
    });
    let turn = match &results.case.crash {
        None => format!("{} s of load a turn", run.seconds),
        Some(crash) if crash.power_cut => format!(
            "every process is killed after {} commits, and all that is in memory dropped: as a power cut would",
            crash.after_commits
        ),
        Some(crash) => {
            format!("every process of the database is killed after {} commits", crash.after_commits)
        }
    };
    let settings: Vec<String> = results.case.settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let mut facts = vec![
        ("load".to_owned(), results.case.load().in_words()),
        (
            "order".to_owned(),
            sliced(results).map_or_else(
                || {
                    format!(
                        "{} rounds, configurations taking turns, database restarted for every turn; {turn}",
                        run.rounds
                    )
                },
                |sliced| sliced.order(run.rounds, run.seconds),
            ),
        ),
        ("when".to_owned(), format!("{}{others}", run.at)),
    ];
    if !settings.is_empty() {
        facts.push(("settings on all sides".to_owned(), settings.join(" ")));
    }
    facts.extend(stand_ins(results).map(|what| ("devices".to_owned(), what)));
    facts.extend(killed(results).map(|found| ("after a kill".to_owned(), found)));
    if let Some(noise) = noise(results, results.case.judged()) {
        let words = format!(
            "equal configurations differed by up to {:.1} % within a round ({})",
            (noise - 1.0) * 100.0,
            results.case.judged().title()
        );
        facts.push(("noise".to_owned(), words));
    }
    facts
}

/// What stood in for disks.
fn stand_ins(results: &Results) -> Option<String> {
    let rate = *results.case.devices.as_ref()?.writes_per_second.get_ref();
    let data = results.last(&results.case.baseline().name)?.placement.get("data")?;
    data.in_words().contains("loop").then(|| {
        format!(
            "no disks of their own, but stand-ins: loop devices over files of one disk, each of which the kernel holds to {} \
             writes a second under load",
            thousands(rate as f64)
        )
    })
}

/// What was found where servers were killed under load.
fn killed(results: &Results) -> Option<String> {
    let turns = results.configurations.iter().flat_map(|c| results.turns(&c.name));
    let found: Vec<_> = turns.filter_map(|turn| turn.killed).collect();
    let (acknowledged, missing) =
        found.iter().fold((0, 0), |(a, m), killed| (a + killed.acknowledged, m + killed.missing));
    (!found.is_empty()).then(|| {
        format!(
            "consistency conditions held after every run, and on all {} sides after every process was killed under load; \
             of {} acknowledged orders and payments {missing} were missing then",
            found.len(),
            thousands(acknowledged as f64)
        )
    })
}

fn warnings(results: &Results) -> Vec<Note> {
    let warn =
        |title: &str, line: String| Note { weight: Weight::Warn, title: title.into(), lines: vec![line] };
    let mut notes = Vec::new();
    if results.run.quick {
        notes.push(warn(
            "A quick look",
            "Turns of two seconds show that everything runs, and no speed.".into(),
        ));
    }
    if results.run.rounds < ROUNDS {
        notes.push(warn(
            "No result",
            format!("{} of at least {ROUNDS} rounds: single runs show nothing.", results.run.rounds),
        ));
    }
    if let Some(why) = &results.unfinished {
        notes.push(warn("A part of a trial", format!("It did not run to its end: {why}")));
    }
    if let Some(others) = results.others_cpu().filter(|s| s.median > DISTURBED) {
        let line = format!(
            "Others used {:.0} % of the CPUs just before turns: these figures are noise in part.",
            others.median
        );
        notes.push(warn("The machine was not idle", line));
    }
    let mut said: Vec<String> = equal::differences(results);
    for c in &results.configurations {
        for note in results.turns(&c.name).flat_map(|t| t.notes.iter().map(|n| format!("{}: {n}", c.title))) {
            if !said.contains(&note) {
                said.push(note);
            }
        }
    }
    if !said.is_empty() {
        notes.push(Note { weight: Weight::Warn, title: "To be known".into(), lines: said });
    }
    notes
}

fn findings(results: &Results) -> Note {
    let judged = answer::candidates(results);
    let weight = if judged.iter().any(|(v, _)| v.is_shown()) { Weight::Good } else { Weight::Info };
    let mut lines: Vec<String> = judged.into_iter().map(|(_, line)| line).collect();
    lines.extend(answer::cores(results));
    Note { weight, title: "What was found".into(), lines }
}

/// `median (lowest–highest)`.
fn cell(spread: Option<Spread>) -> String {
    let word = |v: f64| if v >= 1000.0 { thousands(v) } else { digits(v) };
    match spread {
        None => "–".into(),
        Some(s) if s.min == s.max => word(s.median),
        Some(s) => s.told(word),
    }
}

fn role(c: &Configuration) -> &'static str {
    match c.role {
        Role::Bound => " (not an equivalent)",
        Role::Control if c.again_of.is_none() => " (control)",
        _ => "",
    }
}

fn figures(results: &Results) -> Table {
    let judged = results.case.judged();
    let share = format!("{}, % of DB time", results.case.sped_up);
    let head =
        ["configuration", "<durability", judged.title(), "of the baseline", "<verdict", share.as_str()];
    let mut table = Table::new("What was measured: median of the rounds (lowest–highest)", &head);
    for c in &results.configurations {
        let found = judge(results, &c.name);
        let ratio = match found.verdict {
            Verdict::Baseline => "1".to_owned(),
            _ => found.ratio.map_or("–".into(), |r| r.told(short)),
        };
        let share = results.share(&c.name, &results.case.sped_up);
        table.row([
            format!("{}{}", c.title, role(c)),
            results.last(&c.name).map_or("", |t| t.durability.as_str()).to_owned(),
            cell(results.spread(&c.name, judged)),
            ratio,
            found.verdict.in_words(),
            share.map_or("–".into(), |s| format!("{s:.0}")),
        ]);
    }
    table
}

fn others(results: &Results) -> Table {
    let measures = &shown(results)[1..];
    if measures.is_empty() {
        return Table::default();
    }
    let mut head = vec!["configuration"];
    head.extend(measures.iter().map(|m| m.title()));
    let mut table = Table::new("Other measures, not judged", &head);
    for c in &results.configurations {
        let cells = measures.iter().map(|m| cell(results.spread(&c.name, *m)));
        table.row(std::iter::once(c.title.clone()).chain(cells));
    }
    table
}

/// The measures that anything was found of.
fn shown(results: &Results) -> Vec<Measure> {
    let all = results.case.measures.get_ref();
    let found = |m: &&Measure| results.configurations.iter().any(|c| results.spread(&c.name, **m).is_some());
    let (first, rest) = (all[0], all[1..].iter().filter(found).copied());
    std::iter::once(first).chain(rest).collect()
}

fn chart(results: &Results) -> Option<Chart> {
    let measure = results.case.judged();
    let rows = results.configurations.iter().map(|c| {
        let values: Vec<f64> = results.values(&c.name, measure).into_values().collect();
        (c.name.clone(), values)
    });
    let rows: Vec<_> = rows.filter(|(_, values)| !values.is_empty()).collect();
    let chart = SpreadChart { title: "Every turn".into(), unit: measure.title().into(), rows };
    (!chart.rows.is_empty()).then_some(Chart::Spread(chart))
}

fn waits(results: &Results) -> Table {
    let mut names: Vec<String> = Vec::new();
    for turn in results.configurations.iter().flat_map(|c| results.turns(&c.name)) {
        for (name, share) in &turn.time.shares {
            if *share >= 1.0 && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for name in names {
        let shares: Vec<Option<f64>> =
            results.configurations.iter().map(|c| results.share(&c.name, &name)).collect();
        let most = shares.iter().flatten().copied().fold(0.0, f64::max);
        let cells = shares.iter().map(|s| s.map_or("–".into(), |s| format!("{s:.0}")));
        rows.push((most, std::iter::once(name.clone()).chain(cells).collect()));
    }
    rows.retain(|(most, _)| *most >= 1.0);
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut head = vec!["wait"];
    head.extend(results.configurations.iter().map(|c| c.name.as_str()));
    let mut table = Table::new("Where DB time went, percent (sessions looked at ten times a second)", &head);
    rows.into_iter().for_each(|(_, row)| table.row(row));
    table
}

fn work(results: &Results) -> Table {
    let head = [
        "configuration",
        "commits",
        "rows changed",
        "rows a commit",
        "redo",
        "redo a commit",
        "page images a commit",
    ];
    let mut table = Table::new("The work, all turns together", &head);
    for c in &results.configurations {
        let w = equal::work(results, &c.name);
        let each = |of: f64| if w.commits > 0.0 { of / w.commits } else { 0.0 };
        table.row([
            c.title.clone(),
            thousands(w.commits),
            thousands(w.rows),
            format!("{:.2}", each(w.rows)),
            bytes(w.wal_bytes),
            bytes(each(w.wal_bytes)),
            format!("{:.2}", each(w.wal_images)),
        ]);
    }
    table
}

fn places(results: &Results) -> Table {
    let mut table = Table::new(
        "Where things lay, as the kernel says",
        &["configuration", "<data", "<redo", "<Seawall's log", "<its medium"],
    );
    for c in &results.configurations {
        let Some(turn) = results.last(&c.name) else { continue };
        let place = |what: &str| turn.placement.get(what).map_or("–".to_owned(), |p| p.in_words());
        // In one word: what it survives stands over everything.
        let medium = turn.medium.as_deref().and_then(|m| m.split(' ').next()).unwrap_or("–").to_owned();
        table.row([c.title.clone(), place("data"), place("log"), place("pool"), medium]);
    }
    table
}

fn not_possible(results: &Results) -> Table {
    let mut table = Table::new("Not possible on this machine", &["configuration", "<<why"]);
    for (c, why) in &results.not_possible {
        table.row([c.title.clone(), why.lines().next().unwrap_or_default().to_owned()]);
    }
    table
}

fn source(results: &Results, section: &mut Section) {
    let Some(source) = &results.case.source else { return };
    let heads: Vec<String> = source
        .columns
        .iter()
        .enumerate()
        .map(|(i, c)| if i == 0 { c.clone() } else { format!("<{c}") })
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("What the source says", &heads);
    source.rows.iter().for_each(|row| table.row(row.clone()));
    section.words(format!("{}.", source.study));
    section.table(table);
    section.words(format!("What its figures show: {}", source.shows));
    section.words(format!("Why ours differ: {}", source.differs));
}
