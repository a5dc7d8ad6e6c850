//! The tables and keys of a case file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Setting;

/// A crash at full load: every process gets SIGKILL, and a restart is timed from then on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Commits since the beginning of the turn at which it happens: the same work lies behind every side.
    pub after_commits: u64,
    /// It stands for a power cut: nothing is in memory afterwards, and Seawall's log is replayed.
    #[serde(default)]
    pub power_cut: bool,
    /// How long the load goes on after the restart at most, seconds.
    pub watch_seconds: u64,
}

/// Stand-ins for disks: data lies on a loop device over a file, `wal = "own-device"` on a second one, and the kernel
/// holds each to a rate while the load runs. With `--apart DIR` real disks are taken instead.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devices {
    pub writes_per_second: Spanned<u64>,
}

/// A load in slices: `seawall snap` beside its one configuration is stopped and continued.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slicing {
    /// How long each is.
    pub seconds: Spanned<f64>,
    /// The question is whether it takes less than this of throughput.
    pub below_percent: f64,
}

/// What a configuration is in the comparison.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What all others are compared with.
    Baseline,
    /// What might be better.
    #[default]
    Candidate,
    /// What tells the candidate's effect from another one.
    Control,
    /// Not an equivalent: it promises less.
    Bound,
}

/// How Seawall gets between database and files.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Front {
    /// Not at all.
    #[default]
    None,
    Preload,
    Mount,
}

/// What the pool lies on.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Memory, asked for by name.
    Emulated,
    /// An ordinary file on the disk.
    File,
    /// A file on a file system that is mounted with DAX.
    Dax,
    /// A log that is written to the disk: a file there, as a block device.
    Block,
    /// Memory of other hosts: `keepers` of them.
    Replicated,
}

/// A kind of file system.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// With a journal.
    Ext4,
    Xfs,
}

/// Where the database's own write-ahead log lies.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Wal {
    /// Where the data is.
    #[default]
    WithData,
    /// On a file system of its own, on the same disk.
    OwnFileSystem,
    /// On another disk (`--apart DIR`), or on a stand-in for one ([`Devices`]).
    OwnDevice,
}

/// Which files the log covers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// What commits wait for.
    #[default]
    Tail,
    /// Every write of every data file.
    Atomic,
}

impl PolicyName {
    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            PolicyName::Tail => "tail",
            PolicyName::Atomic => "atomic",
        }
    }
}

/// One of the things compared.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    pub name: String,
    pub title: String,
    #[serde(default)]
    pub role: Role,
    #[serde(default)]
    pub front: Front,
    pub medium: Option<Medium>,
    /// Size of the pool, with a unit: `256M`.
    pub pool: Option<String>,
    /// Of a replicated log: how many keepers it has. More than half confirm a commit.
    pub keepers: Option<u8>,
    /// What the way to another host takes longer in each direction, microseconds: to a keeper, or to the standby.
    pub delay_us: Option<u64>,
    /// PostgreSQL has a synchronous standby on another host, whose disk is memory.
    #[serde(default)]
    pub standby: bool,
    /// Its syncs do nothing (eatmydata preloaded), without Seawall.
    #[serde(default)]
    pub eatmydata: bool,
    /// Size of the block cache, with a unit; on the same medium as the pool.
    pub cache: Option<String>,
    /// The block cache keeps the database's data (`seawall cache keep`), as far as it keeps anything.
    #[serde(default)]
    pub keep: bool,
    /// The data is brought into the block cache before the database starts (`seawall cache prewarm`).
    #[serde(default)]
    pub prewarm: bool,
    /// Seconds of load before a turn, in place of the case's `warm_up`.
    pub warm_up: Option<u64>,
    #[serde(default)]
    pub policy: PolicyName,
    /// How long a crash may take, for example `1s` (`seawall run --recovery`).
    pub recovery: Option<String>,
    #[serde(default)]
    pub wal: Wal,
    /// Database, daemon and load have this many CPUs (affinity).
    pub cpus: Option<usize>,
    /// … or this much time of CPUs (the control group's quota): 1.5 is one and a half.
    pub cpu_max: Option<f64>,
    /// `seawall snap` runs beside it, a snapshot every so many seconds.
    pub captured_every: Option<u64>,
    /// Settings of the database.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Set on what is measured a second time.
    #[serde(skip)]
    pub again_of: Option<String>,
}

impl Configuration {
    /// The same once more, under another name.
    pub(super) fn again(&self) -> Self {
        Self {
            name: format!("{}-again", self.name),
            title: format!("{}, once more", self.title),
            role: Role::Control,
            again_of: Some(self.name.clone()),
            ..self.clone()
        }
    }

    /// The effective value of a setting, if it is set here or for all.
    pub fn setting(&self, all: &BTreeMap<String, Setting>, name: &str) -> Option<String> {
        self.settings.get(name).or_else(|| all.get(name)).map(ToString::to_string)
    }
}

/// What others measured, shown beside ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What was measured, where, how.
    pub study: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// What its own figures show, read by the rules that hold here.
    pub shows: String,
    /// Why ours differ.
    pub differs: String,
}
