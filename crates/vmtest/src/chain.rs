//! A chain of boots over one persistent memory and one disk: prepare, then load and cut again and again, each
//! boot checking what the ones before had acknowledged, and an orderly end.
//!
//! In: what the guest shall be like, how many cuts. Out: a [`Chain`] with everything that was seen. What was
//! lost is a finding, not an error; an error is a test that could not be carried out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::disk::Cut;
use crate::guest::{self, Found, Line};
use crate::machine::{Boot, DISK_BYTES, Machine, PMEM_BYTES, Parts};
use crate::random::Random;

/// The databases, as ports and ledgers are called.
pub const DATABASES: [&str; 2] = ["postgres", "sqlite"];
/// No step takes this long, emulated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(400);
/// A boot that takes longer is stuck before it came to the disks. Emulators have such days.
const BOOT_PATIENCE: Duration = Duration::from_secs(90);
const ATTEMPTS: u32 = 3;
/// Of how many cuts one comes while the boot recovers, not under load.
const IN_RECOVERY: u64 = 4;

/// Who answers for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Seawall, on the persistent memory.
    Seawall,
    /// The databases alone: shows that the disk keeps what was flushed.
    Bare,
    /// The databases with their syncs switched off: shows that the disk loses what was not.
    Unsafe,
}

impl Side {
    /// As the guest's session calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seawall => "seawall",
            Self::Bare => "bare",
            Self::Unsafe => "unsafe",
        }
    }
}

/// Where the logs of a chain with Seawall are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Log {
    /// In the persistent memory.
    Pmem,
    /// PostgreSQL's is small, and has a spill area on the data disk.
    Spill,
    /// On the data disk.
    Disk,
}

impl Log {
    /// As the guest's session calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pmem => "pmem",
            Self::Spill => "spill",
            Self::Disk => "disk",
        }
    }

    /// What `seawall status` calls it.
    pub fn medium(self) -> &'static str {
        match self {
            Self::Pmem | Self::Spill => "pmem",
            Self::Disk => "block",
        }
    }

    /// How long a flush of the data disk takes in this phase. Logs that are empty at every cut would prove little, and so
    /// would a spill area that a fast disk makes needless.
    fn flush_time(self, phase: &str) -> Duration {
        Duration::from_millis(if self == Self::Spill && phase == "run" { 500 } else { 10 })
    }
}

/// What a chain is made of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Setup {
    /// Who answers for durability.
    pub side: Side,
    /// Where the logs are.
    pub log: Log,
    /// File system of the persistent memory.
    pub pool: &'static str,
    /// File system of the data disk.
    pub data: &'static str,
    /// SQLite's journal mode.
    pub journal: &'static str,
    /// The processor: which instructions there are to flush with.
    pub cpu: &'static str,
}

/// When the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// Under load, after both databases had acknowledged commits.
    Load,
    /// While the boot before had not come further than recovering or checking.
    Recovery,
}

/// One boot that ended by a power cut.
#[derive(Debug, Serialize)]
pub struct Round {
    /// When.
    pub moment: Moment,
    /// Milliseconds from that moment's begin.
    pub after_ms: u64,
    /// The chance in 100 of an un-flushed sector to survive.
    pub keep: u64,
    /// What the disk lost.
    pub disk: Cut,
    /// Commits this boot acknowledged: PostgreSQL, SQLite.
    pub acknowledged: [u64; 2],
    /// What this boot had found of the ones before.
    pub boot: Seen,
    /// The boot's time.
    pub seconds: f64,
}

/// What one boot found.
#[derive(Debug, Default, Serialize)]
pub struct Seen {
    /// PostgreSQL.
    pub postgres: Found,
    /// SQLite.
    pub sqlite: Found,
    /// The bare databases refused to start (asked after a cut under load).
    pub refused: bool,
    /// What went wrong: steps that failed, complaints of the kernel.
    pub failures: Vec<String>,
}

/// A chain that was carried out.
#[derive(Debug, Serialize)]
pub struct Chain {
    /// What it was made of.
    pub setup: Setup,
    /// The cuts.
    pub rounds: Vec<Round>,
    /// The last boot: it checks, stops everything in order, and looks at what is left.
    pub finish: Seen,
    /// The last boot came to its end.
    pub finished: bool,
}

/// How a chain is run.
pub struct Plan<'a> {
    /// The machine's parts.
    pub parts: &'a Parts,
    /// Directory for images and logs.
    pub dir: PathBuf,
    /// Cuts.
    pub cuts: u64,
    /// The longest time from the first commit to the cut.
    pub window: Duration,
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

impl Chain {
    /// Runs it.
    ///
    /// # Errors
    /// If the test cannot be carried out.
    pub fn run(setup: Setup, plan: &Plan<'_>, random: &mut Random) -> Result<Self> {
        let mut run = Run { setup, plan, ledgers: Default::default(), guarded: false, boots: 0 };
        run.prepare(random).context("preparing the databases")?;
        let mut rounds = Vec::new();
        for number in 0..plan.cuts {
            let round = run.round(number, random).with_context(|| format!("cut {}", number + 1))?;
            crate::report::say_round(&setup, &round);
            rounds.push(round);
            if setup.side == Side::Seawall && rounds.last().is_some_and(|r| !r.boot.failures.is_empty()) {
                break; // A boot that failed is looked at, not written over.
            }
        }
        let (finish, finished) = run.finish(random).context("the last boot")?;
        crate::report::say_finish(&setup, &finish, finished);
        Ok(Self { setup, rounds, finish, finished })
    }
}

