//! What MariaDB counted.

use crate::delta::Deltas;
use crate::period::figures::Period;

/// Fills it in.
pub fn fill(period: &mut Period, deltas: &Deltas) {
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
    rows.into_iter().for_each(|row| period.add_load(row));
    let hits = requests.zip(reads).map(|(all, read)| all - read);
    period.add_ratio("Buffer hit %", hits, requests);
}

/// Transactions of MariaDB, of which it has no count of its own: `Handler_commit` counts statements and engines as
/// well. It is the number of COMMIT and ROLLBACK statements; with autocommit there are none, but the binary log knows,
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
