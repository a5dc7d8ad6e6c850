//! `seawall top`: what happens now, once a second, for a terminal.
//!
//! Input: two looks at the daemon (and at the database's count of commits), and the time between them. Output:
//! one frame of text. The medium's label stands in every frame.

mod history;

use std::fmt::Write;

pub use history::History;
use history::sparkline;
use seawall_daemon::status::{EventStatus, FileStatus, RootStatus, Status};
use seawall_page::scale::{bytes, digits, time};

const BAR: usize = 30;

/// One look.
pub struct Look {
    /// What the daemon says.
    pub status: Status,
    /// Transactions that the database has counted, if one is asked.
    pub transactions: Option<f64>,
}

/// The frame for what happened between two looks.
pub fn frame(before: &Look, now: &Look, seconds: f64, history: &mut History) -> String {
    let mut out = String::new();
    let s = &now.status;
    let _ = writeln!(out, "Seawall · {} · {}", s.medium, s.pool.display());
    let _ = writeln!(out, "{}", log_line(&before.status, s, seconds));
    let synced = |s: &Status| s.files.iter().map(|f| f.absorbed + f.real_syncs).sum::<u64>() as f64;
    let syncs = (synced(s) - synced(&before.status)).max(0.0) / seconds;
    let commits = now.transactions.zip(before.transactions).map(|(b, a)| (b - a).max(0.0) / seconds);
    let commits = commits.map_or_else(String::new, |rate| format!("transactions/s {}   ", digits(rate)));
    let _ = writeln!(
        out,
        "{commits}syncs/s {}   processes {}   refused {}\n",
        digits(syncs),
        s.clients.len(),
        s.refused
    );
    waits(&mut out, &before.status, s, seconds, history);
    directories(&mut out, &before.status, s, seconds);
    out
}

/// How full the log is, and how fast it fills and empties.
fn log_line(before: &Status, now: &Status, seconds: f64) -> String {
    let used = now.segments - now.segments_free;
    let share = f64::from(used) / f64::from(now.segments.max(1));
    let full = ((share * BAR as f64).round() as usize).min(BAR);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
    let logged = (logged_bytes(now) - logged_bytes(before)).max(0.0);
    let backlog = now.backlog_bytes as f64 - before.backlog_bytes as f64;
    let destaged = (logged - backlog).max(0.0);
    format!(
        "log {bar} {:.0} % of {}   logged {}/s   destaged {}/s   to destage {} in {} files",
        share * 100.0,
        bytes(now.size as f64),
        bytes(logged / seconds),
        bytes(destaged / seconds),
        bytes(now.backlog_bytes as f64),
        now.backlog_files
    )
}

fn logged_bytes(s: &Status) -> f64 {
    s.files.iter().map(|f| f.bytes as f64).sum()
}

fn waits(out: &mut String, before: &Status, now: &Status, seconds: f64, history: &mut History) {
    let heads = ["waits", "/s", "mean", "p50", "p99", "p99.9", "longest"];
    let _ = writeln!(
        out,
        "{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  last half minute",
        heads[0], heads[1], heads[2], heads[3], heads[4], heads[5], heads[6]
    );
    for event in &now.events {
        let earlier = before.events.iter().find(|e| e.name == event.name);
        let count = event.count.saturating_sub(earlier.map_or(0, |e| e.count));
        let rates = history.add(&event.name, count as f64 / seconds);
        let grown = Grown::of(earlier, event);
        let show = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| time(ns as f64));
        let _ = writeln!(
            out,
            "{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  {}",
            event.name,
            digits(count as f64 / seconds),
            show(grown.mean_ns()),
            show(grown.quantile_ns(0.5)),
            show(grown.quantile_ns(0.99)),
            show(grown.quantile_ns(0.999)),
            show(grown.buckets.last().map(|(floor, _)| *floor)),
            sparkline(rates)
        );
    }
}

/// An event's histogram since the last look.
struct Grown {
    buckets: Vec<(u64, u64)>,
    sum_ns: u64,
}

impl Grown {
    fn of(before: Option<&EventStatus>, now: &EventStatus) -> Self {
        let earlier = |floor: u64| {
            let found = before.and_then(|e| e.buckets.iter().find(|(f, _)| *f == floor));
            found.map_or(0, |(_, n)| *n)
        };
        let grown = now.buckets.iter().map(|(floor, n)| (*floor, n.saturating_sub(earlier(*floor))));
        let sum_ns = now.sum_ns.saturating_sub(before.map_or(0, |e| e.sum_ns));
        Self { buckets: grown.filter(|(_, n)| *n > 0).collect(), sum_ns }
    }

    fn total(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| n).sum()
    }

    fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.total())
    }

    fn quantile_ns(&self, q: f64) -> Option<u64> {
        let wanted = (q * self.total() as f64) as u64;
        let mut seen = 0;
        let holds = |(_, n): &&(u64, u64)| {
            seen += n;
            seen > wanted
        };
        self.buckets.iter().find(holds).or(self.buckets.last()).map(|(floor, _)| *floor)
    }
}

fn directories(out: &mut String, before: &Status, now: &Status, seconds: f64) {
    let _ = writeln!(
        out,
        "\n{:<10}{:>10}{:>14}{:>12}{:>8}{:>12}  directory",
        "database", "writes/s", "logged/s", "absorbed/s", "real/s", "untracked"
    );
    for root in &now.roots {
        let rate =
            |of: fn(&FileStatus) -> u64| (sum(now, root, of) - sum(before, root, of)).max(0.0) / seconds;
        let untracked = inside(now, root).filter(|f| !f.tracked).count();
        let _ = writeln!(
            out,
            "{:<10}{:>10}{:>14}{:>12}{:>8}{:>12}  {}",
            root.preset,
            digits(rate(|f| f.writes)),
            bytes(rate(|f| f.bytes)),
            digits(rate(|f| f.absorbed)),
            digits(rate(|f| f.real_syncs)),
            untracked,
            root.path.display()
        );
    }
}

fn inside<'a>(s: &'a Status, root: &'a RootStatus) -> impl Iterator<Item = &'a FileStatus> {
    s.files.iter().filter(|file| file.path.starts_with(&root.path))
}

fn sum(s: &Status, root: &RootStatus, of: fn(&FileStatus) -> u64) -> f64 {
    inside(s, root).map(|file| of(file) as f64).sum()
}

#[cfg(test)]
mod tests;
