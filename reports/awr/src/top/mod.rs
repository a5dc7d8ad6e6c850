//! `seawall top`: what happens now, once a second, for a terminal.
//!
//! Input: two looks at the daemon (and at the database's count of commits), and the time between them. Output:
//! one frame of text that fits its terminal. The medium's label stands in every frame.

mod block_cache;
mod disks;
mod grown;
mod history;
mod keepers;
mod screen;

use grown::Grown;
pub use history::History;
use history::sparkline;
pub use screen::{Paint, Screen};
use seawall_daemon::status::{FileStatus, RootStatus, Status};
use seawall_page::scale::{bytes, digits, time};

use crate::disks::Disk;
use crate::recovery::{Exposure, Timed};

/// From this width on the longest wait has a column.
const WIDE: usize = 100;
const BAR: usize = 30;
/// Columns of a wait's name.
const NAME: usize = 23;

/// One look.
pub struct Look {
    /// What the daemon says.
    pub status: Status,
    /// Transactions that the database has counted, if one is asked.
    pub transactions: Option<f64>,
    /// What a crash would cost, if the database says how much redo it has.
    pub exposed: Option<Exposure>,
    /// The virtual machines' disks that the log has.
    pub disks: Vec<Disk>,
}

/// The frame for what happened between two looks.
pub fn frame(before: &Look, now: &Look, seconds: f64, history: &mut History, screen: Screen) -> String {
    let mut out = screen.page();
    let s = &now.status;
    let weak = s.medium_name == "emulated";
    out.line(if weak { Paint::Warn } else { Paint::Head }, &format!("Seawall · {}", s.medium));
    let share = fill(s);
    let paint = match share {
        share if share >= 0.9 => Paint::Bad,
        share if share >= 0.6 => Paint::Warn,
        _ => Paint::Good,
    };
    let log = format!("log {} {:.0} % of {} · ", bar(share), share * 100.0, bytes(s.size as f64));
    let pool = out.tail(&s.pool.display().to_string(), log.chars().count());
    out.line(paint, &format!("{log}{pool}"));
    out.line(Paint::Plain, &flows(&before.status, s, seconds));
    block_cache::line(&mut out, &before.status, s, seconds);
    keepers::lines(&mut out, &before.status, s, seconds);
    let synced = |s: &Status| s.files.iter().map(|f| f.absorbed + f.real_syncs).sum::<u64>() as f64;
    let syncs = (synced(s) - synced(&before.status)).max(0.0) / seconds;
    let commits = now.transactions.zip(before.transactions).map(|(b, a)| (b - a).max(0.0) / seconds);
    let commits = commits.map_or_else(String::new, |rate| format!("commits/s {}   ", digits(rate)));
    out.line(
        Paint::Head,
        &format!(
            "{commits}syncs/s {}   processes {}   refused {}",
            digits(syncs),
            s.clients.len(),
            s.refused
        ),
    );
    exposed(&mut out, now);
    out.line(Paint::Plain, "");
    waits(&mut out, &before.status, s, seconds, history);
    directories(&mut out, &before.status, s, seconds);
    disks::lines(&mut out, &before.disks, &now.disks, seconds);
    block_cache::files(&mut out, &before.status, s, seconds);
    out.text()
}

/// What a crash would cost now.
fn exposed(out: &mut screen::Page, now: &Look) {
    let Some(exposed) = now.exposed else { return };
    let redo = bytes(exposed.redo);
    match exposed.time {
        None => out.line(Paint::Plain, &format!("a crash now: {redo} of redo to replay")),
        Some(Timed { seconds, goal }) => {
            let paint = if exposed.is_too_long() { Paint::Bad } else { Paint::Good };
            out.line(
                paint,
                &format!("a crash now: {seconds:.1} s of the {goal} s wanted   ({redo} of redo)"),
            );
        }
    }
}

/// The share of segments that are in use.
fn fill(s: &Status) -> f64 {
    f64::from(s.segments.saturating_sub(s.segments_free)) / f64::from(s.segments.max(1))
}

