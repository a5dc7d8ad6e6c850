//! `run`: sessions that update, read and scan, each at its own pace.

mod script;
mod session;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use self::session::{Plan, Worked, Worker};
use super::ledger;
use super::outcome::{Outcome, RowCounts, Windows};
use super::store::{Database, Keeper, Loaded};
use super::targets;
use super::{CommitMode, Conf, Layout};
use crate::counters::Counters;
use crate::latency::Recorder;
use crate::pace::{Limit, OpenLoop, Pace, interruption};
use crate::random::Random;
use crate::target::Target;
use crate::threads;

/// How a run is made, beside its [`Conf`].
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// When sessions wait for durability
    #[arg(long, value_enum, default_value_t = CommitMode::PerOperation)]
    pub commit: CommitMode,
    /// An open loop: operations a second, all sessions together; latencies count from the intended start
    #[arg(long)]
    pub rate: Option<f64>,
}

/// Runs the load; `ledger` is the one that `setup` began. What was finished before an error, or before the server was lost, is in the result with the
/// error; only what keeps the run from beginning is an error of this function.
pub fn run(target: &Target, conf: &Conf, options: &RunOptions, ledger: &Path) -> Result<Outcome> {
    ensure_possible(target, conf, options)?;
    let database = targets::open(target);
    let mut keeper = database.keeper()?;
    let version = keeper.version()?;
    let layout = Layout::new(conf, keeper.block_bytes()?)?;
    let loaded = ensure_loaded(keeper.as_mut(), conf, &layout)?;
    let ledger = ledger::Writer::open(ledger, loaded.setup)?;
    let plan = Plan { conf, layout, commit: options.commit, run: run_number(), ledger: &ledger };
    let workers = open_sessions(database.as_ref(), &plan)?;
    script::call(conf, "pre")?;
    ledger.start(plan.run)?;
    let before = keeper.counters()?;
    let from_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64);
    let (worked, seconds) = work(workers, conf, options);
    let mut errors: Vec<String> = worked.iter().filter_map(|worked| worked.error.clone()).collect();
    if errors.is_empty() {
        ledger.end(plan.run)?;
    }
    errors.extend(interruption());
    errors.extend(script::call(conf, "post").err().map(|error| format!("{error:#}")));
    // A server that was killed counts no more.
    let counters = keeper.counters().map_or(Counters::default(), |after| after.since(before));
    let mut outcome = add_up(&worked, seconds, &plan, options, counters);
    outcome.windows.from_us = from_us;
    errors.extend(script::call(conf, "end").err().map(|error| format!("{error:#}")));
    outcome.errors = errors;
    (outcome.database, outcome.version) = (target.name().to_owned(), version);
    Ok(outcome)
}

fn ensure_possible(target: &Target, conf: &Conf, options: &RunOptions) -> Result<()> {
    if let Some(why) = conf.contradiction() {
        bail!("{why}");
    }
    ensure!(options.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "the rate must be above 0");
    ensure!(
        options.rate.is_none() || conf.think_tm_frequency == 0,
        "think time and a rate exclude each other: an open loop's schedule says when sessions rest"
    );
    if options.commit == CommitMode::OneTransaction && conf.update_pct > 0 && conf.sessions() > 1 {
        ensure!(
            !conf.do_hotspot && conf.hot_schema_frequency == 0,
            "one transaction a session holds its rows to the end: with a hot spot or a hot schema the sessions \
             would wait for each other; use another commit mode, or one session"
        );
        ensure!(
            !matches!(target, Target::Sqlite(_)),
            "SQLite has one writer at a time: one transaction a session needs one session"
        );
    }
    Ok(())
}

