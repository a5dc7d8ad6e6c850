//! What PostgreSQL counted.

use crate::delta::Deltas;
use crate::period::figures::Period;

/// Fills it in.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    let counted = Counted(deltas);
    period.db_time_s = counted.database("active_time").map(|ms| ms / 1e3);
    period.db_cpu_s = deltas.sum("server", "cpu_s");
    period.transactions = both(counted.database("xact_commit"), counted.database("xact_rollback"));
    fill_load(period, &counted);
    fill_efficiency(period, &counted);
    fill_counters(period, &counted);
}

/// The deltas, by the views that they are of.
struct Counted<'d>(&'d Deltas);

impl Counted<'_> {
    fn database(&self, name: &str) -> Option<f64> {
        self.0.sum("pg_stat_database", name)
    }

    fn wal(&self, name: &str) -> Option<f64> {
        self.0.sum("pg_stat_wal", name)
    }

    /// Checkpoints have a view of their own since version 17, with other names.
    fn bgwriter(&self, name: &str) -> Option<f64> {
        self.0.sum("pg_stat_bgwriter", name).or_else(|| self.0.sum("pg_stat_checkpointer", name))
    }

    fn logical_reads(&self) -> Option<f64> {
        both(self.database("blks_hit"), self.database("blks_read"))
    }

    fn checkpoint_writes(&self) -> Option<f64> {
        self.bgwriter("buffers_checkpoint").or_else(|| self.bgwriter("buffers_written"))
    }

    /// Blocks that anybody wrote.
    fn writes(&self) -> f64 {
        let writers =
            [self.checkpoint_writes(), self.bgwriter("buffers_clean"), self.bgwriter("buffers_backend")];
        writers.into_iter().flatten().sum()
    }

    /// Checkpoints by time, and those that were asked for.
    fn checkpoints(&self) -> [Option<f64>; 2] {
        [("checkpoints_timed", "num_timed"), ("checkpoints_req", "num_requested")]
            .map(|(before, now)| self.bgwriter(before).or_else(|| self.bgwriter(now)))
    }
}

fn both(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

fn fill_load(period: &mut Period, counted: &Counted<'_>) {
    let read = counted.database("blks_read");
    let changes = ["tup_inserted", "tup_updated", "tup_deleted"];
    let changed = changes.iter().filter_map(|name| counted.database(name)).sum();
    let rows = [
        ("DB time", "s", period.db_time_s),
        ("Server CPU", "s", period.db_cpu_s),
        ("Redo size", "bytes", counted.wal("wal_bytes")),
        ("Full-page images in redo", "", counted.wal("wal_fpi")),
        ("Log syncs", "", counted.wal("wal_sync")),
        ("Logical reads (blocks)", "", counted.logical_reads()),
        ("Physical reads (blocks)", "", read),
        ("Blocks written by checkpoints", "", counted.checkpoint_writes()),
        ("Blocks written by the background writer", "", counted.bgwriter("buffers_clean")),
        ("Blocks written by sessions", "", counted.bgwriter("buffers_backend")),
        ("Rows read", "", counted.database("tup_fetched")),
        ("Rows changed", "", Some(changed).filter(|_| read.is_some())),
        ("Temporary files", "bytes", counted.database("temp_bytes")),
        ("Executes (SQL)", "", counted.0.sum("pg_stat_statements", "calls")),
        ("Logons", "", counted.database("sessions")),
        ("Rollbacks", "", counted.database("xact_rollback")),
        ("Deadlocks", "", counted.database("deadlocks")),
        ("Transactions", "", period.transactions),
    ];
    rows.into_iter().for_each(|row| period.add_load(row));
}

fn fill_efficiency(period: &mut Period, counted: &Counted<'_>) {
    let [timed, asked] = counted.checkpoints();
    let clean = counted.bgwriter("buffers_clean").unwrap_or(0.0);
    let by_others = counted.checkpoint_writes().map(|n| n + clean);
    let records = counted.wal("wal_records");
    let without_page = both(records, counted.wal("wal_fpi").map(|n| -n));
    period.add_ratio("Buffer hit %", counted.database("blks_hit"), counted.logical_reads());
    period.add_ratio("Commits of transactions %", counted.database("xact_commit"), period.transactions);
    period.add_ratio("Checkpoints by time, not for want of log space %", timed, both(timed, asked));
    period.add_ratio("Blocks not written by sessions %", by_others, Some(counted.writes()));
    period.add_ratio("Log records without a full page %", without_page, records);
}

/// What findings look at.
fn fill_counters(period: &mut Period, counted: &Counted<'_>) {
    let [timed, asked] = counted.checkpoints();
    let kept = [
        ("checkpoints timed", timed),
        ("checkpoints requested", asked),
        ("wal bytes", counted.wal("wal_bytes")),
        ("wal fpi", counted.wal("wal_fpi")),
        ("wal syncs", counted.wal("wal_sync")),
        ("temp bytes", counted.database("temp_bytes")),
        ("physical reads", counted.database("blks_read")),
        ("logical reads", counted.logical_reads()),
        ("deadlocks", counted.database("deadlocks")),
        ("buffers backend", counted.bgwriter("buffers_backend")),
        ("buffers written", Some(counted.writes())),
        ("rollbacks", counted.database("xact_rollback")),
    ];
    period.counters.extend(kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}
