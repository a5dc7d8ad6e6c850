//! MariaDB and MySQL: `SHOW GLOBAL STATUS`, settings, wait events of `performance_schema` where it is on.
//!
//! The server's own client program asks: it knows the user's option files and every authentication plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::database::Database;
use crate::machine;
use crate::model::{Reading, Snapshot, Target};

const WAITS: &str = "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name \
     WHERE COUNT_STAR > 0 AND EVENT_NAME NOT LIKE 'idle%'";

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

/// Where the server listens.
pub struct Mariadb {
    socket: PathBuf,
}

impl Mariadb {
    /// Checks that it answers.
    pub fn connect(socket: &Path) -> Result<Self> {
        let this = Self { socket: socket.into() };
        this.rows("SELECT 1").map(|_| this)
    }

    fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut client = Command::new("mariadb");
        client.arg("--socket").arg(&self.socket).args(["--batch", "--skip-column-names", "--execute", sql]);
        let said = client
            .output()
            .context("starting `mariadb`, the client that asks the server: is it installed?")?;
        let error = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "MariaDB at {}: {}", self.socket.display(), error.trim());
        let text = String::from_utf8_lossy(&said.stdout);
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }
}

impl Database for Mariadb {
    fn target(&mut self) -> Result<Target> {
        let rows = self.rows("SELECT VERSION(), @@hostname, @@port, @@datadir")?;
        let [version, host, port, data] = rows.first().map(Vec::as_slice).unwrap_or_default() else {
            anyhow::bail!("MariaDB does not say who it is");
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
        let status = self.rows("SHOW GLOBAL STATUS")?;
        let status = status_reading(&status, snapshot.at.wall_ms);
        let epoch = status.epoch.clone();
        snapshot.add("mariadb status", true, vec![status]);
        let mut settings = Reading::new("settings", "", "");
        let pairs = self.rows("SHOW GLOBAL VARIABLES")?;
        settings.facts.extend(
            pairs.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok()).map(|[n, v]| (n, v)),
        );
        snapshot.add("settings", true, vec![settings]);
        match self.rows(WAITS) {
            Ok(rows) if !rows.is_empty() => {
                snapshot.add(
                    "performance_schema",
                    true,
                    rows.iter().filter_map(|row| wait(row, &epoch)).collect(),
                );
            }
            Ok(_) => snapshot.notes.push(
                "performance_schema is off: wait events are missing (performance_schema=ON, restart)".into(),
            ),
            Err(e) => snapshot.notes.push(format!("performance_schema: {e:#}")),
        }
        Ok(())
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

/// Timers are in picoseconds.
fn wait(row: &[String], epoch: &str) -> Option<Reading> {
    let [name, count, picoseconds] = row else { return None };
    let reading = Reading::new("performance_schema", name, epoch).counter("count", count.parse().ok()?);
    Some(reading.counter("time_ms", picoseconds.parse::<f64>().ok()? / 1e9))
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
}
