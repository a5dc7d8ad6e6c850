//! One virtual user.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::latency::Recorder;
use crate::pace::Pace;
use crate::random::Random;
use crate::sys::interrupted;
use crate::tprocc::input::Wishes;
use crate::tprocc::store::{Answer, Session};
use crate::tprocc::{Kinds, Scale, ledger};

/// What all users look at.
pub struct Flags {
    /// Somebody failed: all end.
    pub stop: AtomicBool,
    /// Transactions count from now on.
    pub measure: AtomicBool,
    /// Nobody begins anything after this.
    pub end: Instant,
}

/// What a user did in the measured part.
#[derive(Default)]
pub struct Worked {
    pub kinds: Kinds<Recorder>,
    pub latency: Recorder,
    pub service: Recorder,
    pub begun: u64,
    pub intended: u64,
    pub rolled_back: u64,
    pub conflicts: u64,
    pub errors: Vec<String>,
}

impl Worked {
    /// Adds what another user did.
    pub fn merge(&mut self, other: &Worked) {
        for kind in crate::tprocc::input::Kind::ALL {
            self.kinds.of_mut(kind).merge(other.kinds.of(kind));
        }
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.begun += other.begun;
        self.intended += other.intended;
        self.rolled_back += other.rolled_back;
        self.conflicts += other.conflicts;
        self.errors.extend(other.errors.iter().cloned());
    }
}

/// A user and what they need.
pub struct User<'a> {
    number: u32,
    session: Box<dyn Session>,
    wishes: Wishes,
    keying: bool,
    ledger: &'a ledger::Writer,
    done: Worked,
}

impl<'a> User<'a> {
    /// A user at home in a warehouse.
    pub fn new(
        number: u32,
        home: u32,
        scale: Scale,
        session: Box<dyn Session>,
        random: Random,
        keying: bool,
        ledger: &'a ledger::Writer,
    ) -> Self {
        let wishes = Wishes::new(scale, home, random);
        User { number, session, wishes, keying, ledger, done: Worked::default() }
    }

    /// Works until the time is over or somebody fails.
    pub fn work(mut self, mut pace: Pace, flags: &Flags) -> Worked {
        while !flags.stop.load(Ordering::Relaxed) {
            let Some(intended) = pace.next_start() else { break };
            self.done.begun += 1;
            if let Err(failure) = self.one(intended, flags) {
                flags.stop.store(true, Ordering::Relaxed);
                self.done.errors.push(format!("user {}: {failure}", self.number));
            }
        }
        self.done.intended = pace.intended(Instant::now()).unwrap_or_default();
        self.done
    }

    /// One transaction, with what a person does before and after it.
    fn one(&mut self, intended: Instant, flags: &Flags) -> Result<(), Failure> {
        let wish = self.wishes.next_wish();
        let (keying, thinking) = wish.kind().pauses_s();
        let mut intended = intended;
        if self.keying {
            rest(keying, flags);
            intended = Instant::now();
            if intended >= flags.end || interrupted() {
                return Ok(());
            }
        }
        let (begun, is_measured) = (Instant::now(), flags.measure.load(Ordering::Relaxed));
        let answer = match self.session.execute(&wish) {
            Ok(answer) => answer,
            Err(Failure::Conflict(_)) => {
                self.done.conflicts += u64::from(is_measured);
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        let ended = Instant::now();
        self.ledger.acknowledge(&wish, answer)?;
        if is_measured {
            self.done.rolled_back += u64::from(answer == Answer::RolledBack);
            self.done.latency.record(ended - intended);
            self.done.service.record(ended - begun);
            self.done.kinds.of_mut(wish.kind()).record(ended - intended);
        }
        if self.keying {
            rest(self.wishes.think_s(thinking), flags);
        }
        Ok(())
    }
}

/// Sleeps, unless all are to end.
fn rest(seconds: f64, flags: &Flags) {
    let end = flags.end.min(Instant::now() + Duration::from_secs_f64(seconds));
    while !flags.stop.load(Ordering::Relaxed) && !interrupted() && Instant::now() < end {
        thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
    }
}
