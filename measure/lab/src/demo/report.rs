//! The demo's result: as data, and as text.

use serde::{Deserialize, Serialize};

use super::kill::{BareStart, KillReport};
use crate::cli::DemoOptions;
use crate::compare::Three;
use crate::lab::Lab;
use crate::machine::{self, Machine};
use crate::pg::{Bench, SETTINGS};
use crate::sqlite;
use crate::table::{self, short, thousands};

/// Everything the demo found.
#[derive(Debug, Serialize, Deserialize)]
pub struct DemoReport {
    /// The pool's medium, as `seawall status` names it.
    pub medium: String,
    pub machine: Machine,
    /// When it ended, in UTC.
    #[serde(default)]
    pub date: String,
    /// What ran, by name.
    #[serde(default)]
    pub versions: Vec<(String, String)>,
    pub rounds: usize,
    pub seconds: u64,
    pub scale: u32,
    pub pool_bytes: u64,
    /// What was the same on every side.
    pub settings: Vec<(String, String)>,
    pub rows: Vec<Row>,
    pub kills: Vec<KillReport>,
}

/// One measured load.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// e.g. `PostgreSQL, simple-update`.
    pub group: String,
    /// e.g. `4 clients`.
    pub label: String,
    /// Transactions a second.
    pub tps: Three,
}

impl DemoReport {
    /// Without results yet.
    pub fn new(lab: &Lab, options: &DemoOptions) -> Self {
        DemoReport {
            medium: lab.medium().to_owned(),
            machine: lab.machine.clone(),
            date: machine::now(),
            versions: vec![("Seawall".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            rounds: options.rounds,
            seconds: options.seconds,
            scale: options.scale,
            pool_bytes: lab.pool.size(),
            settings: SETTINGS.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            rows: Vec::new(),
            kills: Vec::new(),
        }
    }

    /// Notes what ran.
    pub fn add_version(&mut self, name: &str, version: &str) {
        self.versions.push((name.to_owned(), version.to_owned()));
    }

    /// One line on where all this comes from.
    pub fn about(&self) -> String {
        let machine = &self.machine;
        let versions: Vec<String> = self.versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
        format!("{} · {} · {} CPUs · {}", self.date, versions.join(" · "), machine.cpus, machine.filesystem)
    }

    /// How often and how long each figure was measured.
    pub fn rounds_in_words(&self) -> String {
        match self.rounds {
            1 => format!("One round of {} s, so it says nothing about the spread", self.seconds),
            rounds => format!("Median of {rounds} interleaved rounds of {} s", self.seconds),
        }
    }

    /// Adds pgbench's results.
    pub fn add_postgres(&mut self, results: Vec<(Bench, Three)>) {
        self.rows.extend(results.into_iter().map(|(shape, tps)| Row {
            group: format!("PostgreSQL, {}", shape.test.title()),
            label: shape.clients_in_words(),
            tps,
        }));
    }

    /// Adds SQLite's results.
    pub fn add_sqlite(&mut self, results: Vec<(sqlite::Shape, Three)>) {
        self.rows.extend(results.into_iter().map(|(shape, tps)| Row {
            group: "SQLite, insert + update".to_owned(),
            label: format!("{} journal", shape.journal.pragma().to_uppercase()),
            tps,
        }));
    }

    /// What must make the demo fail.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for kill in &self.kills {
            let verdict = &kill.verdict;
            if verdict.missing > 0 {
                faults.push(format!(
                    "{} acknowledged commits are MISSING after kill -9 of {}",
                    verdict.missing, kill.what
                ));
            }
            faults.extend(
                verdict.integrity_errors.iter().map(|e| format!("after kill -9 of {}: {e}", kill.what)),
            );
            if matches!(kill.bare_start, Some(BareStart::Started)) {
                faults.push("a bare start on an unreplayed log was not refused".to_owned());
            }
        }
        faults
    }

    /// The tables for the terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.rows.is_empty() {
            text += &format!("\nTransactions per second. {} (lowest–highest).\n\n", self.rounds_in_words());
            text += &self.rates();
        }
        if !self.kills.is_empty() {
            text += "\nkill -9 at full load, then compared with the ledger kept outside the database\n\n";
            text += &self.losses();
        }
        text += &format!("\n  medium of the log: {}\n", self.medium);
        text += &format!("  data on:           {}\n", self.machine.filesystem);
        text + "  unsafe bound:      fsync=off (PostgreSQL), synchronous=OFF (SQLite): loses commits at a power cut\n"
    }

    fn rates(&self) -> String {
        let header = ["", "bare file system", "Seawall", "unsafe bound", "gain", "of unsafe"];
        let cell = |s: &crate::spread::Spread| s.told(thousands);
        let rows = self.rows.iter().map(|row| {
            let t = &row.tps;
            let verdict = t.verdict(self.rounds);
            let gain = if verdict.is_shown() {
                format!("{}×", short(t.speedup.median))
            } else {
                verdict.in_words()
            };
            let name = format!("{}, {}", row.group, row.label);
            vec![name, cell(&t.fs), cell(&t.seawall), cell(&t.unsafe_bound), gain, short(t.of_unsafe.median)]
        });
        table::format(&header, &rows.collect::<Vec<_>>())
    }

    fn losses(&self) -> String {
        let header =
            ["killed", "acknowledged", "missing", "checkers", "in flight, kept", "processes", "ready again"];
        let rows: Vec<Vec<String>> = self
            .kills
            .iter()
            .map(|kill| {
                let v = &kill.verdict;
                let sound = if v.integrity_errors.is_empty() { "sound" } else { "ERRORS" };
                let ready = kill.restart_seconds.map_or("–".to_owned(), |s| format!("{s:.1} s"));
                vec![
                    kill.what.clone(),
                    thousands(v.acknowledged as f64),
                    v.missing.to_string(),
                    sound.to_owned(),
                    v.unacknowledged.to_string(),
                    kill.processes.to_string(),
                    ready,
                ]
            })
            .collect();
        let mut text = table::format(&header, &rows);
        for kill in &self.kills {
            match &kill.bare_start {
                Some(BareStart::Refused(words)) => {
                    let first = words.lines().next().unwrap_or_default();
                    text +=
                        &format!("\n  a start without Seawall before recovery was refused:\n    {first}\n");
                }
                Some(BareStart::Started) => {
                    text += "\n  a start without Seawall before recovery was NOT refused\n"
                }
                None => {}
            }
        }
        text
    }
}
