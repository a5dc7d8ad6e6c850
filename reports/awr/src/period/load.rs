//! The load profile, and instance efficiency.

use super::figures::{Load, Period};
use crate::delta::Deltas;
use crate::model::Snapshot;

/// Fills in what the database counted.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    match period.target.product.as_str() {
        "PostgreSQL" => postgres(period, deltas),
        "MariaDB" => mariadb(period, deltas),
        "Redis" => redis(period, deltas),
        _ => {}
    }
}

/// Transactions a second between each snapshot and the next, where counters did not begin again.
pub fn rates(snapshots: &[Snapshot]) -> Vec<f64> {
    let rate = |pair: &[Snapshot]| {
        let deltas = Deltas::over(pair);
        let passed = pair[1].at.up_s - pair[0].at.up_s;
        let mut period = Period { target: pair[1].target.clone(), ..Period::default() };
        fill(&mut period, &deltas);
        let whole = deltas.warnings.is_empty() && pair[0].at.boot_id == pair[1].at.boot_id && passed > 0.0;
        period.transactions.filter(|_| whole).map(|n| n / passed)
    };
    snapshots.windows(2).filter_map(rate).collect()
}

fn add(period: &mut Period, name: &str, unit: &str, total: Option<f64>) {
    if let Some(total) = total {
        period.load.push(Load { name: name.into(), total, unit: unit.into() });
    }
}

fn ratio(period: &mut Period, name: &str, part: Option<f64>, whole: Option<f64>) {
    if let (Some(part), Some(whole)) = (part, whole.filter(|w| *w > 0.0)) {
        period.efficiency.push((name.into(), part * 100.0 / whole));
    }
}

