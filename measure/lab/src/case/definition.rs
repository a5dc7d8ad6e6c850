//! A case, as plain data, and what follows from it.

use std::collections::BTreeMap;

use seawall_load::write::parse_bytes;
use serde::Deserialize;
use toml::Spanned;

use super::load::{
    DbBench, Definitions, Etcd, Files, Lmdb, Load, Pgbench, RedisBenchmark, Slob, Sqlite, Sysbench, Tprocc,
};
use super::measure::Measure;
use super::schema::{Configuration, Crash, Devices, FileSystem, Role, Slicing, Source};
use super::setting::Setting;

/// A case, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// One word: its name on the command line.
    pub name: Spanned<String>,
    /// In a few words.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// How often each configuration is measured.
    #[serde(default = "three")]
    pub rounds: Spanned<usize>,
    /// How long one turn of load lasts, seconds.
    pub seconds: Spanned<u64>,
    /// What is measured; the first one is what is judged.
    pub measures: Spanned<Vec<Measure>>,
    /// The wait that the candidates make shorter, by the name DBAs know: its share of DB time bounds any gain.
    #[serde(default = "commit_wait")]
    pub sped_up: String,
    /// Configurations that are measured twice under two names: how much equal things differ in this very run.
    #[serde(default)]
    pub controls: Vec<Spanned<String>>,
    /// Whether sessions are sampled during a turn (ten times a second).
    #[serde(default = "yes")]
    pub sampled: bool,
    /// Settings of the database, equal in all configurations.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// What database and load have of memory, the page cache included (a control group), with a unit: `128M`. A pool and
    /// a block cache in memory are not counted: they stand for other media.
    pub memory: Option<Spanned<String>>,
    /// How long the load runs before each turn, uncounted, seconds. Without it tables are read into the buffers.
    pub warm_up: Option<u64>,
    /// Whether it runs only when it is asked for by name: `--all` leaves it out.
    #[serde(default)]
    pub by_name: bool,
    // One of them is there: `Case::load`.
    pgbench: Option<Pgbench>,
    slob: Option<Slob>,
    tprocc: Option<Tprocc>,
    sysbench: Option<Sysbench>,
    #[serde(rename = "redis-benchmark")]
    redis_benchmark: Option<RedisBenchmark>,
    #[serde(rename = "db-bench")]
    db_bench: Option<DbBench>,
    sqlite: Option<Sqlite>,
    lmdb: Option<Lmdb>,
    files: Option<Files>,
    definitions: Option<Definitions>,
    etcd: Option<Etcd>,
    /// Data lies on a file system of its own of this kind, on the same disk.
    pub file_system: Option<FileSystem>,
    /// How long the data's disk takes over each flush, milliseconds: a stand-in in memory. Logs lie on the disk under test.
    pub flush_ms: Option<Spanned<u64>>,
    /// If devices of a known speed stand in for disks.
    pub devices: Option<Devices>,
    /// If the database is killed under load.
    pub crash: Option<Crash>,
    /// If the one configuration's recorder is stopped and continued under load, instead of turns.
    pub slices: Option<Slicing>,
    /// What is compared.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Spanned<Configuration>>,
    /// What others found, to be shown beside it.
    pub source: Option<Source>,
}

fn three() -> Spanned<usize> {
    Spanned::new(0..0, 3)
}

fn yes() -> bool {
    true
}

fn commit_wait() -> String {
    "log file sync".to_owned()
}

impl Case {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// Everything that is measured, controls among it, in order: a control stands behind what it repeats.
    pub fn expanded(&self) -> Vec<Configuration> {
        let mut all = Vec::new();
        for configuration in self.configurations.iter().map(Spanned::get_ref) {
            all.push(configuration.clone());
            if self.controls.iter().any(|name| *name.get_ref() == configuration.name) {
                all.push(configuration.again());
            }
        }
        all
    }

    /// Bytes of memory that database and load have.
    pub fn memory_bytes(&self) -> Option<u64> {
        parse_bytes(self.memory.as_ref()?.get_ref()).ok()
    }

    /// What all others are compared with.
    pub fn baseline(&self) -> &Configuration {
        let mut all = self.configurations.iter().map(Spanned::get_ref);
        all.find(|c| c.role == Role::Baseline).expect("checked when it was read: one is the baseline")
    }

    /// The measure that is judged.
    pub fn judged(&self) -> Measure {
        self.measures.get_ref()[0]
    }

    /// What runs.
    pub fn load(&self) -> Load<'_> {
        self.loads().next().expect("checked when it was read: there is one")
    }

    /// Every load its file has a table of: one, once it is checked.
    pub(super) fn loads(&self) -> impl Iterator<Item = Load<'_>> {
        [
            self.pgbench.as_ref().map(Load::Pgbench),
            self.slob.as_ref().map(Load::Slob),
            self.tprocc.as_ref().map(Load::Tprocc),
            self.sysbench.as_ref().map(Load::Sysbench),
            self.redis_benchmark.as_ref().map(Load::RedisBenchmark),
            self.db_bench.as_ref().map(Load::DbBench),
            self.sqlite.as_ref().map(Load::Sqlite),
            self.lmdb.as_ref().map(Load::Lmdb),
            self.files.as_ref().map(Load::Files),
            self.definitions.as_ref().map(Load::Definitions),
            self.etcd.as_ref().map(Load::Etcd),
        ]
        .into_iter()
        .flatten()
    }

    /// About how long it takes, seconds: `rounds` of turns of `seconds` of load each.
    pub fn planned_seconds(&self, rounds: usize, seconds: u64) -> u64 {
        let load = match &self.crash {
            // Until the commits are there, and after the restart.
            Some(crash) => crash.after_commits / SLOW_COMMITS + crash.watch_seconds + 2,
            None if self.slices.is_some() => seconds + SPARE,
            None => seconds,
        };
        let turns = (rounds * self.expanded().len()) as u64;
        PREPARING + turns * (self.warm_up.unwrap_or(0) + load) + (turns * RESTARTING_MS).div_ceil(1000)
    }
}

// As measured on two cores: a cluster made and copied, a server stopped and started and a disk synced.
const PREPARING: u64 = 10;
const RESTARTING_MS: u64 = 1500;
/// Commits in a second, on a disk.
const SLOW_COMMITS: u64 = 2500;
/// Capturing goes on behind the load.
const SPARE: u64 = 4;
