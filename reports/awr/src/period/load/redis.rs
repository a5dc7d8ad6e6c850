//! What Redis counted.

use crate::delta::Deltas;
use crate::period::figures::Period;

/// Fills it in.
pub fn fill(period: &mut Period, deltas: &Deltas) {
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
    rows.into_iter().for_each(|row| period.add_load(row));
    let (hits, misses) = (info("keyspace_hits"), info("keyspace_misses"));
    period.add_ratio("Key hit %", hits, hits.zip(misses).map(|(h, m)| h + m));
}