fn ensure_loaded(keeper: &mut dyn Keeper, conf: &Conf, layout: &Layout) -> Result<Loaded> {
    let Some(loaded) = keeper.loaded()? else { bail!("the tables are not loaded: run `setup` first") };
    ensure!(
        loaded.rows == layout.rows,
        "the tables have {} rows, SCALE={} asks for {}: run `setup` again, or give the SCALE it had",
        loaded.rows,
        conf.scale,
        layout.rows
    );
    ensure!(
        loaded.schemas >= conf.schemas,
        "{} schemas are loaded, and the run needs {}: run `setup` again",
        loaded.schemas,
        conf.schemas
    );
    ensure!(
        conf.scan_pct == 0 || loaded.scan_rows == layout.scan_rows,
        "the scan tables have {} rows, SCAN_TABLE_SZ={} asks for {}: run `setup` again",
        loaded.scan_rows,
        conf.scan_table_sz,
        layout.scan_rows
    );
    Ok(loaded)
}

/// A number for the rows this run changes; 0 stands for the load of the tables.
fn run_number() -> u32 {
    (Random::fresh_seed() as u32).max(1)
}

/// All sessions, connected: a run starts with all of them or not at all.
fn open_sessions<'a>(database: &dyn Database, plan: &'a Plan<'a>) -> Result<Vec<Worker<'a>>> {
    let open = |number| {
        let session = database.session(plan.commit, plan.conf.redo_stress);
        Worker::new(plan, number, session.map_err(|failure| anyhow!("session {number}: {failure}"))?)
    };
    (0..plan.conf.sessions()).map(open).collect()
}

/// Lets all workers work, and returns what they did and how long it took.
fn work(workers: Vec<Worker<'_>>, conf: &Conf, options: &RunOptions) -> (Vec<Worked>, f64) {
    let duration = (conf.run_time > 0).then(|| Duration::from_secs(conf.run_time));
    let limit = Limit { duration, rate: options.rate };
    let stop = AtomicBool::new(false);
    let sessions = conf.sessions();
    let started = Instant::now();
    let worked = threads::each((0..).zip(workers), |(number, worker)| {
        worker.work(started, Pace::new(limit, started, number, sessions), &stop)
    });
    (worked, started.elapsed().as_secs_f64())
}

fn add_up(
    worked: &[Worked],
    seconds: f64,
    plan: &Plan<'_>,
    options: &RunOptions,
    counters: Counters,
) -> Outcome {
    let merged = |of: fn(&Worked) -> &Recorder| {
        let mut all = Recorder::default();
        worked.iter().for_each(|worked| all.merge(of(worked)));
        all.summary()
    };
    let sum = |of: fn(&Worked) -> u64| worked.iter().map(of).sum::<u64>();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let (operations, transactions) = (sum(|w| w.operations), sum(|w| w.transactions));
    let mut windows = Windows { every_us: Windows::EVERY_US, ..Windows::default() };
    worked.iter().for_each(|worked| windows.add(&worked.windows));
    Outcome {
        database: String::new(),
        version: String::new(),
        commit: options.commit,
        conf: plan.conf.clone(),
        layout: plan.layout,
        sessions: plan.conf.sessions(),
        seconds,
        operations,
        operations_per_second: per_second(operations),
        transactions,
        transactions_per_second: per_second(transactions),
        rows: RowCounts {
            read: sum(|w| w.rows.read),
            updated: sum(|w| w.rows.updated),
            scanned: sum(|w| w.rows.scanned),
        },
        redo_bytes: counters.redo_bytes,
        counters,
        latency: merged(|w| &w.latency),
        update_latency: merged(|w| &w.updates),
        read_latency: merged(|w| &w.reads),
        scan_latency: merged(|w| &w.scans),
        service: merged(|w| &w.service),
        waits: merged(|w| &w.waits),
        open_loop: options.rate.map(|rate| OpenLoop {
            rate,
            intended: sum(|w| w.intended),
            not_started: sum(|w| w.intended.saturating_sub(w.begun)),
        }),
        think_seconds: worked.iter().map(|w| w.thought.as_secs_f64()).sum(),
        windows,
        conflicts: sum(|w| w.conflicts),
        unacknowledged: sum(|w| w.unacknowledged),
        errors: Vec::new(),
    }
}
