//! A load until the power fails: the wait for its first commit, and what goes wrong before the cut.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::boot::{Boot, Said, say};
use crate::plan::Trouble;
use crate::writeback::Writeback;
use crate::{balloon, murder};
use fastrand::Rng;

/// Waits until the ledger has grown past what it held before, then says so, and waits for the power cut.
///
/// `check` looks whether the load still runs. It may end when something goes wrong on purpose: a database
/// that stops is no loss, one that goes on and forgets is.
///
/// # Errors
/// If the load ends for no such reason.
pub fn until_the_cut(boot: &Boot, before: u64, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    while ledger_length(boot) <= before {
        check()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&Said::Working)?;
    std::thread::sleep(boot.plan.cut_after / 2);
    match boot.plan.trouble {
        Trouble::Full => balloon::inflate()?,
        Trouble::DaemonKilled => murder::of_daemon()?,
        Trouble::DatabaseKilled => murder::of_database(&mut Rng::with_seed(boot.plan.seed))?,
        Trouble::MountKilled => murder::of_mount()?,
        Trouble::DiskKilled => murder::of_disk()?,
        Trouble::None | Trouble::WriteErrors | Trouble::FlushErrors => {}
    }
    let mut writeback = Writeback::new(boot.plan.seed);
    loop {
        if boot.plan.load_goes_on() {
            check()?;
        }
        if boot.plan.writeback {
            writeback.stir();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes in the ledger.
pub fn ledger_length(boot: &Boot) -> u64 {
    fs::metadata(boot.plan.ledger()).map_or(0, |found| found.len())
}
