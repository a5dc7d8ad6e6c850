//! The keepers of a log on other hosts: this host's end of it.
//!
//! Keepers that are lost are connected to again by a thread of their own; one whose copy is not up to date gets an image, a
//! stretch at a time, while the log goes on. Any process of this host sends batches, by the same connections: what it needs to
//! know, and what it hears, is on the [desk](Desk::link).
//! Where that was chosen, a host that reaches too few of them goes on without ([`Course`]).
//!
//! Invariant: who counts, what is lent, and whether it is, changes only under the lead, pinned, and goes to the desk before
//! that ends.

mod course;
mod reach;
mod renewal;
mod spells;
mod state;
mod status;
mod steps;

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use seawall_core::Errno;
use seawall_core::journal::{Copies, Lent, Sending, Standing};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::transport::Transport;
use seawall_keeper::writer::{Source, Writer};
use seawall_media::locks::{lock, wait_for};
use seawall_wire::desk::{Desk, alone};

pub(crate) use course::{Course, Due};
pub use status::{KeeperStatus, KeptStatus};

use state::{State, release};

/// How long commits wait for keepers to come back before they fail, and everything after them.
const PROTECTED: Duration = Duration::from_secs(30);
/// The longest wait for answers between two looks at what else there is to do.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two tries to reach a keeper.
pub(crate) const AGAIN: Duration = Duration::from_millis(250);

/// The keepers of a log.
pub(crate) struct Kept {
    log: [u8; 16],
    transport: Transport,
    state: Mutex<State>,
    /// Notified when somebody arrived.
    arrived: Condvar,
}

impl Copies for Kept {
    fn write(&self, batch: &Sending<'_>) -> Result<(), Errno> {
        let mut bytes = Vec::new();
        batch.copy_to(&mut bytes);
        let mut state = lock(&self.state);
        if state.over.is_some() {
            return Err(Errno::IO);
        }
        state.catch_up(&batch.standing);
        state.claim(batch.standing.desk());
        state.writer.send(batch.number, batch.standing.last, bytes);
        let (mut state, done) = match state.course.is_alone() {
            true => {
                // Whatever was sent counts, whoever has it.
                state.writer.counts_alone();
                (state, Ok(()))
            }
            false => self.wait(state, batch),
        };
        state.is_waited_for = false;
        state.is_short();
        release(batch.standing.desk());
        state.count(batch.standing.desk());
        state.publish(batch.standing.desk());
        done
    }

    fn lend(&self) -> Lent {
        let state = lock(&self.state);
        let mut lent = Lent::default();
        if !state.may_be_shared() {
            // Nothing, and no number: a process that took this for the newest ones would go on with those that it has.
            return lent;
        }
        lent.given = state.given;
        for (keeper, connection) in state.writer.shared().enumerate() {
            // A process that gets none has this one send.
            if let Some(connection) = connection.and_then(|fd| fd.try_clone_to_owned().ok()) {
                lent.keepers |= 1 << keeper;
                lent.connections.push(connection);
            }
        }
        lent
    }
}

/// A log that stands, as an image for keepers.
pub(crate) struct Image<'a>(pub &'a Standing<'a>);

impl Source for Image<'_> {
    fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64> {
        self.0.stretch(from, bytes)
    }
}

impl Kept {
    /// The keepers of this log, whose desk this is. A thread connects to those that are lost, as long as this
    /// is used.
    pub fn start(said: &Descriptor, writer: Writer, course: Course, desk: Desk<'_>) -> io::Result<Arc<Self>> {
        let state = Mutex::new(State::of(writer, course, desk));
        let (log, transport) = (said.uuid(), said.transport.clone());
        let kept = Arc::new(Self { log, transport, state, arrived: Condvar::new() });
        let weak = Arc::downgrade(&kept);
        std::thread::Builder::new().name("keepers".into()).spawn(move || Self::reach_missing(&weak))?;
        Ok(kept)
    }

    /// Waits until enough have confirmed the batch that was sent.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        batch: &Sending<'_>,
    ) -> (MutexGuard<'a, State>, Result<(), Errno>) {
        let begin = Instant::now();
        loop {
            state.is_waited_for = true;
            let limit = if state.writer.counting() == 0 { Duration::ZERO } else { LOOK };
            if state.writer.hear(limit) {
                return (state, Ok(()));
            }
            if state.course.is_alone() {
                return (state, Err(course::ANEW));
            }
            state.settle(batch.standing.desk());
            state.writer.give_up_silent(Instant::now());
            let is_deciding = batch.standing.desk().alone().load(SeqCst) == alone::GOES;
            let is_late = begin.elapsed() > PROTECTED && !is_deciding;
            let too_long = || is_late.then(|| state.writer.too_few());
            if let Some(error) = state.writer.fenced().or_else(too_long) {
                state.end(&error);
                return (state, Err(Errno::IO));
            }
            if state.is_short() {
                // Nothing can go on without them, so they get all of it at once.
                state.writer.bring(&Image(&batch.standing), usize::MAX);
                state = wait_for(&self.arrived, state, LOOK).0;
            }
        }
    }

    /// Hears what keepers and others say while nobody commits, and sends those that are to have an image some more of it, at
    /// most so many bytes each. True if there are such.
    pub fn look(&self, standing: &Standing<'_>, most: usize) -> bool {
        let mut state = lock(&self.state);
        state.catch_up(standing);
        state.writer.hear(Duration::ZERO);
        state.writer.give_up_silent(Instant::now());
        state.comes_back(self.log, standing);
        if !state.course.is_alone() {
            state.renew(standing.desk());
        }
        let is_joining = state.writer.is_joining();
        if is_joining {
            state.claim(standing.desk());
            state.writer.bring(&Image(standing), most);
            release(standing.desk());
        }
        state.is_short();
        if let Some(error) = state.writer.fenced() {
            // Whoever commits hears of it; nobody may.
            state.end(&error);
        }
        state.count(standing.desk());
        state.publish(standing.desk());
        is_joining
    }

    /// Why nothing is written any more, if that is so, and was not yet told so.
    pub fn news_of_end(&self) -> Option<String> {
        let mut state = lock(&self.state);
        let news = state.over().filter(|why| state.told.as_ref() != Some(why));
        if news.is_some() {
            state.told.clone_from(&news);
        }
        news
    }

    /// The writer's turn.
    pub fn turn(&self) -> u64 {
        lock(&self.state).writer.head().epoch.counter
    }

    /// True if nothing is written any more.
    pub fn is_over(&self) -> bool {
        lock(&self.state).over.is_some()
    }
}
