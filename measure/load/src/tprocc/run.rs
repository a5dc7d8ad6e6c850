//! `run`: virtual users at work.

mod user;

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use self::user::{Flags, User, Worked};
use super::ledger;
use super::outcome::{KindOutcome, Outcome};
use super::store::{Database, Keeper, Loaded};
use super::targets;
use crate::counters::Counters;
use crate::latency::Recorder;
use crate::pace::{Limit, OpenLoop, Pace, interruption};
use crate::random::Random;
use crate::target::Target;

/// How a run is made.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Virtual users
    #[arg(long, short = 'u', default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=0xffff))]
    pub users: u32,
    /// Length of the measured part
    #[arg(long, default_value_t = 60.0)]
    pub seconds: f64,
    /// Unmeasured seconds before it
    #[arg(long, default_value_t = 0.0)]
    pub rampup: f64,
    /// Let users type and think, as specified
    #[arg(long)]
    pub keying: bool,
    /// An open loop: transactions a second, all users together; latencies count from the intended start
    #[arg(long, conflicts_with = "keying")]
    pub rate: Option<f64>,
}

/// Runs the mix; `ledger` is the one that `setup` began. What was finished before an error, or before the server was lost, is in the result with the error;
/// only what keeps the run from beginning is an error of this function.
pub fn run(target: &Target, options: &RunOptions, ledger: &Path) -> Result<Outcome> {
    ensure!(
        options.users > 0 && options.seconds > 0.0 && options.rampup >= 0.0,
        "no user would do anything: --users and --seconds must be above 0, and --rampup at least 0"
    );
    ensure!(options.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "the rate must be above 0");
    ensure!(options.rate.is_none() || !options.keying, "keying and a rate exclude each other");
    let database = targets::open(target)?;
    let mut keeper = database.keeper()?;
    let loaded = keeper.loaded()?.context("the tables are not loaded: run `setup` first")?;
    let ledger = ledger::Writer::open(ledger, loaded.setup)?;
    let version = keeper.version()?;
    let users = open_users(database.as_ref(), &loaded, options, &ledger)?;
    let measured = work(users, options, keeper.as_mut());
    let mut outcome = add_up(measured, &loaded, options);
    outcome.errors.extend(interruption());
    (outcome.database, outcome.version) = (target.name().to_owned(), version);
    Ok(outcome)
}

fn open_users<'a>(
    database: &dyn Database,
    loaded: &Loaded,
    options: &RunOptions,
    ledger: &'a ledger::Writer,
) -> Result<Vec<User<'a>>> {
    let seed = Random::fresh_seed();
    let open = |number: u32| {
        let session = database.session().map_err(|failure| anyhow!("user {number}: {failure}"))?;
        let home = number % loaded.scale.warehouses + 1;
        let random = Random::new(seed, number.into());
        Ok(User::new(number, home, loaded.scale, session, random, options.keying, ledger))
    };
    (0..options.users).map(open).collect()
}

/// What the database said at the borders of the measured part.
struct Border {
    at: Instant,
    counters: Counters,
    orders: u64,
}

impl Border {
    /// None: the server is lost.
    fn look(keeper: &mut dyn Keeper) -> Option<Self> {
        let at = Instant::now();
        let orders = keeper.number("SELECT sum(d_next_o_id) FROM district").ok()?;
        Some(Border { at, counters: keeper.counters().ok()?, orders })
    }
}

struct Measured {
    worked: Vec<Worked>,
    before: Option<Border>,
    after: Option<Border>,
    seconds: f64,
}

/// Lets all users work; looks at the database when the measured part begins and when all have ended.
fn work(users: Vec<User<'_>>, options: &RunOptions, keeper: &mut dyn Keeper) -> Measured {
    let count = users.len() as u32;
    let length = Duration::from_secs_f64(options.rampup + options.seconds);
    let limit = Limit { duration: Some(length), rate: options.rate };
    let left = AtomicU32::new(count);
    let started = Instant::now();
    let flags =
        Flags { stop: AtomicBool::new(false), measure: AtomicBool::new(false), end: started + length };
    let (worked, before, began) = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (user, number) in users.into_iter().zip(0..) {
            let (flags, left) = (&flags, &left);
            let pace = Pace::new(limit, started, number, count);
            threads.push(scope.spawn(move || {
                let worked = user.work(pace, flags);
                left.fetch_sub(1, Ordering::Relaxed);
                worked
            }));
        }
        let rampup = Duration::from_secs_f64(options.rampup);
        while started.elapsed() < rampup && left.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(5).min(rampup.saturating_sub(started.elapsed())));
        }
        let before = Border::look(keeper);
        flags.measure.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let join =
            |t: thread::ScopedJoinHandle<'_, Worked>| t.join().unwrap_or_else(|panic| resume_unwind(panic));
        (threads.into_iter().map(join).collect(), before, began)
    });
    let seconds = began.elapsed().as_secs_f64();
    Measured { worked, before, after: Border::look(keeper), seconds }
}

fn add_up(measured: Measured, loaded: &Loaded, options: &RunOptions) -> Outcome {
    let Measured { worked, before, after, seconds } = measured;
    let mut all = Worked::default();
    worked.iter().for_each(|worked| all.merge(worked));
    let counters = match (&before, &after) {
        (Some(before), Some(after)) => after.counters.since(before.counters),
        _ => Counters::default(),
    };
    let between = before.as_ref().zip(after.as_ref());
    let minutes = between.map(|(before, after)| (after.at - before.at).as_secs_f64() / 60.0);
    let orders = between.and_then(|(before, after)| after.orders.checked_sub(before.orders));
    let per_minute = |count: u64| minutes.map(|minutes| count as f64 / minutes);
    let summary = |recorder: &Recorder| {
        let latency = recorder.summary();
        KindOutcome { count: latency.ops, latency }
    };
    Outcome {
        database: String::new(),
        version: String::new(),
        scale: loaded.scale,
        users: options.users,
        keying: options.keying,
        seconds,
        tpm: counters.transactions.and_then(per_minute),
        nopm: orders.and_then(per_minute),
        acknowledged_per_minute: all.latency.summary().ops as f64 * 60.0 / seconds.max(1e-9),
        kinds: all.kinds.map(summary),
        rolled_back: all.rolled_back,
        redo_bytes: counters.redo_bytes,
        counters,
        latency: all.latency.summary(),
        service: all.service.summary(),
        open_loop: options.rate.map(|rate| OpenLoop {
            rate,
            intended: all.intended,
            not_started: all.intended.saturating_sub(all.begun),
        }),
        conflicts: all.conflicts,
        errors: all.errors,
    }
}