fn postgres(period: &mut Period, deltas: &Deltas) {
    let database = |name: &str| deltas.sum("pg_stat_database", name);
    let wal = |name: &str| deltas.sum("pg_stat_wal", name);
    let bgwriter = |name: &str| {
        deltas.sum("pg_stat_bgwriter", name).or_else(|| deltas.sum("pg_stat_checkpointer", name))
    };
    let both = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    period.db_time_s = database("active_time").map(|ms| ms / 1e3);
    period.db_cpu_s = deltas.sum("server", "cpu_s");
    period.transactions = both(database("xact_commit"), database("xact_rollback"));
    let (hit, read) = (database("blks_hit"), database("blks_read"));
    let checkpoint_writes = bgwriter("buffers_checkpoint").or_else(|| bgwriter("buffers_written"));
    let changed =
        ["tup_inserted", "tup_updated", "tup_deleted"].iter().filter_map(|name| database(name)).sum();
    let rows = [
        ("DB time", "s", period.db_time_s),
        ("Server CPU", "s", period.db_cpu_s),
        ("Redo size", "bytes", wal("wal_bytes")),
        ("Full-page images in redo", "", wal("wal_fpi")),
        ("Log syncs", "", wal("wal_sync")),
        ("Logical reads (blocks)", "", both(hit, read)),
        ("Physical reads (blocks)", "", read),
        ("Blocks written by checkpoints", "", checkpoint_writes),
        ("Blocks written by the background writer", "", bgwriter("buffers_clean")),
        ("Blocks written by sessions", "", bgwriter("buffers_backend")),
        ("Rows read", "", database("tup_fetched")),
        ("Rows changed", "", Some(changed).filter(|_| read.is_some())),
        ("Temporary files", "bytes", database("temp_bytes")),
        ("Executes (SQL)", "", deltas.sum("pg_stat_statements", "calls")),
        ("Logons", "", database("sessions")),
        ("Rollbacks", "", database("xact_rollback")),
        ("Deadlocks", "", database("deadlocks")),
        ("Transactions", "", period.transactions),
    ];
    rows.into_iter().for_each(|(name, unit, total)| add(period, name, unit, total));
    ratio(period, "Buffer hit %", hit, both(hit, read));
    ratio(period, "Commits of transactions %", database("xact_commit"), period.transactions);
    let (timed, asked) = (
        bgwriter("checkpoints_timed").or_else(|| bgwriter("num_timed")),
        bgwriter("checkpoints_req").or_else(|| bgwriter("num_requested")),
    );
    ratio(period, "Checkpoints by time, not for want of log space %", timed, both(timed, asked));
    let written = [checkpoint_writes, bgwriter("buffers_clean"), bgwriter("buffers_backend")]
        .into_iter()
        .flatten()
        .sum();
    let by_others = checkpoint_writes.map(|n| n + bgwriter("buffers_clean").unwrap_or(0.0));
    ratio(period, "Blocks not written by sessions %", by_others, Some(written));
    ratio(
        period,
        "Log records without a full page %",
        both(wal("wal_records"), wal("wal_fpi").map(|n| -n)),
        wal("wal_records"),
    );
    let kept = [
        ("checkpoints timed", timed),
        ("checkpoints requested", asked),
        ("wal bytes", wal("wal_bytes")),
        ("wal fpi", wal("wal_fpi")),
        ("wal syncs", wal("wal_sync")),
        ("temp bytes", database("temp_bytes")),
        ("physical reads", read),
        ("logical reads", both(hit, read)),
        ("deadlocks", database("deadlocks")),
        ("buffers backend", bgwriter("buffers_backend")),
        ("buffers written", Some(written)),
        ("rollbacks", database("xact_rollback")),
    ];
    period.counters.extend(kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

/// Transactions of MariaDB, of which it has no count of its own: `Handler_commit` counts statements and engines as
/// well. What was said to be committed or rolled back; with autocommit nobody says so, but the binary log knows,
/// and without one every statement that writes is a transaction.
pub fn mariadb_transactions(status: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let sum = |names: &[&str]| {
        let found: Vec<f64> = names.iter().filter_map(|name| status(name)).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>())
    };
    let said = sum(&["Com_commit", "Com_rollback"])?;
    let logged = status("Binlog_commits").unwrap_or(0.0);
    let writes = ["Com_insert", "Com_update", "Com_delete", "Com_replace"];
    let written = sum(&writes).unwrap_or(0.0) + sum(&["Com_insert_select", "Com_load"]).unwrap_or(0.0);
    Some(match logged {
        0.0 if said * 10.0 < written => written,
        logged => f64::max(said, logged),
    })
}

fn mariadb(period: &mut Period, deltas: &Deltas) {
    let status = |name: &str| deltas.get("mariadb status", "", name);
    period.transactions = mariadb_transactions(status);
    // Statements as performance_schema times them; or what userstat counts; else samples must do.
    let statements = deltas.sum("performance_schema statements", "time_ms").map(|ms| ms / 1e3);
    period.db_time_s = statements.or_else(|| status("Busy_time").filter(|s| *s > 0.0));
    period.db_cpu_s = deltas.sum("server", "cpu_s");
    let (requests, reads) = (status("Innodb_buffer_pool_read_requests"), status("Innodb_buffer_pool_reads"));
    let rows = [
        ("DB time", "s", period.db_time_s),
        ("Server CPU", "s", period.db_cpu_s),
        ("Redo size", "bytes", status("Innodb_os_log_written")),
        ("Log syncs", "", status("Innodb_os_log_fsyncs")),
        ("Logical reads (pages)", "", requests),
        ("Physical reads (pages)", "", reads),
        (
            "Physical writes (pages)",
            "",
            status("Innodb_pages_written").or_else(|| status("Innodb_buffer_pool_pages_flushed")),
        ),
        ("Rows read", "", status("Innodb_rows_read").or_else(|| status("Rows_read"))),
        ("Row lock waits", "", status("Innodb_row_lock_waits")),
        ("Log waits (buffer too small)", "", status("Innodb_log_waits")),
        ("Bytes received", "bytes", status("Bytes_received")),
        ("Bytes sent", "bytes", status("Bytes_sent")),
        ("Executes (SQL)", "", status("Questions")),
        ("Logons", "", status("Connections")),
        ("Transactions", "", period.transactions),
    ];
    rows.into_iter().for_each(|(name, unit, total)| add(period, name, unit, total));
    let hits = requests.zip(reads).map(|(all, read)| all - read);
    ratio(period, "Buffer hit %", hits, requests);
}

fn redis(period: &mut Period, deltas: &Deltas) {
    let info = |name: &str| deltas.get("redis info", "", name);
    period.db_time_s = info("command time us").map(|us| us / 1e6);
    period.db_cpu_s = info("used_cpu_user").zip(info("used_cpu_sys")).map(|(user, system)| user + system);
    period.transactions = info("total_commands_processed");
    let rows = [
        ("DB time", "s", period.db_time_s),
        ("Time in commands", "s", period.db_time_s),
        ("Server CPU", "s", period.db_cpu_s),
        ("Key hits", "", info("keyspace_hits")),
        ("Key misses", "", info("keyspace_misses")),
        ("Bytes received", "bytes", info("total_net_input_bytes")),
        ("Bytes sent", "bytes", info("total_net_output_bytes")),
        ("Delayed syncs of the append-only file", "", info("aof_delayed_fsync")),
        ("Logons", "", info("total_connections_received")),
        ("Transactions (commands)", "", period.transactions),
    ];
    rows.into_iter().for_each(|(name, unit, total)| add(period, name, unit, total));
    let (hits, misses) = (info("keyspace_hits"), info("keyspace_misses"));
    ratio(period, "Key hit %", hits, hits.zip(misses).map(|(h, m)| h + m));
}

#[cfg(test)]
mod tests {
    use super::mariadb_transactions;

    #[test]
    fn a_transaction_of_mariadb_is_what_its_client_takes_for_one() {
        let of = |values: &'static [(&'static str, f64)]| {
            mariadb_transactions(move |name| values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v))
        };
        // BEGIN … COMMIT with four statements each; the handler's count is ten times as high.
        assert_eq!(
            of(&[("Com_commit", 100.0), ("Com_update", 400.0), ("Handler_commit", 1000.0)]),
            Some(100.0)
        );
        assert_eq!(of(&[("Com_commit", 0.0), ("Com_insert", 70.0), ("Handler_commit", 140.0)]), Some(70.0));
        assert_eq!(of(&[("Com_commit", 0.0), ("Com_insert", 70.0), ("Binlog_commits", 69.0)]), Some(69.0));
        assert_eq!(of(&[]), None);
    }
}
