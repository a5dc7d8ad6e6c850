//! Metrics for Prometheus: the text format, from Seawall's status and the database's readings.
//!
//! Invariant: what is called a counter never goes back while this program runs, although files come and go and
//! take their counts along: increments are added up here.

mod block_cache;
mod disks;
mod exposition;
mod keepers;
mod server;
mod totals;

use std::path::PathBuf;

use anyhow::Result;
use exposition::{Exposition, Kind, borders};
use seawall_daemon::journal::JournalStatus;
use seawall_daemon::spill::SpillStatus;
use seawall_daemon::status::{EventStatus, Status};
pub use server::serve;
use totals::{Totals, directory};

use crate::database::{self, Address, Database};
use crate::disks::Find;
use crate::model::Snapshot;
use crate::{clock, seawall};

/// Views whose counters are exported, under their own names.
const VIEWS: [&str; 6] = [
    "pg_stat_database",
    "pg_stat_bgwriter",
    "pg_stat_checkpointer",
    "pg_stat_wal",
    "mariadb status",
    "redis info",
];

/// What is asked at every scrape.
pub struct Exporter {
    pool: Option<PathBuf>,
    address: Option<Address>,
    database: Option<Box<dyn Database>>,
    /// By preset and directory.
    files: Totals<5>,
    /// Those of the block cache, by directory and class.
    cached: block_cache::Files,
    find_disks: Find,
}

const FILE_COUNTERS: [(&str, &str); 5] = [
    ("seawall_writes_total", "Writes that went through the log."),
    ("seawall_written_bytes_total", "Bytes of the writes that went through the log."),
    ("seawall_syncs_absorbed_total", "Syncs that had nothing left to do."),
    ("seawall_syncs_real_total", "Syncs that waited for the disk."),
    ("seawall_writes_around_log_total", "Writes that bypassed the log."),
];

impl Exporter {
    /// Nothing is asked yet.
    pub fn new(pool: Option<PathBuf>, address: Option<Address>) -> Self {
        Self {
            pool,
            address,
            database: None,
            files: Totals::default(),
            cached: block_cache::Files::default(),
            find_disks: |_| Vec::new(),
        }
    }

    /// The same, which exports the disks that are found so.
    #[must_use]
    pub fn with_disks(self, find_disks: Find) -> Self {
        Self { find_disks, ..self }
    }

    /// One answer to a scrape. A metric of its own says what cannot be reached.
    pub fn scrape(&mut self) -> String {
        let mut out = Exposition::default();
        if let Some(pool) = self.pool.clone() {
            let status = seawall::ask(&pool);
            out.value(
                "seawall_up",
                Kind::Gauge,
                "1 if the daemon answers.",
                &[],
                f64::from(u8::from(status.is_ok())),
            );
            if let Ok(status) = status {
                self.log(&mut out, &status);
            }
        }
        if self.address.is_some() {
            let found = self.database();
            out.value(
                "seawall_database_up",
                Kind::Gauge,
                "1 if the database answers.",
                &[],
                f64::from(u8::from(found.is_ok())),
            );
            match found {
                Ok(snapshot) => readings(&mut out, &snapshot),
                Err(_) => self.database = None,
            }
        }
        out.text()
    }

    fn log(&mut self, out: &mut Exposition, s: &Status) {
        let labels = [("medium", s.medium_name.as_str()), ("pool", &s.pool.display().to_string())];
        out.value(
            "seawall_info",
            Kind::Gauge,
            "The medium of the log: emulated survives no power cut.",
            &labels,
            1.0,
        );
        let gauges = [
            ("seawall_log_segments", "Segments of the log.", f64::from(s.segments)),
            (
                "seawall_log_segments_used",
                "Segments of the log in use.",
                f64::from(s.segments - s.segments_free),
            ),
            (
                "seawall_log_backlog_bytes",
                "Bytes in the log that are not known to be in their files.",
                s.backlog_bytes as f64,
            ),
            (
                "seawall_log_backlog_files",
                "Files with bytes in the log that they are not known to have.",
                f64::from(s.backlog_files),
            ),
            ("seawall_clients", "Processes that are attached to the log.", s.clients.len() as f64),
            (
                "seawall_clients_refused",
                "Processes of another version, which were refused.",
                f64::from(s.refused),
            ),
            (
                "seawall_files_untracked",
                "Managed files outside the log.",
                s.files.iter().filter(|f| !f.tracked).count() as f64,
            ),
        ];
        gauges.iter().for_each(|(name, help, value)| out.value(name, Kind::Gauge, help, &[], *value));
        s.journal.iter().for_each(|journal| device(out, journal));
        s.spill.iter().for_each(|area| spill(out, area));
        s.events.iter().for_each(|event| wait(out, event));
        keepers::export(out, s);
        disks::export(out, &(self.find_disks)(&s.clients));
        block_cache::export(out, s, &mut self.cached);
        self.add_files(s);
        self.files.export(out, &FILE_COUNTERS, ("preset", "directory"));
    }

