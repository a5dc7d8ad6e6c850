//! The course of every database's check: refused bare, recovered, checked, and no guard left.
//!
//! Input: what is the database's own, as closures. Output: [`Checked`]. What only one database has to show, its
//! module adds.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_core::stand_in::NOTE;
use seawall_load::ledger::Verdict;
use serde::Deserialize;

use crate::boot::{Boot, Checked};
use crate::plan::{Recovery, Side};
use crate::program::{self, Ended};

/// Nothing that is waited for here takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Recovers what the side under test has left, or gives it up, and checks.
///
/// `is_guarded` says whether the database's guard is up in `directory`. `bare` starts the database without Seawall
/// behind it, and says what was wrong with how it was refused. `check` starts, checks and stops it as the side it
/// is given: it returns the ledger's verdict, and adds what else is wrong to the problems.
///
/// # Errors
/// If something cannot be carried out; what is only wrong is a problem.
pub fn judge(
    boot: &Boot,
    directory: &Path,
    is_guarded: impl Fn() -> bool,
    bare: impl FnOnce() -> Result<Option<String>>,
    check: impl FnOnce(Side, &mut Vec<String>) -> Result<Verdict>,
) -> Result<Checked> {
    let mut checked = Checked::default();
    let mut side = boot.plan.side;
    // The note that stands for the guard of any program's data is met by nobody.
    let note = directory.join(NOTE);
    let is_guarded = || if boot.plan.as_any { is_guard(&note) || is_guarded() } else { is_guarded() };
    if side.is_logged() {
        let guarded = is_guarded();
        if guarded && !boot.plan.as_any {
            checked.problems.extend(bare()?);
        }
        // Without copies of its pages its own recovery must be under Seawall too: another cut would tear pages.
        if recover_first(boot, guarded, &mut checked)? && !side.is_without_copies() {
            side = Side::Synced;
        }
    }
    if side == Side::Logless {
        abandon(boot, directory)?;
        side = Side::Synced;
    }
    checked.verdict = check(side, &mut checked.problems)?;
    if is_guarded() {
        checked.problems.push("the guard is still up after an orderly end".to_owned());
    }
    Ok(checked)
}

/// Runs a command that compares the ledger with the database.
///
/// # Errors
/// If it gives no verdict.
pub fn verdict(check: Command) -> Result<Verdict> {
    let ended = program::finish(check, "the ledger check", LIMIT)?;
    // Exit code 1 is a verdict too: a bad one.
    serde_json::from_str(&ended.stdout)
        .with_context(|| format!("the ledger check printed no verdict: {ended}"))
}

/// True if a guard's text stands where this file was.
pub fn is_guard(file: &Path) -> bool {
    fs::read(file).is_ok_and(|text| String::from_utf8_lossy(&text).contains("run-seawall-recover"))
}

/// What is wrong with how a bare program, which should have been `refused` with these words, ended behind a guard.
pub fn guard_problem(bare: Result<Ended>, refused: &str) -> Option<String> {
    match bare {
        Ok(ended) if !ended.status.success() && ended.said(refused) => None,
        Ok(ended) => Some(format!("a bare start behind the guard was not refused with {refused:?}: {ended}")),
        Err(_) => Some("a bare start behind the guard was not refused".to_owned()),
    }
}

/// Runs `seawall recover` and returns how many records it replayed.
fn recover(boot: &Boot, force: bool) -> Result<u64> {
    #[derive(Deserialize)]
    struct Report {
        live: u64,
        replayed: bool,
    }
    if !boot.plan.pool().exists() {
        // The power failed before there was one.
        return Ok(0);
    }
    let mut recover = boot.seawall("recover");
    recover.arg("--json");
    if force {
        recover.arg("--replay");
    }
    let done = program::run(recover, "seawall recover", LIMIT)?;
    let report: Report =
        serde_json::from_str(&done.stdout).context("cannot read seawall recover's report")?;
    ensure!(
        report.live == 0 || report.replayed,
        "the log had {} live records and was not replayed",
        report.live
    );
    Ok(if report.replayed { report.live } else { 0 })
}

/// Recovers before the database starts, unless `seawall run` is to do it. True if it was done here. Live records
/// behind no guard are a problem.
fn recover_first(boot: &Boot, guarded: bool, checked: &mut Checked) -> Result<bool> {
    if boot.plan.recovery == Recovery::Run {
        return Ok(false);
    }
    let replayed = recover(boot, boot.plan.recovery == Recovery::Forced)?;
    checked.replayed = Some(replayed);
    if replayed > 0 && !guarded {
        checked.problems.push(format!("{replayed} live records, and no guard was up"));
    }
    Ok(true)
}

/// Removes the guards of a pool that is gone.
fn abandon(boot: &Boot, directory: &Path) -> Result<()> {
    let mut recover = Command::new(boot.program("seawall"));
    recover.args(["recover", "--abandon"]).arg(directory);
    program::run(recover, "seawall recover --abandon", Duration::from_secs(60)).map(drop)
}
