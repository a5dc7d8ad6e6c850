//! The report of one period, in the order of AWR's sections.
//!
//! Input: a [`Period`] and the findings on it. Output: a document, which becomes text or HTML. Nothing is
//! computed here that is not in the period but shares and rates.

mod advice;
mod block_cache;
mod charts;
mod database;
mod header;
mod instance;
mod keepers;
mod machine;
mod seawall;
pub(crate) mod words;

pub(crate) use block_cache::means as cache_means;
pub(crate) use database::sampling_error;
pub(crate) use header::{facts as header_facts, short_version};
use seawall_page::{Block, Document, Note, Section, Weight};

use crate::findings::{self, Finding};
use crate::period::Period;

/// The whole report.
pub fn document(period: &Period) -> Document {
    let mut document = header::document(period);
    document.sections = vec![
        findings(&findings::findings(period)),
        instance::caches(period),
        database::load_profile(period),
        database::efficiency(period),
        database::events(period),
        machine::cpu(period),
        instance::time_model(period),
        machine::statistics(period),
        machine::disks(period),
        instance::wait_classes(period),
        database::background(period),
        seawall::part(period),
        keepers::part(period),
        block_cache::part(period),
        database::statements(period),
        instance::io(period),
        seawall::files(period),
        advice::advisories(period),
        instance::segments(period),
        instance::activity(period),
        settings(period),
        limits(period),
    ];
    document
}

pub(crate) fn findings(found: &[Finding]) -> Section {
    let mut section = Section::new("Findings");
    section.words(
        "What limits this database now, largest share of DB time first. A benefit is an upper bound: it \
                   holds if the waits it names vanish and nothing else gets slower.",
    );
    if found.is_empty() {
        section.words("Nothing was found; the captured data says little about this database's waits.");
    }
    section.blocks.extend(found.iter().map(|finding| Block::Note(finding.note())));
    section
}

fn settings(period: &Period) -> Section {
    let mut section = Section::new("Settings");
    let shown = period.settings.iter().filter(|(name, _)| words::is_telling(name));
    let pairs: Vec<_> = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !pairs.is_empty() {
        section.words(format!(
            "Those that matter for I/O and memory; all {} are in the JSON output.",
            period.settings.len()
        ));
        section.blocks.push(Block::Facts(pairs));
    }
    section
}

fn limits(period: &Period) -> Section {
    let mut section = Section::new("What limits this report");
    if !period.warnings.is_empty() {
        let title = "Read the figures above with this in mind".into();
        section.blocks.push(Block::Note(Note {
            weight: Weight::Warn,
            title,
            lines: period.warnings.clone(),
        }));
    }
    section
}
