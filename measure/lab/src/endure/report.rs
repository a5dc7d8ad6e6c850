//! The report on a load.

use std::collections::BTreeMap;

use seawall_load::latency::Summary;
use serde::Serialize;

use super::growth::Growth;
use super::plan::Load;
use super::sample::{Sample, Watch};
use super::written::Written;
use crate::machine::Machine;
use crate::table::{self, short, thousands};

/// What the application did, and how long it took.
pub struct Work {
    pub seconds: f64,
    /// What it wrote, if it says so.
    pub bytes: Option<u64>,
    pub latencies: Vec<(String, Latencies)>,
}

/// A latency, as the application saw it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latencies {
    pub count: u64,
    pub p50_us: f64,
    pub p999_us: f64,
    pub longest_us: f64,
}

impl Latencies {
    pub fn of(s: Summary) -> Self {
        Self { count: s.ops, p50_us: s.p50_us, p999_us: s.p999_us, longest_us: s.max_us }
    }
}

/// One load's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Endured {
    pub load: String,
    pub policy: String,
    pub seconds: f64,
    /// Looks at the daemon.
    pub samples: usize,
    /// Bytes that went into the log, in pools.
    pub pools: f64,
    /// Records that went into the log.
    pub records: u64,
    /// Latencies as the application saw them, by what was timed.
    pub latencies: BTreeMap<String, Latencies>,
    /// Wait events of Seawall's own: p99.9 and longest.
    pub events: BTreeMap<String, Latencies>,
    /// What became of each figure.
    pub growth: BTreeMap<String, Growth>,
    /// Entries the file table has.
    pub files_max: u32,
    /// Processor time of the daemon, as a part of one processor.
    pub daemon_cpu: f64,
    /// Bytes a second that the application wrote.
    pub bytes_s: f64,
    /// The same by a plain program that writes and syncs, in the same pattern.
    pub plain_bytes_s: f64,
    /// Part of the time in which the disk had something to do.
    pub disk_busy: f64,
    /// How often files left the log, of those that were in the table at the end.
    pub left: u64,
    /// Writes that went around it.
    pub around: u64,
}

/// Everything measured, as written to the JSON file.
#[derive(Serialize)]
pub struct Results {
    /// The pool's medium, as `seawall status` names it.
    pub medium: String,
    pub machine: Machine,
    pub pool_mb: u64,
    pub minutes: f64,
    pub loads: Vec<Endured>,
}

/// A figure's name, and where it is in a sample.
type Figure = (&'static str, fn(&Sample) -> f64);

/// The figures that are watched for growth.
const FIGURES: [Figure; 9] = [
    ("daemon_kb", |s| s.daemon_kb),
    ("daemon_shared_kb", |s| s.daemon_shared_kb),
    ("daemon_fds", |s| s.daemon_fds),
    // Each managed file has two.
    ("fds_beside_files", |s| s.daemon_fds - 2.0 * s.files),
    ("daemon_threads", |s| s.daemon_threads),
    ("clients_kb", |s| s.clients_kb),
    ("backlog_bytes", |s| s.backlog),
    ("backlog_files", |s| s.backlog_files),
    ("files", |s| s.files),
];

impl Endured {
    /// Everything that was found out.
    pub fn new(load: Load, plain: f64, work: Work, watch: &Watch<'_>, written: &Written, pool: u64) -> Self {
        let files = &watch.status.files;
        let logged = work.bytes.unwrap_or_else(|| files.iter().map(|f| f.bytes).sum());
        let bytes_s = logged as f64 / work.seconds;
        let event = |e: &super::sample::EventStatus| {
            let (p999_us, longest_us) = (e.p999_ns as f64 / 1e3, e.max_ns as f64 / 1e3);
            (e.name.clone(), Latencies { count: e.count, p50_us: 0.0, p999_us, longest_us })
        };
        Self {
            load: load.name().to_owned(),
            policy: load.policy().name().to_owned(),
            seconds: work.seconds,
            samples: watch.samples.len(),
            pools: logged as f64 / pool as f64,
            records: written.records(),
            latencies: work.latencies.into_iter().collect(),
            events: watch.status.events.iter().filter(|e| e.count > 0).map(event).collect(),
            growth: FIGURES.map(|(name, figure)| (name.to_owned(), watch.growth(figure))).into(),
            files_max: watch.status.files_max,
            daemon_cpu: watch.rate(|s| s.daemon_cpu_s),
            bytes_s,
            plain_bytes_s: plain,
            disk_busy: watch.rate(|s| s.disk_busy_ms / 1e3),
            left: files.iter().map(|f| f.left).sum(),
            around: files.iter().map(|f| f.untracked_writes).sum(),
        }
    }

    fn growth_of(&self, figure: &str) -> Growth {
        self.growth.get(figure).copied().unwrap_or_default()
    }
}

/// One load in one line.
pub fn line(e: &Endured) -> String {
    let stalls = e.latencies.iter().map(|(name, l)| {
        format!("{name} p99.9 {} µs, longest {} ms", short(l.p999_us), short(l.longest_us / 1e3))
    });
    format!("{}: {} pools; {}", e.load, short(e.pools), stalls.collect::<Vec<_>>().join("; "))
}

/// All of them as tables.
pub fn table(results: &Results) -> String {
    let growth = results.loads.iter().flat_map(|e| {
        FIGURES.iter().map(move |(figure, _)| {
            let g = e.growth_of(figure);
            let spread = |s: crate::spread::Spread| s.told(thousands);
            vec![
                format!("{} {figure}", e.load),
                spread(g.first),
                spread(g.last),
                thousands(g.highest),
                short(g.per_hour),
            ]
        })
    });
    let growth = table::format(
        &["figure", "first quarter", "last quarter", "highest", "an hour"],
        &growth.collect::<Vec<_>>(),
    );
    let stalls = results.loads.iter().flat_map(|e| {
        e.latencies.iter().map(move |(name, l)| {
            vec![
                format!("{} {name}", e.load),
                thousands(l.count as f64),
                short(l.p50_us),
                short(l.p999_us),
                short(l.longest_us / 1e3),
            ]
        })
    });
    let stalls = table::format(
        &["as the application saw it", "count", "p50 µs", "p99.9 µs", "longest ms"],
        &stalls.collect::<Vec<_>>(),
    );
    let rates = results.loads.iter().map(|e| {
        vec![
            e.load.clone(),
            short(e.seconds),
            short(e.pools),
            short(e.bytes_s / 1e6),
            short(e.plain_bytes_s / 1e6),
            short(e.bytes_s / e.plain_bytes_s.max(1.0)),
            short(100.0 * e.disk_busy),
            short(100.0 * e.daemon_cpu),
            thousands(e.left as f64),
            thousands(e.around as f64),
        ]
    });
    let header = [
        "load",
        "s",
        "pools",
        "MB/s",
        "plain MB/s",
        "of it",
        "disk busy %",
        "daemon CPU %",
        "left",
        "around",
    ];
    let rates = table::format(&header, &rates.collect::<Vec<_>>());
    let medium = format!(
        "\n  medium of the log: {}\n  data on:           {}\n",
        results.medium, results.machine.filesystem
    );
    format!("{growth}\n{stalls}\n{rates}{medium}")
}
