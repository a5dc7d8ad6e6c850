//! A crash at full load: every process of the database gets SIGKILL after the same amount of redo on every side,
//! and everything is timed from the restart.
//!
//! Not shown: a power cut. The page cache outlives the processes, so reads after the crash find warm files.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::load::Pgbench;
use super::prepare::Prepared;
use super::record::Turn;
use super::server::Server;
use super::stage::Stage;
use crate::case::{Crash, Measure};
use crate::pg::Cluster;
use crate::pg::transactions::Transaction;
use crate::process;

/// A load that has not written its redo by then is too slow for this case.
const LIMIT: Duration = Duration::from_secs(300);
/// Rates are taken over windows of this length, µs.
const WINDOW: u64 = 250_000;
/// This share of the speed before the crash counts as full.
const FULL: f64 = 0.9;

/// Runs it; the server is gone afterwards.
pub fn run(
    stage: &Stage<'_>,
    how: &Crash,
    prepared: &Prepared,
    server: Server<'_>,
    turn: &mut Turn,
) -> Result<()> {
    server.postgres()?.sql("CREATE TABLE IF NOT EXISTS lab_first (at timestamptz)")?;
    let rows_before = history(server.postgres()?)?;
    let watch = stage.watch(prepared, &server)?;
    let mut load = Pgbench::start(stage.lab, stage.case, server.postgres()?, LIMIT.as_secs())?;
    wait_for_redo(server.postgres()?, how.after_redo_mb << 20, &mut load)?;
    let observed = watch.finish()?;
    server.kill()?;
    let before = load.transactions(true)?;
    ensure!(!before.is_empty(), "nothing was committed before the crash");
    turn.work = observed.work(before.len() as u64);
    stage.note(&observed, turn);
    let speed = speed(&before);
    turn.figures.insert(Measure::Throughput.key().into(), speed);

    let log = Cluster::log_of(stage.lab, &prepared.configuration.name);
    let said_before = fs::metadata(&log).map_or(0, |m| m.len());
    let (begin, begin_us) = (Instant::now(), wall_us()?);
    let server =
        Server::start(stage.lab, stage.bin, stage.case, prepared).context("the restart after the crash")?;
    server.postgres()?.sql("INSERT INTO lab_first VALUES (now())")?;
    turn.figures.insert(Measure::FirstTransaction.key().into(), begin.elapsed().as_secs_f64());
    let kept = history(server.postgres()?)?;
    let load = Pgbench::start(stage.lab, stage.case, server.postgres()?, how.watch_seconds)?;
    let after = load.transactions(false)?;
    match full_speed(&after, begin_us, speed) {
        Some(seconds) => {
            turn.figures.insert(Measure::FullSpeed.key().into(), seconds);
        }
        None => turn.notes.push(format!("full speed was not reached within {} s of load", how.watch_seconds)),
    }
    turn.figures.extend(redo(&log, said_before)?);
    let acknowledged = rows_before + before.len() as u64;
    ensure!(kept >= acknowledged, "{} acknowledged commits are missing after the crash", acknowledged - kept);
    server.stop()
}

fn history(cluster: &Cluster<'_>) -> Result<u64> {
    Ok(cluster.query("SELECT count(*) FROM pgbench_history")?.parse()?)
}

fn wait_for_redo(cluster: &Cluster<'_>, bytes: u64, load: &mut Pgbench) -> Result<()> {
    let position =
        || -> Result<u64> { Ok(cluster.query("SELECT (pg_current_wal_lsn() - '0/0')::bigint")?.parse()?) };
    let (from, end) = (position()?, Instant::now() + LIMIT);
    while position()? - from < bytes {
        ensure!(!load.has_ended()?, "the load ended before the crash");
        if Instant::now() > end {
            bail!("the load wrote less than {} MB of redo within {} s", bytes >> 20, LIMIT.as_secs());
        }
        process::pause(Duration::from_millis(100))?;
    }
    Ok(())
}

fn wall_us() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64)
}