    fn add_files(&mut self, s: &Status) {
        for file in &s.files {
            let counts = [file.writes, file.bytes, file.absorbed, file.real_syncs, file.untracked_writes];
            self.files.add(file.id.clone(), (file.preset.clone(), directory(&file.path)), counts);
        }
        self.files.end(true);
    }

    fn database(&mut self) -> Result<Snapshot> {
        let Some(address) = &self.address else { anyhow::bail!("no database") };
        if self.database.is_none() {
            self.database = Some(database::connect(address)?);
        }
        let mut snapshot = Snapshot { at: clock::now(), ..Snapshot::default() };
        if let Some(database) = &mut self.database {
            database.capture(&mut snapshot)?;
        }
        Ok(snapshot)
    }
}

/// What the log's device was given.
fn device(out: &mut Exposition, journal: &JournalStatus) {
    let counters = [
        ("seawall_device_writes_total", "Writes to the log's device.", journal.device_writes),
        ("seawall_device_bytes_total", "Bytes of the writes to the log's device.", journal.device_bytes),
        (
            "seawall_device_data_bytes_total",
            "Bytes of the log in the writes to its device.",
            journal.data_bytes,
        ),
        ("seawall_device_syncs_total", "Syncs that waited for the log's device.", journal.waits),
    ];
    counters.iter().for_each(|(name, help, n)| out.value(name, Kind::Counter, help, &[], *n as f64));
    let failed = f64::from(u8::from(journal.failed != 0));
    out.value(
        "seawall_device_failed",
        Kind::Gauge,
        "1 if the log's device failed: every sync fails.",
        &[],
        failed,
    );
    if let Some(mirror) = &journal.mirror {
        let copies = mirror.copies.iter().filter(|copy| copy.written).count();
        let help = "Copies of a mirrored log that are written; 1: the other one was lost.";
        out.value("seawall_device_copies", Kind::Gauge, help, &[], copies as f64);
        if let Some(rebuild) = mirror.rebuild.as_ref().filter(|rebuild| rebuild.is_under_way()) {
            let help = "Share of the lost copy that is rebuilt, 0 to 1; absent while none is.";
            let share = rebuild.done as f64 / rebuild.bytes.max(1) as f64;
            out.value("seawall_device_rebuild_ratio", Kind::Gauge, help, &[], share);
        }
    }
}

/// The area behind a small pool.
fn spill(out: &mut Exposition, area: &SpillStatus) {
    let failed = f64::from(u8::from(area.trouble.is_some()));
    let gauges = [
        ("seawall_spill_size_bytes", "Bytes of the spill area.", area.size as f64),
        (
            "seawall_spill_used_bytes",
            "Bytes of the spill area whose records the files may lack.",
            area.used as f64,
        ),
        ("seawall_spill_failed", "1 if nothing is copied to the spill area any more.", failed),
    ];
    gauges.iter().for_each(|(name, help, value)| out.value(name, Kind::Gauge, help, &[], *value));
    let help = "Bytes that were copied to the spill area.";
    out.value("seawall_spill_bytes_total", Kind::Counter, help, &[], area.spilled_bytes as f64);
}

/// A histogram with a border at every power of two.
fn wait(out: &mut Exposition, event: &EventStatus) {
    let help = "Waits, by Seawall's wait events.";
    out.histogram(
        "seawall_wait_seconds",
        help,
        ("event", &event.name),
        &borders(&event.buckets),
        event.sum_ns as f64 / 1e9,
        event.count,
    );
}

fn readings(out: &mut Exposition, snapshot: &Snapshot) {
    for kind in VIEWS {
        for reading in snapshot.of(kind) {
            for (name, value) in &reading.counters {
                let name = format!("{}_{}", plain(kind), plain(name));
                let help = format!("{kind}, as the database counts it.");
                let labels = [("item", reading.item.as_str())];
                out.value(
                    &name,
                    Kind::Counter,
                    &help,
                    if reading.item.is_empty() { &[] } else { &labels },
                    *value,
                );
            }
        }
    }
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
