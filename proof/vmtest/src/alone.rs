//! A chain on one machine: each boot recovers what the one before had logged.
//!
//! In: a [`Setup`], a [`Plan`]. Out: a [`Chain`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::boot::{Boot, DISK_BYTES, Data, PMEM_BYTES, image, ledgers};
use crate::chain::{Chain, DATABASES, Log, Moment, Plan, Round, Seen, Setup, Side};
use crate::machine::{Machine, PATIENCE};
use fastrand::Rng;

/// Of how many cuts one comes while the boot recovers, not under load.
const IN_RECOVERY: u64 = 4;

/// Runs a chain.
///
/// # Errors
/// If the test cannot be carried out.
pub fn run(setup: Setup, plan: &Plan<'_>, random: &mut Rng) -> Result<Chain> {
    let mut run = Run { setup, plan, ledgers: Default::default(), guarded: false, boots: 0 };
    run.prepare(random).context("cannot prepare the databases")?;
    let rounds = plan.rounds(&setup, |number| run.round(number, random))?;
    let (finish, finished) = run.finish(random).context("the last boot failed")?;
    crate::report::say_finish(&setup, &finish, finished);
    Ok(Chain { setup, rounds, finish, finished })
}

/// A chain while it runs.
struct Run<'a> {
    setup: Setup,
    plan: &'a Plan<'a>,
    ledgers: [String; 2],
    /// The last cut came under load, so the guards must be up.
    guarded: bool,
    boots: u64,
}

impl Run<'_> {
    /// A machine whose session runs.
    fn boot(&mut self, phase: &str) -> Result<Machine> {
        self.switch_on(phase)?.up("session", || self.switch_on(phase))
    }

    fn switch_on(&mut self, phase: &str) -> Result<Machine> {
        self.boots += 1;
        let Setup { side, log, pool, data, journal, cpu } = self.setup;
        let Plan { parts, ref dir, .. } = *self.plan;
        let disk = Data::Lossy { image: dir.join("disk.img"), flush_time: flush_time(log, phase) };
        let guarded = if self.guarded && side == Side::Seawall { "1" } else { "0" };
        let how = [("phase", phase), ("side", side.name()), ("log", log.name()), ("guarded", guarded)];
        let what = [("pool", pool), ("data", data), ("journal", journal)];
        Machine::start(&Boot {
            cpu,
            options: [&how[..], &what].concat(),
            ports: &DATABASES,
            over: ledgers(DATABASES.into_iter().zip(&self.ledgers)),
            pmem: Some(dir.join("pmem.img")),
            ..Boot::of(parts, dir, format!("{:03}-{phase}", self.boots), disk)
        })
    }

    fn prepare(&mut self, random: &mut Rng) -> Result<()> {
        image(&self.plan.dir.join("pmem.img"), PMEM_BYTES)?;
        image(&self.plan.dir.join("disk.img"), DISK_BYTES)?;
        let mut machine = self.boot("prepare")?;
        machine.wait(PATIENCE, |machine| machine.has("done", "prepare"))?;
        machine.check_cache()?;
        machine.wait_off(PATIENCE)?;
        machine.cut(0, random).map(drop)
    }

    /// One boot under load, and its end.
    fn round(&mut self, number: u64, random: &mut Rng) -> Result<Round> {
        let begin = Instant::now();
        let keep = random.u8(..5) * 20;
        let moment = match number > 0 && random.u64(..IN_RECOVERY) == 0 {
            true => Moment::Recovery,
            false => Moment::Load,
        };
        let after_ms = random.u64(..self.plan.window.as_millis() as u64 + 1);
        let mut machine = self.boot("run")?;
        let arrived = |machine: &Machine| match moment {
            Moment::Recovery => Ok(machine.has("recovering", "both")? || machine.has_failed()?),
            Moment::Load => Ok(has_acknowledged(machine)? || machine.has_failed()?),
        };
        machine.wait(PATIENCE, arrived)?;
        std::thread::sleep(Duration::from_millis(after_ms));
        let boot = Seen::of(&machine)?;
        machine.stop();
        let acknowledged = self.note(&machine)?;
        let disk = machine.cut(keep, random)?;
        self.guarded = moment == Moment::Load && acknowledged.iter().all(|count| *count > 0);
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Round { moment, after_ms, apart_ms: 0, keep, disk, acknowledged, boot, seconds })
    }

    /// Takes what this boot acknowledged into the ledgers.
    fn note(&mut self, machine: &Machine) -> Result<[u64; 2]> {
        let mut counts = [0; 2];
        for ((database, ledger), count) in DATABASES.iter().zip(&mut self.ledgers).zip(&mut counts) {
            let lines = machine.ledger(database)?;
            *count = lines.lines().count() as u64;
            *ledger += &lines;
        }
        Ok(counts)
    }

    fn finish(&mut self, random: &mut Rng) -> Result<(Seen, bool)> {
        let mut machine = self.boot("finish")?;
        machine.wait_off(PATIENCE)?;
        let seen = Seen::of(&machine)?;
        let finished = machine.has("done", "finish")?;
        machine.cut(0, random)?;
        Ok((seen, finished))
    }
}

fn has_acknowledged(machine: &Machine) -> Result<bool> {
    for database in DATABASES {
        if machine.ledger(database)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How long a flush of the disk takes in this phase. Logs that are empty at every cut would prove little, and so
/// would a spill area that a fast disk makes needless.
fn flush_time(log: Log, phase: &str) -> Duration {
    Duration::from_millis(if log == Log::Spill && phase == "run" { 500 } else { 10 })
}