impl Run<'_> {
    /// A machine whose session runs.
    fn boot(&mut self, phase: &str) -> Result<Machine> {
        for _ in 1..ATTEMPTS {
            let mut machine = self.switch_on(phase)?;
            match machine.wait(BOOT_PATIENCE, |machine| has(machine, "up", "session")) {
                Ok(()) => return Ok(machine),
                Err(e) => println!("a boot was stuck and is tried again: {e:#}"),
            }
        }
        let mut machine = self.switch_on(phase)?;
        machine.wait(BOOT_PATIENCE, |machine| has(machine, "up", "session"))?;
        Ok(machine)
    }

    fn switch_on(&mut self, phase: &str) -> Result<Machine> {
        self.boots += 1;
        let Setup { side, log, pool, data, journal, cpu } = self.setup;
        let guarded = u8::from(self.guarded && side == Side::Seawall).to_string();
        let how = [("phase", phase), ("side", side.name()), ("log", log.name())];
        let what = [("pool", pool), ("data", data), ("journal", journal)];
        let options = how.into_iter().chain(what).map(|(name, value)| (name, value.to_owned()));
        let [postgres, sqlite] = self.ledgers.clone();
        Machine::start(&Boot {
            parts: self.plan.parts,
            dir: &self.plan.dir,
            cpu,
            name: format!("{:03}-{phase}", self.boots),
            options: options.chain([("guarded", guarded)]).collect(),
            ledgers: [("postgres", postgres), ("sqlite", sqlite)],
            flush_time: log.flush_time(phase),
        })
    }

    fn prepare(&mut self, random: &mut Random) -> Result<()> {
        image(&self.plan.dir.join("pmem.img"), PMEM_BYTES)?;
        image(&self.plan.dir.join("disk.img"), DISK_BYTES)?;
        let mut machine = self.boot("prepare")?;
        machine.wait(PATIENCE, |machine| has(machine, "done", "prepare"))?;
        let lines = machine.lines()?;
        ensure!(
            lines.iter().any(|line| line.text() == "cache disk write back"),
            "the guest takes the disk's cache for none: it would not flush"
        );
        machine.wait_off(PATIENCE)?;
        machine.cut(0, random).map(drop)
    }

    /// One boot under load, and its end.
    fn round(&mut self, number: u64, random: &mut Random) -> Result<Round> {
        let begin = Instant::now();
        let keep = random.below(5) * 20;
        let moment = match number > 0 && random.below(IN_RECOVERY) == 0 {
            true => Moment::Recovery,
            false => Moment::Load,
        };
        let after_ms = random.below(self.plan.window.as_millis() as u64 + 1);
        let mut machine = self.boot("run")?;
        let arrived = |machine: &Machine| match moment {
            Moment::Recovery => Ok(has(machine, "recovering", "both")? || has_failed(machine)?),
            Moment::Load => Ok(has_acknowledged(machine)? || has_failed(machine)?),
        };
        machine.wait(PATIENCE, arrived)?;
        std::thread::sleep(Duration::from_millis(after_ms));
        let (lines, complaints) = (machine.lines()?, machine.complaints()?);
        machine.stop();
        let acknowledged = self.note(&machine)?;
        let disk = machine.cut(keep, random)?;
        self.guarded = moment == Moment::Load && acknowledged.iter().all(|count| *count > 0);
        let boot = seen(&lines, complaints)?;
        Ok(Round { moment, after_ms, keep, disk, acknowledged, boot, seconds: begin.elapsed().as_secs_f64() })
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

    fn finish(&mut self, random: &mut Random) -> Result<(Seen, bool)> {
        let mut machine = self.boot("finish")?;
        machine.wait_off(PATIENCE)?;
        let seen = seen(&machine.lines()?, machine.complaints()?)?;
        let finished = has(&machine, "done", "finish")?;
        machine.cut(0, random)?;
        Ok((seen, finished))
    }
}

fn image(path: &Path, bytes: u64) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    Ok(file.set_len(bytes)?)
}

fn has(machine: &Machine, word: &str, subject: &str) -> Result<bool> {
    Ok(machine.lines()?.iter().any(|line| line.word == word && line.subject == subject))
}

fn has_failed(machine: &Machine) -> Result<bool> {
    Ok(machine.lines()?.iter().any(|line| line.word == "failed"))
}

fn has_acknowledged(machine: &Machine) -> Result<bool> {
    for database in DATABASES {
        if machine.ledger(database)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn seen(lines: &[Line], complaints: Vec<String>) -> Result<Seen> {
    let failed = lines.iter().filter(|line| line.word == "failed").map(Line::text);
    Ok(Seen {
        postgres: guest::found(lines, DATABASES[0])?,
        sqlite: guest::found(lines, DATABASES[1])?,
        refused: lines.iter().any(|line| line.word == "refused"),
        failures: failed.chain(complaints).collect(),
    })
}
