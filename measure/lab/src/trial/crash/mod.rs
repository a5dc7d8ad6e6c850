//! A crash at full load: every process of the database gets SIGKILL after the same number of commits on every side, and
//! everything is timed from the kill, whatever somebody does in between.
//!
//! After a kill reads find warm files, as the page cache outlives processes. A power cut is stood in for: the daemon is
//! killed in the same instant, what the file system holds is written and all its caches are dropped, what belongs to the boot
//! is removed, so that Seawall's part is a replay of its log, and its notes of what memory held become another boot's. Bare data then has what its fsyncs had to make durable and
//! more: a real power cut takes that away, and costs neither side time.

mod load;
mod rates;
mod redo;

use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::prepare::Prepared;
use super::record::Turn;
use super::server::Server;
use super::stage::Stage;
use crate::case::{Crash, Measure};
use load::Load;

/// Runs it; the server is gone afterwards.
pub fn run(
    stage: &Stage<'_>,
    how: &Crash,
    prepared: &Prepared,
    server: Server<'_>,
    turn: &mut Turn,
) -> Result<()> {
    load::make_ready(&server)?;
    let there = load::counted(stage.case, &server)?;
    let watch = stage.watch(prepared, &server)?;
    let mut load = Load::start(stage, prepared, &server, load::LONGEST)?;
    load.wait_for(how.after_commits, &server)?;
    let observed = watch.finish()?;
    let said = redo::said(stage.lab, &server, prepared);

    let mut begin = (Instant::now(), wall_us()?);
    match how.power_cut {
        false => server.kill(&[])?,
        true => {
            let daemon = prepared.pool.as_ref().and_then(|pool| pool.daemon());
            server.kill(daemon.as_slice())?;
            cut(stage, prepared)?;
            begin = (Instant::now(), wall_us()?);
        }
    }
    let server = Server::restart(stage.lab, stage.bin, stage.case, prepared)
        .context("cannot restart the database after the crash")?;
    load::first(&server)?;
    turn.figure(Measure::FirstTransaction, begin.0.elapsed().as_secs_f64());

    let again = Load::start(stage, prepared, &server, how.watch_seconds)?;
    let before = load.ended(true)?;
    ensure!(before.commits > 0, "nothing was committed before the crash");
    turn.work = observed.work(before.commits);
    stage.note(&observed, turn);
    let speed = before.rates.usual();
    turn.figure(Measure::Throughput, speed);
    let after = again.ended(false)?;
    match after.rates.reaches(speed, begin.1) {
        Some(seconds) => turn.figure(Measure::FullSpeed, seconds),
        None => turn.notes.push(format!("full speed was not reached within {} s of load", how.watch_seconds)),
    }
    turn.figures.extend(redo::figures(said)?);
    load::check(stage, prepared, server, there, before.commits + after.commits)?.stop()
}

/// What a power cut takes, as far as it can be taken here.
fn cut(stage: &Stage<'_>, prepared: &Prepared) -> Result<()> {
    for gone in prepared.pool.iter().flat_map(|pool| pool.memory()) {
        let _ = fs::remove_file(gone);
    }
    give_notes_another_boot(stage)?;
    stage.lab.work.sync()?;
    fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop the kernel's caches")
}

/// A note that names this boot would be taken for one of a server that crashed alone.
fn give_notes_another_boot(stage: &Stage<'_>) -> Result<()> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().replace('-', "");
    let notes = stage.lab.work.state().join("seawall/recoveries");
    for entry in fs::read_dir(notes).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|kind| kind == "warm") {
            let note = fs::read_to_string(entry.path())?;
            fs::write(entry.path(), note.replacen(&boot, &"0".repeat(boot.len()), 1))?;
        }
    }
    Ok(())
}

fn wall_us() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64)
}
