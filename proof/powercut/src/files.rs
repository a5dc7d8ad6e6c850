//! Plain files in a machine: programs that write new ones, rename them over others and remove them, and sync files and
//! directory (`seawall-load files`), under `--preset any`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_core::stand_in::NOTE;
use seawall_load::ledger::Verdict;

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, is_guard, judge};
use crate::outside::DATA;
use crate::place::{ANY, Place};
use crate::plan::Side;
use crate::program::{self, FOREVER};

const CLIENTS: [&str; 2] = ["1", "2"];

/// On the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join("files")
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty directory.
fn install(_: &Boot) -> Result<()> {
    fs::create_dir_all(directory()).context("cannot create the files' directory")
}

/// Steps until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let (side, place) = (boot.plan.side, place(boot, boot.plan.side)?);
    let mut clients = Vec::new();
    for client in CLIENTS {
        let mut files = place.command(boot, side, ANY, "seawall-load")?;
        files.args(["files", "--dir"]).arg(place.path()).args(["--client", client, "--seconds", FOREVER]);
        files.arg("--ledger").arg(boot.plan.ledger()).args((side == Side::Unsafe).then_some("--nosync"));
        clients.push(program::start(files, "the load of files")?);
    }
    until_the_cut(boot, before, || clients.iter_mut().try_for_each(program::Running::must_run))
}

/// Recovers and checks. The note that stands for a guard here is met by nobody: it is only looked for.
fn check(boot: &Boot) -> Result<Checked> {
    let note = directory().join(NOTE);
    judge(boot, &directory(), || is_guard(&note), || Ok(None), |side, _| verdict(boot, side))
}

fn verdict(boot: &Boot, side: Side) -> Result<Verdict> {
    let place = place(boot, side)?;
    let mut check = place.command(boot, side, ANY, "seawall-load")?;
    check.args(["check-files", "--dir"]).arg(place.path()).arg("--ledger").arg(boot.plan.ledger());
    let verdict = judge::verdict(check)?;
    place.leave(boot)?;
    Ok(verdict)
}

fn place(boot: &Boot, side: Side) -> Result<Place> {
    Place::of(boot, side, "files", ANY)
}
