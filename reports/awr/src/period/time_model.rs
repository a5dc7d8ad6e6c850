//! The time model: what took how long, by the database's own clocks; and everything else it counts.
//!
//! Rows are parts of each other and overlap, as in AWR. A time that the database does not take is absent.

use super::figures::Period;
use crate::delta::Deltas;

/// Kinds whose counters are instance activity.
const ACTIVITY: [&str; 7] = [
    "pg_stat_database",
    "pg_stat_bgwriter",
    "pg_stat_checkpointer",
    "pg_stat_wal",
    "mariadb status",
    "redis info",
    "server",
];

/// Fills in both.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    let model = rows(period, deltas);
    let positive = |(name, seconds): (&str, Option<f64>)| {
        seconds.filter(|seconds| *seconds > 0.0).map(|seconds| (name.to_owned(), seconds))
    };
    period.time_model = model.into_iter().filter_map(positive).collect();
    for kind in ACTIVITY {
        let mut sums = std::collections::BTreeMap::<String, f64>::new();
        for (_, delta) in deltas.of(kind) {
            delta.counters.iter().for_each(|(name, n)| *sums.entry(name.clone()).or_default() += n);
        }
        let named = |(name, n): (String, f64)| (n != 0.0).then(|| (activity_name(kind, &name), n));
        period.activity.extend(sums.into_iter().filter_map(named));
    }
}

fn activity_name(kind: &str, counter: &str) -> String {
    if kind.starts_with("pg_") {
        format!("{}.{counter}", &kind["pg_stat_".len()..])
    } else {
        counter.to_owned()
    }
}

fn rows(period: &Period, deltas: &Deltas) -> Vec<(&'static str, Option<f64>)> {
    let ms = |kind: &str, counter: &str| deltas.sum(kind, counter).map(|ms| ms / 1e3);
    let database = |counter: &str| ms("pg_stat_database", counter);
    let statements = |counter: &str| ms("pg_stat_statements", counter);
    let checkpoints =
        |old: &str, new: &str| ms("pg_stat_bgwriter", old).or_else(|| ms("pg_stat_checkpointer", new));
    let status = |counter: &str| deltas.sum("mariadb status", counter);
    let schema = |counter: &str| ms("performance_schema statements", counter);
    vec![
        ("DB time", period.db_time_s),
        ("DB CPU (all server processes)", period.db_cpu_s),
        ("sql execute elapsed time", statements("total_exec_time").or_else(|| statements("total_time"))),
        ("parse and plan time", statements("total_plan_time")),
        ("JIT compilation time", statements("jit_generation_time")),
        ("data file reads in sessions", database("blk_read_time")),
        ("data file writes in sessions", database("blk_write_time")),
        ("log writes", ms("pg_stat_wal", "wal_write_time")),
        ("log syncs", ms("pg_stat_wal", "wal_sync_time")),
        ("checkpoint writes (spread out on purpose)", checkpoints("checkpoint_write_time", "write_time")),
        ("checkpoint syncs", checkpoints("checkpoint_sync_time", "sync_time")),
        ("sessions idle in transaction", database("idle_in_transaction_time")),
        ("session time (connected)", database("session_time")),
        ("sql execute elapsed time (performance_schema)", schema("time_ms")),
        ("waits for table locks", schema("lock_ms")),
        ("waits for row locks", status("Innodb_row_lock_time").map(|ms| ms / 1e3)),
        ("busy time (userstat)", status("Busy_time")),
        ("CPU time of sessions (userstat)", status("Cpu_time")),
        ("commands", deltas.sum("redis info", "command time us").map(|us| us / 1e6)),
        ("CPU of children (save, rewrite)", {
            let info = |name: &str| deltas.sum("redis info", name);
            info("used_cpu_user_children")
                .zip(info("used_cpu_sys_children"))
                .map(|(user, system)| user + system)
        }),
    ]
}
