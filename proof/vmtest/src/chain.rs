//! A chain of boots over one disk: prepare, then load and cut again and again, each boot checking what the ones
//! before had acknowledged, and an orderly end.
//!
//! Here is what chains are made of and what is seen of them. What was lost is a finding, not an error; an error
//! is a test that could not be carried out. They are carried out on [one machine](crate::alone), or on
//! [three](crate::hosts).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::guest::{self, Found};
use crate::machine::Machine;
use crate::parts::Parts;
use crate::report;
use seawall_faulty_disk::cache::Cut;

/// The databases, as ports and ledgers are called.
pub const DATABASES: [&str; 2] = ["postgres", "sqlite"];

/// Who answers for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Seawall.
    Seawall,
    /// The databases alone: shows that the disk keeps what was flushed.
    Bare,
    /// The databases with their syncs switched off: shows that the disk loses what was not.
    Unsafe,
    /// Seawall, and after the cut without its log: shows that nothing else has what was acknowledged.
    Logless,
}

impl Side {
    /// As the guest's session calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seawall => "seawall",
            Self::Bare => "bare",
            Self::Unsafe => "unsafe",
            Self::Logless => "logless",
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
    /// In the memory of three machines. Each cut is one machine's, and another one takes its log over.
    Keepers,
}

impl Log {
    /// As the guest's session calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pmem => "pmem",
            Self::Spill => "spill",
            Self::Disk => "disk",
            Self::Keepers => "keepers",
        }
    }

    /// What `seawall status` calls it.
    pub fn medium(self) -> &'static str {
        match self {
            Self::Pmem | Self::Spill => "pmem",
            Self::Disk => "block",
            Self::Keepers => "replicated",
        }
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
    /// Milliseconds for which one of several had been without a network; 0: it had one to the end.
    pub apart_ms: u64,
    /// The chance in 100 of an un-flushed sector to survive.
    pub keep: u8,
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
    /// Another machine took the log over: milliseconds from the cut until the database had started there.
    pub takeover_ms: Option<u64>,
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

impl Seen {
    /// What this machine has told so far.
    ///
    /// # Errors
    /// If the guest told something in an unknown form.
    pub fn of(machine: &Machine) -> Result<Self> {
        let lines = machine.lines()?;
        Ok(Self {
            postgres: guest::found(&lines, DATABASES[0])?,
            sqlite: guest::found(&lines, DATABASES[1])?,
            refused: lines.iter().any(|line| line.word == "refused"),
            takeover_ms: None,
            failures: machine.failures()?,
        })
    }
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

impl Plan<'_> {
    /// The cuts, one after the other; `round` makes each.
    ///
    /// # Errors
    /// Of `round`.
    pub fn rounds(&self, setup: &Setup, mut round: impl FnMut(u64) -> Result<Round>) -> Result<Vec<Round>> {
        let mut rounds = Vec::new();
        for number in 0..self.cuts {
            let made = round(number).with_context(|| format!("cut {}", number + 1))?;
            report::say_round(setup, &made);
            let has_failed = !made.boot.failures.is_empty();
            rounds.push(made);
            if setup.side == Side::Seawall && has_failed {
                break; // A boot that failed is looked at, not written over.
            }
        }
        Ok(rounds)
    }
}
