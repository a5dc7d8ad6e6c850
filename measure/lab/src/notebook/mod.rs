//! The notebook: what the cases' latest results show, and what they do not.
//!
//! Input: the lines that trials left ([`crate::trial::record`]), of a whole trial or of a part of one. Output: one
//! document, as Markdown and as one HTML file. [`judge`] decides what counts as a difference; nothing else does.

mod answer;
mod document;
mod equal;
mod gains;
pub mod judge;
mod results;
mod section;
mod sliced;
mod tables;

use std::fs;

use anyhow::{Context, Result, ensure};

pub use document::document;
pub use results::Results;

use crate::case::builtin::CASES;
use crate::cli::ReportOptions;
use crate::trial::record::directory;

/// `report`: writes notebook and page.
pub fn report(options: &ReportOptions) -> Result<()> {
    let dir = directory(&options.out);
    let names = if options.cases.is_empty() { measured(options)? } else { options.cases.clone() };
    let mut all = Vec::new();
    for name in &names {
        let path = dir.join(format!("{name}.jsonl"));
        let results = Results::latest(&path).with_context(|| format!("cannot read the results of {name}"))?;
        all.extend(results);
    }
    ensure!(!all.is_empty(), "{} has no results yet: run `seawall lab run --all`", dir.display());
    let document = document(&all);
    let written = [
        (&options.notebook, seawall_page::markdown(&document)),
        (&options.html, seawall_page::html(&document)),
    ];
    for (path, text) in written {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(path, from_here(text)).with_context(|| format!("cannot write {}", path.display()))?;
        outln!("{}", path.display());
    }
    if let Some(page) = &options.readme {
        let now = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        fs::write(page, gains::rewrite(&now, &all)?)
            .with_context(|| format!("cannot write {}", page.display()))?;
        outln!("{}", page.display());
    }
    Ok(())
}

/// Paths below the directory in which the report is made are named from there: its pages go to other machines.
fn from_here(text: String) -> String {
    match std::env::current_dir() {
        Ok(here) => text.replace(&format!("{}/", here.display()), ""),
        Err(_) => text,
    }
}

/// Cases that have results: those of the program first, in their order.
fn measured(options: &ReportOptions) -> Result<Vec<String>> {
    let dir = directory(&options.out);
    let mut found: Vec<String> = fs::read_dir(&dir)
        .with_context(|| format!("cannot read {} (was nothing measured yet?)", dir.display()))?
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    let place = |name: &String| CASES.iter().position(|(known, _)| known == name).unwrap_or(CASES.len());
    found.sort_by_key(|name| (place(name), name.clone()));
    Ok(found)
}
