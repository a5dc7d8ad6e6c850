//! `endure`: loads that write many times the pool's size, watched once a second.
//!
//! Inputs: minutes, a small pool, the loads of [`plan`]. Outputs: for each load what grew ([`growth`]), the
//! longest stall and p99.9 as the application saw them, and the rate beside that of a [`plain`] program which
//! writes and syncs the same bytes in the same run; a table, and a JSON file. Nothing is asserted about speed.
//! Not handled here: what a full disk or a dying process does (the tests' and `powercut`'s business).

mod growth;
mod load;
mod plain;
mod plan;
mod postgres;
mod report;
mod sample;
mod write;
mod written;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cli::{Common, EndureOptions};
use crate::lab::Lab;
use crate::progress::Progress;
use crate::tools;
pub use growth::Growth;
pub use plan::Load;
pub use report::{Endured, Latencies, Results};

/// Runs the chosen loads, one after the other, each for an equal part of the time.
pub fn run(options: &EndureOptions) -> Result<()> {
    let loads = plan::chosen(&options.only);
    if loads.iter().any(|load| load.is_postgres()) {
        tools::postgres_bin()?;
    }
    let lab = Lab::set_up(&common(options), Progress::new(loads.len()), load::space(options.pool_size))?;
    let results = endure(&lab, &loads, options.minutes)?;
    lab.progress.finish();
    out!("{}", report::table(&results));
    fs::write(&options.json, serde_json::to_vec_pretty(&results)?)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    outln!("\nAll figures: {}", options.json.display());
    Ok(())
}

/// The same in a lab that is there.
pub fn endure(lab: &Lab, loads: &[Load], minutes: f64) -> Result<Results> {
    let seconds = minutes * 60.0 / loads.len().max(1) as f64;
    let mut endured = Vec::new();
    for load in loads {
        lab.progress.doing(load.name());
        let done = load::endure(lab, *load, seconds).with_context(|| load.name())?;
        lab.progress.done(&report::line(&done));
        endured.push(done);
    }
    Ok(Results {
        medium: lab.medium().to_owned(),
        machine: lab.machine.clone(),
        pool_mb: lab.pool.size() >> 20,
        minutes,
        loads: endured,
    })
}

fn common(options: &EndureOptions) -> Common {
    let out = options.json.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Common {
        seawall: options.seawall.clone(),
        work: options.work.clone(),
        out: out.to_owned(),
        pool_size: Some(options.pool_size),
        keep: false,
    }
}