fn bar(share: f64) -> String {
    let full = ((share * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// How fast the log fills and empties.
fn flows(before: &Status, now: &Status, seconds: f64) -> String {
    let logged = (logged_bytes(now) - logged_bytes(before)).max(0.0);
    let backlog = now.backlog_bytes as f64 - before.backlog_bytes as f64;
    let destaged = (logged - backlog).max(0.0);
    format!(
        "logged {}/s   destaged {}/s   to destage {} in {} files",
        bytes(logged / seconds),
        bytes(destaged / seconds),
        bytes(now.backlog_bytes as f64),
        now.backlog_files
    )
}

fn logged_bytes(s: &Status) -> f64 {
    s.files.iter().map(|f| f.bytes as f64).sum()
}

fn waits(out: &mut screen::Page, before: &Status, now: &Status, seconds: f64, history: &mut History) {
    let is_wide = out.width() >= WIDE;
    let longest = |text: &str| if is_wide { format!("{text:>9}") } else { String::new() };
    let row = |name: &str, rate: &str, times: [&str; 4], last: &str, line: &str| {
        let [mean, p50, p99, p999] = times;
        let name = screen::head(name, NAME);
        format!("{name:<NAME$} {rate:>8}{mean:>9}{p50:>9}{p99:>9}{p999:>9}{}  {line}", longest(last))
    };
    let heads = ["mean", "p50", "p99", "p99.9"];
    out.line(Paint::Dim, &row("waits", "/s", heads, "longest", "last half minute"));
    for event in &now.events {
        let earlier = before.events.iter().find(|e| e.name == event.name);
        let count = event.count.saturating_sub(earlier.map_or(0, |e| e.count));
        let rates = history.add(&event.name, count as f64 / seconds);
        let grown =
            Grown::of(earlier.map(|e| (e.buckets.as_slice(), e.sum_ns)), (&event.buckets, event.sum_ns));
        let show = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| time(ns as f64));
        let times =
            [grown.mean_ns(), grown.quantile_ns(0.5), grown.quantile_ns(0.99), grown.quantile_ns(0.999)];
        let times = times.map(show);
        let room = out.width().saturating_sub(if is_wide { 79 } else { 70 });
        let text = row(
            &event.name,
            &digits(count as f64 / seconds),
            times.each_ref().map(String::as_str),
            &show(grown.buckets.last().map(|(floor, _)| *floor)),
            &sparkline(rates, room),
        );
        out.line(if count > 0 { Paint::Plain } else { Paint::Dim }, &text);
    }
}

fn directories(out: &mut screen::Page, before: &Status, now: &Status, seconds: f64) {
    out.line(Paint::Plain, "");
    let row = |cells: [&str; 7], path: &str| {
        let [preset, writes, logged, absorbed, real, live, untracked] = cells;
        format!("{preset:<9}{writes:>9}{logged:>13}{absorbed:>11}{real:>7}{live:>6}{untracked:>10}  {path}")
    };
    out.line(
        Paint::Dim,
        &row(["database", "writes/s", "logged/s", "absorbed/s", "real/s", "live", "untracked"], "directory"),
    );
    for root in &now.roots {
        let rate =
            |of: fn(&FileStatus) -> u64| (sum(now, root, of) - sum(before, root, of)).max(0.0) / seconds;
        let count = |of: fn(&FileStatus) -> bool| inside(now, root).filter(|f| of(f)).count().to_string();
        let untracked = count(|f| !f.tracked);
        let cells = [
            digits(rate(|f| f.writes)),
            format!("{}/s", bytes(rate(|f| f.bytes))),
            digits(rate(|f| f.absorbed)),
            digits(rate(|f| f.real_syncs)),
            count(|f| f.live),
        ];
        let [writes, logged, absorbed, real, live] = cells.each_ref().map(String::as_str);
        let path = root.path.display().to_string();
        let paint = if untracked == "0" { Paint::Plain } else { Paint::Warn };
        out.line(
            paint,
            &row([&root.preset, writes, logged, absorbed, real, live, &untracked], &out.tail(&path, 67)),
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
