//! One case's section: the question, what was found, how equal the work was, where things lay, what others found.

use seawall_page::{Block, Note, Section, Table, Weight};

use super::judge::noise;
use super::sliced::sliced;
use super::tables::{chart, figures, not_possible, others, places, waits, work};
use super::{Results, answer, equal};
use crate::table::thousands;
use crate::verdict::ROUNDS;

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
    if let Some(ms) = &results.case.flush_ms {
        let what = format!("the data's disk takes {} ms over each flush: a stand-in in memory", ms.get_ref());
        facts.push(("disk".to_owned(), what));
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
