//! Plain files in a machine: programs that write new ones, rename them over others and remove them, and sync files and
//! directory (`seawall-load files`), under `--preset any`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use seawall_core::stand_in::NOTE;
use seawall_load::ledger::Verdict;

use crate::boot::{Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, is_guard, judge};
use crate::outside::{DATA, session};
use crate::place::{ANY, Place};
use crate::plan::Side;
use crate::program;

/// Longer than any round.
const FOREVER: &str = "600";
const CLIENTS: [&str; 2] = ["1", "2"];

/// On the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join("files")
}

/// An empty directory.
pub fn install(_: &Boot) -> Result<()> {
    fs::create_dir_all(directory()).context("create the files' directory")
}

/// Steps until the power fails.
pub fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let (side, place) = (boot.plan.side, place(boot, boot.plan.side)?);
    let mut clients = Vec::new();
    for client in CLIENTS {
        let mut arguments: Vec<OsString> = vec!["files".into(), "--dir".into(), place.path().into()];
        arguments.extend(["--client", client, "--seconds", FOREVER, "--ledger"].map(Into::into));
        arguments.push(boot.plan.ledger().into());
        arguments.extend((side == Side::Unsafe).then(|| "--nosync".into()));
        clients.push(program::start(on(boot, side, &place, arguments)?, "the load of files")?);
    }
    until_the_cut(boot, before, || clients.iter_mut().try_for_each(program::Running::must_run))
}

/// Recovers and checks. The note that stands for a guard here is met by nobody: it is only looked for.
pub fn check(boot: &Boot) -> Result<Checked> {
    let note = directory().join(NOTE);
    judge(
        boot,
        &directory(),
        || is_guard(&note),
        || Ok(None),
        |side, checked| {
            checked.verdict = verdict(boot, side)?;
            Ok(())
        },
    )
}

fn verdict(boot: &Boot, side: Side) -> Result<Verdict> {
    let place = place(boot, side)?;
    let mut arguments: Vec<OsString> = vec!["check-files".into(), "--dir".into(), place.path().into()];
    arguments.extend(["--ledger".into(), boot.plan.ledger().into()]);
    let verdict = judge::verdict(on(boot, side, &place, arguments)?)?;
    place.leave(boot)?;
    Ok(verdict)
}

fn place(boot: &Boot, side: Side) -> Result<Place> {
    Place::of(boot, side, "files", ANY)
}

/// The program as `side` runs it.
fn on(boot: &Boot, side: Side, place: &Place, arguments: Vec<OsString>) -> Result<Command> {
    let mut command = place.command(boot, side, ANY, "seawall-load");
    command.args(arguments).env("XDG_RUNTIME_DIR", session()?);
    Ok(command)
}
