//! `bench`: every figure as a ratio against named baselines, all sides interleaved in one run.
//!
//! Output: `bench.json` (its keys: docs/measure/BENCHMARKS.md) and tables. Figures are medians over rounds, with
//! `_min` and `_max` beside them. Nothing is asserted about speed here: it is printed.

mod block;
mod block_sustained;
mod cache;
mod disk;
mod fields;
mod first_write;
mod frozen;
#[cfg(test)]
mod keys;
mod late;
mod measure;
mod mount;
mod parts;
mod placed;
mod reopen;
mod replicated;
mod runs;
mod scope;
mod spill;
mod start;
mod sustained;
mod twin;
mod virtual_disk;
mod write;

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::BenchOptions;
use crate::lab::Lab;
use crate::machine::Machine;
use crate::progress::Progress;
use fields::Fields;
pub use measure::word;
use parts::{PARTS, Part};
use scope::{Scope, SectionResult};

/// Everything measured, as written to `bench.json`.
#[derive(Serialize)]
struct Results {
    /// The pool's medium, as `seawall status` names it: it belongs to every `seawall_*` figure.
    medium: String,
    machine: Machine,
    /// Size of the pool by section.
    pool_mb: Fields,
    quick: bool,
    /// How often each section's figures were measured.
    rounds: Fields,
    /// Rows by section; one that was not measured has none.
    #[serde(flatten)]
    sections: Fields<Vec<Fields>>,
}

/// Runs the chosen sections.
pub fn run(options: &BenchOptions) -> Result<()> {
    let chosen = |part: &Part| options.only.is_empty() || options.only.contains(&part.section);
    let scope = |part: &Part| Scope {
        quick: options.quick,
        rounds: options.rounds.unwrap_or(if options.quick { 2 } else { part.rounds }),
        pool: options.common.pool_size.unwrap_or(part.pool),
    };
    let parts = || PARTS.iter().filter(|part| chosen(part));
    parts().try_for_each(|part| (part.find)())?;
    let steps = parts().map(|part| (part.steps)(scope(part))).sum();
    let space = parts().map(|part| (part.space)(scope(part))).sum();
    let mut lab = Lab::set_up(&options.common, Progress::new(steps), space)?;
    let mut sections = Fields::default();
    let mut tables = String::new();
    for part in &PARTS {
        let (rows, table) =
            if chosen(part) { part.measure(&mut lab, scope(part))? } else { Default::default() };
        sections = sections.with(part.key, rows);
        if !table.is_empty() {
            tables += &format!("\n{table}");
        }
    }
    lab.progress.finish();
    let results = Results {
        medium: lab.medium().to_owned(),
        machine: lab.machine.clone(),
        pool_mb: parts().fold(Fields::default(), |pools, part| pools.with(part.key, scope(part).pool >> 20)),
        quick: options.quick,
        rounds: parts().fold(Fields::default(), |rounds, part| rounds.with(part.key, scope(part).rounds)),
        sections,
    };
    drop(lab);
    out!("{tables}");
    outln!();
    if !parts().all(Part::has_a_log_of_its_own) {
        outln!("  medium of the log: {}", results.medium);
    }
    outln!("  data on:           {}", results.machine.filesystem);
    outln!("  idle processors:   {}", results.machine.idle);
    let path = options.common.out.join("bench.json");
    fs::write(&path, serde_json::to_vec_pretty(&results)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    outln!("\nAll figures: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_keys_on_the_page() {
        let mut parts: Vec<_> = PARTS.iter().map(|part| part.key.to_owned()).collect();
        let mut page = keys::sections();
        parts.sort();
        page.sort();
        assert_eq!(parts, page);
    }
}