/// How many transactions ended in each window.
fn windows(done: &[Transaction], from: u64) -> Vec<u64> {
    let mut counts = Vec::new();
    for t in done.iter().filter(|t| t.ended_us >= from) {
        let window = ((t.ended_us - from) / WINDOW) as usize;
        if counts.len() <= window {
            counts.resize(window + 1, 0);
        }
        counts[window] += 1;
    }
    counts
}

/// Transactions a second before the crash: the median of the windows, the last one (cut off) left out.
fn speed(done: &[Transaction]) -> f64 {
    let from = done.iter().map(|t| t.ended_us).min().unwrap_or(0);
    let mut counts = windows(done, from);
    counts.pop();
    counts.sort_unstable();
    let middle = counts.get(counts.len() / 2).copied().unwrap_or(done.len() as u64);
    middle as f64 * 1e6 / WINDOW as f64
}

/// Seconds from `begin` until the end of the first window that has full speed.
fn full_speed(done: &[Transaction], begin: u64, speed: f64) -> Option<f64> {
    let wanted = speed * FULL * WINDOW as f64 / 1e6;
    let found = windows(done, begin).iter().position(|&count| count as f64 >= wanted)?;
    Some((found + 1) as f64 * WINDOW as f64 / 1e6)
}

/// What the server says about the redo it applied since its log had this length.
fn redo(log: &Path, from: u64) -> Result<Vec<(String, f64)>> {
    let bytes = fs::read(log).with_context(|| format!("read {}", log.display()))?;
    let text = String::from_utf8_lossy(&bytes[(from as usize).min(bytes.len())..]).into_owned();
    Ok(parse_redo(&text))
}

fn parse_redo(text: &str) -> Vec<(String, f64)> {
    let position = |after: &str| {
        let word = text.split(after).nth(1)?.split_whitespace().next()?;
        let (high, low) = word.trim_end_matches([',', ';']).split_once('/')?;
        Some((u64::from_str_radix(high, 16).ok()? << 32) + u64::from_str_radix(low, 16).ok()?)
    };
    let mut figures = Vec::new();
    if let (Some(from), Some(to)) = (position("redo starts at "), position("redo done at ")) {
        figures.push((Measure::Redo.key().to_owned(), (to - from.min(to)) as f64 / f64::from(1 << 20)));
    }
    let elapsed = text.split("redo done at ").nth(1).and_then(|t| t.split("elapsed: ").nth(1));
    if let Some(seconds) = elapsed.and_then(|t| t.split_whitespace().next()?.parse().ok()) {
        figures.push((Measure::RedoTime.key().to_owned(), seconds));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(from: u64, to: u64, every: u64) -> Vec<Transaction> {
        (from..to).step_by(every as usize).map(|ended_us| Transaction { ended_us, took_us: 1 }).collect()
    }

    #[test]
    fn full_speed_is_nine_tenths_of_that_before() {
        let before = steady(0, 2_000_000, 1000);
        assert_eq!(speed(&before), 1000.0);
        let mut after = steady(500_000, 1_000_000, 2000);
        after.extend(steady(1_000_000, 2_000_000, 1000));
        assert_eq!(full_speed(&after, 0, 1000.0), Some(1.25));
        assert_eq!(full_speed(&steady(0, 1_000_000, 2000), 0, 1000.0), None);
    }

    #[test]
    fn the_servers_words_about_redo_are_understood() {
        let text = "LOG:  redo starts at 0/50000028\nLOG:  invalid record length at 0/56400028: wanted 24, got 0\n\
                    LOG:  redo done at 0/56400000 system usage: CPU: user: 0.25 s, system: 0.09 s, elapsed: 0.35 s\n";
        let found = parse_redo(text);
        assert_eq!(found[0].0, "redo");
        assert!((found[0].1 - 100.0).abs() < 0.01, "{found:?}");
        assert_eq!(found[1], ("redo_time".to_owned(), 0.35));
        assert!(parse_redo("LOG:  database system is ready").is_empty());
    }
}
