//! MariaDB and MySQL: `SHOW GLOBAL STATUS`, settings, waits, statements and files of `performance_schema` where
//! it is on (in Debian it is not), and samples of what sessions are doing, which need nothing.

mod client;
mod sample;

use std::path::Path;

use anyhow::Result;
use client::Client;

use crate::database::connection::Database;
use crate::machine::{self, process};
use crate::model::{Reading, Sample, Snapshot, Target};

/// What is asked of `performance_schema`: its kind here, the question, its counters in the columns' order (those
/// that end in `ms` are picoseconds there), how many rows at most.
const SCHEMA: [(&str, &str, &[&str], usize); 4] = [
    (
        "performance_schema",
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name \
         WHERE COUNT_STAR > 0 AND EVENT_NAME NOT LIKE 'idle%'",
        &["count", "time_ms"],
        usize::MAX,
    ),
    (
        "performance_schema statements",
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT, SUM_LOCK_TIME, SUM_ROWS_EXAMINED \
         FROM performance_schema.events_statements_summary_global_by_event_name WHERE COUNT_STAR > 0",
        &["count", "time_ms", "lock_ms", "rows_examined"],
        usize::MAX,
    ),
    (
        "performance_schema digest",
        "SELECT CONCAT_WS('.', DIGEST, SCHEMA_NAME), COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_SENT + SUM_ROWS_AFFECTED, \
         SUM_ROWS_EXAMINED, LEFT(DIGEST_TEXT, 1000) FROM performance_schema.events_statements_summary_by_digest \
         WHERE DIGEST IS NOT NULL AND DIGEST_TEXT NOT LIKE '%performance_schema%' \
         AND DIGEST_TEXT NOT LIKE '%information_schema%' AND DIGEST_TEXT NOT LIKE 'SHOW GLOBAL %' \
         AND DIGEST_TEXT <> 'SELECT ?' ORDER BY SUM_TIMER_WAIT DESC LIMIT 300",
        &["calls", "time_ms", "rows", "rows_examined"],
        300,
    ),
    (
        "performance_schema file",
        "SELECT FILE_NAME, COUNT_READ, SUM_TIMER_READ, SUM_NUMBER_OF_BYTES_READ, COUNT_WRITE, SUM_TIMER_WRITE, \
         SUM_NUMBER_OF_BYTES_WRITE, COUNT_MISC, SUM_TIMER_MISC, EVENT_NAME FROM performance_schema.file_summary_by_instance \
         WHERE COUNT_STAR > 0 ORDER BY SUM_TIMER_WAIT DESC LIMIT 300",
        &["reads", "read_ms", "read_bytes", "writes", "write_ms", "write_bytes", "misc", "misc_ms"],
        300,
    ),
];

const OFF: &str = "performance_schema is off, as Debian ships it: waits and statements are not timed, and DB time comes \
                   from samples alone. To turn it on: performance_schema=ON below [mariadbd], restart. Without a restart: \
                   SET GLOBAL userstat=1 gives DB time";

/// Names of status variables that do not only grow: their beginnings, or ends.
const GAUGES: [&str; 12] = [
    "Threads_",
    "Open_",
    "Max_used",
    "Innodb_buffer_pool_pages_",
    "Innodb_buffer_pool_bytes_",
    "Innodb_row_lock_current",
    "Innodb_page_size",
    "Innodb_checkpoint_",
    "Innodb_history",
    "Innodb_num_open",
    "Innodb_mem",
    "Memory_used",
];

/// A connection.
pub struct Mariadb {
    client: Client,
    /// The server's process, if it runs on this machine.
    pid: Option<u32>,
    /// What samples are asked with.
    samples: &'static str,
}

impl Mariadb {
    /// Checks that it answers.
    pub fn connect(socket: &Path) -> Result<Self> {
        let mut client = Client::start(socket)?;
        let file = client.rows("SELECT @@pid_file, @@datadir")?;
        let pid =
            file.first().and_then(|row| process::of_file(row.first()?, row.get(1)?, &["mariadbd", "mysqld"]));
        let seen = client.rows(sample::ARE_WAITS_SEEN).unwrap_or_default();
        let seen = seen.first().and_then(|row| row.first()).is_some_and(|n| n != "0");
        let samples = if seen { sample::SQL_WITH_WAITS } else { sample::SQL };
        Ok(Self { client, pid, samples })
    }

    /// One table of `performance_schema`, and the words of its last column.
    fn table(&mut self, sql: &str, names: &[&str], kind: &str, epoch: &str) -> Result<Vec<Reading>> {
        let rows = self.client.rows(sql)?;
        Ok(rows.iter().filter_map(|row| schema_reading(kind, names, row, epoch)).collect())
    }
}

