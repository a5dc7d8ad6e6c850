//! When a worker's next operation starts.
//!
//! *Closed loop*: as soon as the one before has ended. A slow operation delays those behind it, and they are
//! never counted as late: latencies look better than what users at a steady rate would see.
//!
//! *Open loop*: at its place in a schedule that was fixed before. An operation that starts late because the one
//! before it took long is timed from when it *should* have started, so a stall counts for everything it held
//! up (no "coordinated omission").

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::sys::interrupted;

/// One worker's schedule.
#[derive(Clone, Debug)]
pub struct Pace {
    started: Instant,
    end: Option<Instant>,
    schedule: Option<Schedule>,
}

#[derive(Clone, Debug)]
struct Schedule {
    first: Duration,
    interval: Duration,
    begun: u64,
}

/// What limits a run.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// From the first operation on; none: until something else ends the run.
    pub duration: Option<Duration>,
    /// Operations a second of all workers together; none: as fast as they can (closed loop).
    pub rate: Option<f64>,
}

impl Pace {
    /// The schedule of worker `number` of `workers`, all of which start at `started`. Together they keep the
    /// rate, evenly spaced.
    pub fn new(limit: Limit, started: Instant, number: u32, workers: u32) -> Self {
        let schedule = limit.rate.map(|rate| {
            let interval = Duration::from_secs_f64(f64::from(workers) / rate);
            Schedule { first: interval.mul_f64(f64::from(number) / f64::from(workers)), interval, begun: 0 }
        });
        Pace { started, end: limit.duration.map(|duration| started + duration), schedule }
    }

    /// Waits for the next operation's start and returns when it was meant to start; `None`: the time is over, or
    /// somebody asked this process to end.
    pub fn next_start(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) || interrupted() {
            return None;
        }
        let Some(schedule) = &mut self.schedule else { return Some(now) };
        let due = self.started + schedule.due(schedule.begun);
        if self.end.is_some_and(|end| due >= end) {
            return None;
        }
        wait_until(due);
        schedule.begun += 1;
        Some(due)
    }

    /// How many operations should have started until `now`, or until the end of the time if that was before.
    pub fn intended(&self, now: Instant) -> Option<u64> {
        let schedule = self.schedule.as_ref()?;
        let until = self.end.map_or(now, |end| end.min(now)).saturating_duration_since(self.started);
        let after_first = until.checked_sub(schedule.first).unwrap_or_default();
        Some((after_first.as_secs_f64() / schedule.interval.as_secs_f64()).ceil() as u64)
    }
}

impl Schedule {
    /// By multiplication: additions of a rounded interval would drift.
    fn due(&self, number: u64) -> Duration {
        self.first + Duration::from_secs_f64(self.interval.as_secs_f64() * number as f64)
    }
}

/// An open loop's schedule, and how far it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Operations a second that were intended.
    pub rate: f64,
    /// Operations that should have started before the time was over.
    pub intended: u64,
    /// Of those, how many had not: the database was too slow for the rate.
    pub not_started: u64,
}

impl fmt::Display for OpenLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenLoop { rate, intended, not_started } = self;
        write!(f, "open loop at {rate}/s: latencies count from the intended start; ")?;
        write!(f, "{not_started} of {intended} were not started in time")
    }
}

/// What a result says of a run that was asked to end before its time.
pub fn interruption() -> Option<String> {
    interrupted().then(|| "interrupted: this is what was done until then".to_owned())
}

/// Sleeps most of the way, spins the rest: a timer alone is late by more than what is measured.
pub fn wait_until(due: Instant) {
    const SPIN: Duration = Duration::from_micros(80);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        } else if left > SPIN {
            thread::sleep(left - SPIN);
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_AGO: Duration = Duration::from_secs(3600);

    fn limit(seconds: u64, rate: Option<f64>) -> Limit {
        Limit { duration: Some(Duration::from_secs(seconds)), rate }
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start() {
        // A run that began an hour ago and has started nothing since: every operation is due already.
        let started = Instant::now() - LONG_AGO;
        let mut pace = Pace::new(limit(7200, Some(10.0)), started, 0, 1);
        for number in 0..5u32 {
            assert_eq!(pace.next_start(), Some(started + Duration::from_millis(100) * number));
        }
        assert_eq!(pace.intended(started + Duration::from_secs(1)), Some(10));
    }

    #[test]
    fn workers_share_the_rate_evenly() {
        let started = Instant::now() - LONG_AGO;
        let mut due: Vec<Duration> = (0..4)
            .flat_map(|number| {
                let mut pace = Pace::new(limit(7200, Some(100.0)), started, number, 4);
                [pace.next_start(), pace.next_start()].map(|due| due.expect("time is left") - started)
            })
            .collect();
        due.sort_unstable();
        for (number, due) in due.iter().enumerate() {
            assert_eq!(due.as_micros(), 10_000 * number as u128);
        }
    }

    #[test]
    fn the_time_ends_both_loops() {
        for rate in [None, Some(10.0)] {
            let mut over = Pace::new(limit(1, rate), Instant::now() - LONG_AGO, 0, 1);
            assert_eq!(over.next_start(), None);
        }
        let pace = Pace::new(limit(1, Some(10.0)), Instant::now() - LONG_AGO, 0, 1);
        assert_eq!(pace.intended(Instant::now()), Some(10), "the schedule ends with the time");
    }
}
