//! The disk's state, shared by the FUSE thread and whoever pulls the plug.
//!
//! | power | a request |
//! |---|---|
//! | on | is served, or fails as an injected fault says |
//! | failing | gets no answer: to its caller the machine has stopped, because in a moment it will have |
//! | off | fails with EIO, as does every request that got no answer |
//!
//! Failing exists because programs cannot be killed in the very instant in which the disk stops. Answering
//! EIO meanwhile would show them an error that no power cut shows, and they might write it down.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Cut, Loss};
use crate::image::Image;
use fastrand::Rng;

/// The longest write that the kernel may send; longer requests arrive in pieces.
pub const LONGEST_WRITE: u32 = 128 << 10;
/// Requests that may be under way at once, and more.
const REMEMBERED: usize = 64;

/// See the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    On,
    Failing,
    Off,
}

/// What a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Reads.
    Read,
    /// Writes; a failed one changes nothing.
    Write,
    /// Flushes; nothing becomes durable.
    Flush,
}

/// Requests that will fail.
#[derive(Clone, Copy, Debug)]
struct Fault {
    request: Request,
    left: u64,
}

/// What was asked of the disk since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Writes served.
    pub writes: u64,
    /// Flushes served.
    pub flushes: u64,
    /// Requests that an injected fault made fail.
    pub failed: u64,
}

struct State {
    power: Power,
    cache: Cache,
    /// Answers owed since the power began to fail; each says EIO when it is called.
    owed: Vec<Box<dyn FnOnce() + Send>>,
    faults: Vec<Fault>,
    counts: Counts,
    /// Where writes ended lately that were as long as a write can be: what begins there may be their rest.
    full_ends: VecDeque<u64>,
    /// How often the image is open: a loop device holds it open.
    open: usize,
    flush_time: Duration,
}

/// The shared state.
pub struct Shared {
    state: Mutex<State>,
    closed: Condvar,
}

/// An answer that can be a refusal.
pub trait Answer: Send + 'static {
    /// Answers EIO.
    fn refuse(self);
}

impl Shared {
    /// A disk that is on.
    pub fn new(image: Image) -> Self {
        let state = State {
            power: Power::On,
            cache: Cache::new(image),
            owed: Vec::new(),
            faults: Vec::new(),
            counts: Counts::default(),
            full_ends: VecDeque::new(),
            open: 0,
            flush_time: Duration::ZERO,
        };
        Shared { state: Mutex::new(state), closed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one request and gives back what to answer; `None` if it was refused, or is to be later.
    pub fn serve<T, A: Answer>(
        &self,
        request: Request,
        answer: A,
        work: impl FnOnce(&mut Cache) -> T,
    ) -> Option<(T, A)> {
        self.lock().serve(request, false, answer, work)
    }

    /// Serves a write.
    ///
    /// A loop device takes a request of which only the beginning could be written for a success: it looks at
    /// errors, not at lengths. So a fault hits the beginning of a request, never what may be the rest of one:
    /// this disk refuses, and does not lie.
    pub fn serve_write<A: Answer>(&self, answer: A, offset: u64, bytes: &[u8]) -> Option<A> {
        let mut state = self.lock();
        let is_rest = state.full_ends.contains(&offset);
        if bytes.len() >= LONGEST_WRITE as usize {
            state.full_ends.push_back(offset + bytes.len() as u64);
            if state.full_ends.len() > REMEMBERED {
                state.full_ends.pop_front();
            }
        }
        let served = state.serve(Request::Write, is_rest, answer, |cache| cache.write(offset, bytes));
        served.map(|((), answer)| answer)
    }

    /// The disk's size.
    pub fn size(&self) -> u64 {
        self.lock().cache.size()
    }

    /// The image was opened; refused while the power is off.
    pub fn opened(&self) -> bool {
        let mut state = self.lock();
        let on = state.power == Power::On;
        state.open += usize::from(on);
        on
    }

    /// One of the openers has gone.
    pub fn released(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            self.closed.notify_all();
        }
    }

    /// The power fails now: nothing more becomes durable, and nothing is answered.
    pub fn cut(&self, loss: Loss, rng: &mut Rng) -> Cut {
        let mut state = self.lock();
        state.power = Power::Failing;
        state.faults.clear();
        state.cache.cut(loss, rng)
    }

    /// The power is off: every request, also those that wait, fails.
    pub fn off(&self) {
        let owed = {
            let mut state = self.lock();
            state.power = Power::Off;
            std::mem::take(&mut state.owed)
        };
        owed.into_iter().for_each(|answer| answer());
    }

    /// Waits until nobody has the image open; `false` if that takes too long.
    pub fn wait_closed(&self, limit: Duration) -> bool {
        let waited = self.closed.wait_timeout_while(self.lock(), limit, |state| state.open > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.open == 0
    }

    /// The power is back.
    pub fn on(&self) {
        self.lock().power = Power::On;
    }

    /// Puts another image in, as if another disk had been plugged in.
    pub fn replace(&self, image: Image) {
        self.lock().cache = Cache::new(image);
    }

    /// What is durable.
    pub fn durable(&self) -> Image {
        self.lock().cache.durable().clone()
    }

    /// The next `count` requests of this kind fail with EIO.
    pub fn fail(&self, request: Request, count: u64) {
        self.lock().faults.push(Fault { request, left: count });
    }

    /// No more faults.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// Bytes that a cut could take now.
    pub fn pending_bytes(&self) -> usize {
        self.lock().cache.pending_bytes()
    }

    /// How long a flush takes.
    pub fn flush_time(&self) -> Duration {
        self.lock().flush_time
    }

    /// From now on.
    pub fn set_flush_time(&self, time: Duration) {
        self.lock().flush_time = time;
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }
}

impl State {
    fn serve<T, A: Answer>(
        &mut self,
        request: Request,
        spared: bool,
        answer: A,
        work: impl FnOnce(&mut Cache) -> T,
    ) -> Option<(T, A)> {
        let power = self.power;
        match power {
            Power::Failing => self.owed.push(Box::new(move || answer.refuse())),
            Power::On if spared || !self.fails(request) => {
                self.count(request);
                return Some((work(&mut self.cache), answer));
            }
            Power::On | Power::Off => answer.refuse(),
        }
        None
    }

    fn fails(&mut self, request: Request) -> bool {
        let Some(fault) = self.faults.iter_mut().find(|f| f.request == request && f.left > 0) else {
            return false;
        };
        fault.left -= 1;
        self.counts.failed += 1;
        true
    }

    fn count(&mut self, request: Request) {
        match request {
            Request::Read => {}
            Request::Write => self.counts.writes += 1,
            Request::Flush => self.counts.flushes += 1,
        }
    }
}
