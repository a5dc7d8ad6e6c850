//! Seawall's own part: every wait it measured, every file it manages, how full its log is.

use std::path::Path;

use anyhow::{Context, Result};
use seawall_daemon::control::Control;
use seawall_daemon::status::{ClassEventStatus, EventStatus, FileStatus, Status};
use seawall_wire::message::Kind;

use crate::block_cache;
use crate::keepers;
use crate::model::{Reading, Snapshot};
use crate::recovery;

/// What the daemon of a pool says.
///
/// # Errors
/// If there is none, or it does not answer.
pub fn ask(pool: &Path) -> Result<Status> {
    let control = Control::connect(pool).with_context(|| pool.display().to_string())?;
    let control = control.with_context(|| format!("no daemon serves {}", pool.display()))?;
    Ok(control.request(Kind::Status, &())?)
}

/// Adds its readings.
///
/// # Errors
/// As [`ask`].
pub fn capture(pool: &Path, snapshot: &mut Snapshot) -> Result<()> {
    let status = ask(pool)?;
    snapshot.add("seawall", true, vec![log(&status)]);
    let events = status.events.iter().map(|event| self::event(event, &status.epoch));
    snapshot.add("seawall event", true, events.collect());
    let by_class = status.class_events.iter().map(|of| class_event(of, &status.epoch));
    snapshot.add("seawall class event", true, by_class.collect());
    let files = status.files.iter().filter(|f| f.writes + f.absorbed + f.real_syncs + f.untracked_writes > 0);
    snapshot.add("seawall file", true, files.map(|file| self::file(file, &status.epoch)).collect());
    block_cache::capture(&status, snapshot);
    keepers::capture(&status, snapshot);
    recovery::capture(&status, snapshot);
    Ok(())
}

fn log(s: &Status) -> Reading {
    // The daemon's own counts begin again with it; those in the shared memory do not.
    let reading = Reading::new("seawall", "", format!("{} {}", s.epoch, s.daemon_pid));
    let filled = |r: Reading, (percent, n): &(u32, u64)| r.counter(&format!("{FILL}{percent}"), *n as f64);
    s.fill
        .iter()
        .fold(reading, filled)
        .counter("requests", s.requests as f64)
        .gauge("size", s.size as f64)
        .gauge("segments", f64::from(s.segments))
        .gauge("segments_free", f64::from(s.segments_free))
        .gauge("backlog_bytes", s.backlog_bytes as f64)
        .gauge("backlog_files", f64::from(s.backlog_files))
        .gauge("clients", s.clients.len() as f64)
        .fact("medium", &s.medium)
        .fact("medium_name", &s.medium_name)
        .fact("because", s.kept.as_ref().map_or(&s.because, |kept| &kept.survives))
        .fact("pool", s.pool.display().to_string())
}

fn event(event: &EventStatus, epoch: &str) -> Reading {
    let reading = Reading::new("seawall event", &event.name, epoch)
        .counter("count", event.count as f64)
        .counter("sum_ns", event.sum_ns as f64)
        .gauge("longest_ns", event.max_ns as f64)
        .fact("stage", &event.stage);
    event.buckets.iter().fold(reading, |r, (floor, n)| r.counter(&format!("{BUCKET}{floor}"), *n as f64))
}

fn class_event(of: &ClassEventStatus, epoch: &str) -> Reading {
    let item = format!("{}: {}", of.class, of.event.name);
    let reading = Reading { kind: "seawall class event".into(), item, ..event(&of.event, epoch) };
    reading.fact("class", &of.class).fact("event", &of.event.name)
}

/// What the name of a bucket's counter begins with; its lower border follows.
pub(crate) const BUCKET: &str = "bucket ";
/// The same of a step of how full the log was.
const FILL: &str = "fill ";

/// The histogram among an event's counters, rising.
pub fn buckets<'a>(counters: impl IntoIterator<Item = (&'a String, &'a f64)>) -> Vec<(u64, u64)> {
    numbered(BUCKET, counters)
}

/// The lower border of the bucket of a histogram that holds quantile `q` (0 to 1).
pub fn quantile(buckets: &[(u64, u64)], q: f64) -> Option<u64> {
    let total: u64 = buckets.iter().map(|(_, n)| n).sum();
    let wanted = (q * total as f64) as u64;
    let mut seen = 0;
    let holds = |(_, n): &&(u64, u64)| {
        seen += n;
        seen > wanted
    };
    buckets.iter().find(holds).or(buckets.last()).map(|(floor, _)| *floor)
}

/// How full the log was when destaging began, in percent, and how often.
pub fn fill<'a>(counters: impl IntoIterator<Item = (&'a String, &'a f64)>) -> Vec<(u64, u64)> {
    numbered(FILL, counters)
}

fn numbered<'a>(prefix: &str, counters: impl IntoIterator<Item = (&'a String, &'a f64)>) -> Vec<(u64, u64)> {
    let of = |(name, n): (&String, &f64)| Some((name.strip_prefix(prefix)?.parse().ok()?, *n as u64));
    let mut found: Vec<_> = counters.into_iter().filter_map(of).filter(|(_, n)| *n > 0).collect();
    found.sort_unstable();
    found
}

fn file(file: &FileStatus, epoch: &str) -> Reading {
    let path = file.path.display().to_string();
    Reading::new("seawall file", &file.id, epoch)
        .counter("absorbed", file.absorbed as f64)
        .counter("real_syncs", file.real_syncs as f64)
        .counter("writes", file.writes as f64)
        .counter("bytes", file.bytes as f64)
        .counter("untracked_writes", file.untracked_writes as f64)
        .counter("left", file.left as f64)
        .gauge("tracked", f64::from(u8::from(file.tracked)))
        .fact("class", &file.class)
        .fact("path", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_in_order() {
        let reading = Reading::new("seawall event", "x", "").counter("count", 9.0);
        let reading = reading.counter("bucket 1024", 5.0).counter("bucket 8", 4.0);
        assert_eq!(buckets(&reading.counters), [(8, 4), (1024, 5)]);
    }
}