impl Database for Mariadb {
    fn target(&mut self) -> Result<Target> {
        let rows = self.client.rows("SELECT VERSION(), @@hostname, @@port, @@datadir")?;
        let [version, host, port, data] = rows.first().map(Vec::as_slice).unwrap_or_default() else {
            anyhow::bail!("MariaDB does not say which server it is");
        };
        Ok(Target {
            product: "MariaDB".into(),
            version: version.clone(),
            id: format!("mariadb {host}:{port} {data}"),
            name: format!("{host}:{port}"),
            host: machine::host_name(),
        })
    }

    fn capture(&mut self, snapshot: &mut Snapshot) -> Result<()> {
        let status = self.client.rows("SHOW GLOBAL STATUS")?;
        let status = status_reading(&status, snapshot.at.wall_ms);
        let epoch = status.epoch.clone();
        snapshot.add("mariadb status", true, vec![status]);
        let mut settings = Reading::new("settings", "", "");
        let pairs = self.client.rows("SHOW GLOBAL VARIABLES")?;
        settings.facts.extend(
            pairs.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok()).map(|[n, v]| (n, v)),
        );
        let is_on = settings.facts.get("performance_schema").is_some_and(|value| value == "ON");
        let data = settings.facts.get("datadir").cloned();
        snapshot.add("settings", true, vec![settings]);
        for (kind, sql, names, limit) in SCHEMA.iter().filter(|_| is_on) {
            match self.table(sql, names, kind, &epoch) {
                Ok(readings) => snapshot.add(kind, readings.len() < *limit, readings),
                Err(e) if self.client.is_gone() => return Err(e),
                Err(e) => snapshot.notes.push(format!("{kind}: {e:#}")),
            }
        }
        snapshot.notes.extend((!is_on).then(|| OFF.to_owned()));
        if let Some(pid) = self.pid {
            snapshot.add("server", true, process::of_one(pid, &epoch).into_iter().collect());
            let storage = data.and_then(|data| machine::storage("data", &data));
            snapshot.add("storage", true, storage.into_iter().collect());
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<Vec<Sample>> {
        let at_ms = crate::clock::wall_ms();
        Ok(self.client.rows(self.samples)?.iter().filter_map(|row| sample::sample(at_ms, row)).collect())
    }
}

fn status_reading(rows: &[Vec<String>], wall_ms: i64) -> Reading {
    let value = |name: &str| rows.iter().find(|row| row[0] == name)?.get(1)?.parse::<f64>().ok();
    // To the minute: uptime is in whole seconds. FLUSH STATUS begins again as well.
    let up = value("Uptime_since_flush_status").or_else(|| value("Uptime")).unwrap_or(0.0);
    let started = ((wall_ms as f64 / 1000.0 - up) / 60.0).round();
    let mut reading = Reading::new("mariadb status", "", started.to_string());
    for row in rows {
        let [name, value] = row.as_slice() else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        let gauge = GAUGES.iter().any(|prefix| name.starts_with(prefix)) || name.starts_with("Uptime");
        let into = if gauge { &mut reading.gauges } else { &mut reading.counters };
        into.insert(name.clone(), value);
    }
    reading
}

/// A row: its name, the counters, and a word if there is one more column.
fn schema_reading(kind: &str, names: &[&str], row: &[String], epoch: &str) -> Option<Reading> {
    let (item, rest) = row.split_first()?;
    let mut reading = Reading::new(kind, item.trim_start_matches("./"), epoch);
    for (name, value) in names.iter().zip(rest) {
        let value: f64 = value.parse().ok()?;
        reading = reading.counter(name, if name.ends_with("ms") { value / 1e9 } else { value });
    }
    Some(match rest.get(names.len()) {
        Some(words) => reading.fact("query", words.replace("\\n", " ")),
        None => reading,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_variables_are_counters_or_gauges() {
        let rows = [("Com_commit", "7"), ("Threads_running", "2"), ("Uptime", "120"), ("Rsa_key", "")];
        let rows: Vec<_> = rows.iter().map(|(n, v)| vec![(*n).into(), (*v).into()]).collect();
        let reading = status_reading(&rows, 600_000);
        assert_eq!((reading.counters.len(), reading.counters["Com_commit"]), (1, 7.0));
        assert_eq!((reading.gauges["Threads_running"], reading.epoch.as_str()), (2.0, "8"));
    }

    #[test]
    fn timers_are_in_picoseconds_and_the_rest_is_not() {
        let row = ["abc.db", "7", "3000000000", "9", "SELECT\\n1"].map(str::to_owned);
        let found = schema_reading("k", &["calls", "time_ms", "rows"], &row, "e").expect("a reading");
        assert_eq!(
            (found.counters["calls"], found.counters["time_ms"], found.counters["rows"]),
            (7.0, 3.0, 9.0)
        );
        assert_eq!((found.item.as_str(), found.facts["query"].as_str()), ("abc.db", "SELECT 1"));
        assert!(schema_reading("k", &["calls"], &["x".into(), "NULL".into()], "e").is_none());
    }
}
