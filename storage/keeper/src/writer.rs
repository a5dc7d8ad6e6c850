//! A writer's turn: batches go to every keeper at once, and count when enough have confirmed them.
//!
//! | a keeper | gets batches | its word counts |
//! |---|---|---|
//! | down: lost, or not reached yet | no | no |
//! | joins: it is sent an image, a stretch at a time | yes, into that image | no |
//! | waits: it was sent everything, and `Complete` | yes | from its answer to that on |
//! | counts | yes | yes |
//! | fenced: a newer writer has its promise | no, in this turn never again | no |
//!
//! A witness's word is asked for while too few that have the data count; else a witness hears only of batches that count.
//!
//! Whoever calls leads the log: nobody else sends a batch meanwhile. A keeper that takes no more bytes, or whose answers
//! cannot be read, is lost, and comes back with a new connection; nobody waits for one that is not needed.

mod again;
mod link;
mod shared;

use std::time::{Duration, Instant};

use seawall_wire::keeper::{Frame, Kind, State, acknowledged, needs_witnesses};
use thiserror::Error;

use crate::meta::Roster;
use crate::peer::PeerError;
use crate::plan::Head;
use crate::quorum::Quorum;
use crate::stream::Stream;
use crate::turn::Promised;
use crate::wire::{self, Wire};
use link::Link;
pub use link::{LinkReport, News, Role};

/// One that does not answer for as long is lost; enough others are waited for no longer than it takes.
const SILENCE: Duration = Duration::from_secs(5);
/// The same of one that was sent `Complete`: under `affirm` its disk gets all of the image first.
const LONG_SILENCE: Duration = Duration::from_secs(60);
/// How long an answer is looked for before the thread sleeps.
const SPIN: Duration = Duration::from_micros(25);

/// Where an image comes from that a keeper is to have.
pub trait Source {
    /// The next stretch from `from` on that is not of zeros: where it is. None of it is newer than the newest batch that
    /// was sent, or older than what that has in the same place: the keeper may have it already.
    fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64>;
}

/// Why a batch does not count, and none will.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Newer writers have so many keepers that the others are not enough.
    #[error("another writer took the log over: {0}")]
    Fenced(String),
    /// Too few are reached.
    #[error("only {counting} of the {acks} keepers that must confirm are reached: {why}")]
    TooFew {
        /// How many are.
        counting: usize,
        /// How many must be.
        acks: usize,
        /// What keeps the others.
        why: String,
    },
}

/// A writer with its keepers.
pub struct Writer<W = Stream> {
    log: u64,
    head: Head,
    roster: Roster,
    links: Vec<Link<W>>,
    /// The newest batch that was sent, whether it counts or not.
    sent: u64,
    /// That batch, until it counts.
    under_way: Option<(Frame, Vec<u8>)>,
    /// Room for a stretch of an image.
    buffer: Vec<u8>,
}

impl<W: Wire> Writer<W> {
    /// The writer of the log whose UUID has this low half. Nobody is reached yet.
    pub fn new(log: u64, head: Head, roster: Roster) -> Self {
        let links = roster.members.iter().map(|_| Link::new()).collect();
        Self { log, head, roster, links, sent: head.last, under_way: None, buffer: Vec::new() }
    }

    /// Where its log is.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The keepers.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How many are enough.
    pub fn quorum(&self) -> Quorum {
        self.roster.quorum()
    }

    /// Keepers that are to be connected to, in the roster's order.
    pub fn missing(&self) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        links.filter(|(_, link)| link.role == Role::Down).map(|(i, _)| i).collect()
    }

    /// True if some keeper is to be sent an image.
    pub fn is_joining(&self) -> bool {
        self.links.iter().any(|link| link.role == Role::Joins)
    }

    /// How many count.
    pub fn counting(&self) -> usize {
        self.links.iter().filter(|link| link.role == Role::Counts).count()
    }

    /// What is known of each keeper, in the roster's order.
    pub fn report(&self) -> Vec<LinkReport<'_>> {
        self.known().collect()
    }

    /// The same, one after the other.
    pub fn known(&self) -> impl Iterator<Item = LinkReport<'_>> {
        self.links.iter().map(Link::report)
    }

    /// What became known of each keeper since this was called last, in the roster's order.
    pub fn news(&mut self) -> impl Iterator<Item = News> {
        self.links.iter_mut().map(|link| std::mem::take(&mut link.news))
    }

    /// A keeper was not reached, or gave no promise.
    pub fn misses(&mut self, keeper: usize, error: &PeerError) {
        let link = &mut self.links[keeper];
        link.role = if error.is_fenced() { Role::Fenced } else { Role::Down };
        link.trouble = error.to_string();
    }

    /// A keeper gave its promise on this connection, and was in this state. A batch that is under way is sent to it too.
    pub fn meets(&mut self, keeper: usize, wire: W, state: State) {
        let link = &mut self.links[keeper];
        link.meets(wire, state, self.log, self.head);
        if let Some((frame, batch)) = &self.under_way {
            link.ask(frame, batch, false);
        }
    }

    /// Sends joining keepers some more of the image, at most so many bytes each. No batch is sent meanwhile.
    pub fn bring(&mut self, source: &dyn Source, most: usize) {
        let (head, log, sent) = (self.head, self.log, self.sent);
        let mut bytes = std::mem::take(&mut self.buffer);
        for link in self.links.iter_mut().filter(|link| link.role == Role::Joins) {
            let mut left = most;
            while link.role == Role::Joins && left > 0 && link.takes_more() {
                let Some(at) = source.stretch(link.sent_to, &mut bytes) else {
                    // It has what counts, and what was sent since.
                    (link.role, link.asked, link.whole_at) = (Role::Waits, (sent, Instant::now()), sent);
                    link.send(&Frame::new(Kind::Complete, log, head.epoch).numbered(sent, 0), &[]);
                    break;
                };
                link.send(&Frame::new(Kind::Piece, log, head.epoch).numbered(at, sent), &bytes);
                link.sent_to = at + bytes.len() as u64;
                left = left.saturating_sub(bytes.len());
            }
        }
        self.buffer = bytes;
    }

    /// Sends a batch to everybody. It is under way until it [counts](Self::hear).
    pub fn send(&mut self, number: u64, previous: u64, batch: Vec<u8>) {
        assert!(number > self.sent && previous == self.head.last, "{number} after {:?}", self.head);
        self.sent = number;
        let frame = Frame::new(Kind::Batch, self.log, self.head.epoch).numbered(number, previous);
        for link in &mut self.links {
            link.lacks += link.share(&batch).len() as u64;
            link.ask(&frame, &batch, false);
        }
        self.under_way = Some((frame, batch));
    }

    /// Asks witnesses for their word on the batch under way, if it is needed.
    fn ask_witnesses(&mut self) {
        let Some((frame, batch)) = &self.under_way else { return };
        let with_data = self.links.iter().filter(|link| link.role == Role::Counts && !link.is_witness());
        if needs_witnesses(self.roster.acks, with_data.count()) {
            for link in self.links.iter_mut().filter(|link| link.is_witness() && link.asked.0 < frame.number)
            {
                link.ask(frame, batch, true);
            }
        }
    }

    /// The batch under way does not count, and nobody is asked any more: this host goes on without its keepers.
    pub fn stops(&mut self) {
        self.under_way = None;
        for link in self.links.iter_mut().filter(|link| link.role != Role::Fenced) {
            link.lose("this host went on without it".into());
        }
    }

    /// The batch under way counts by this host's word alone. Those that are reached have it, or will.
    pub fn counts_alone(&mut self) {
        (self.head.last, self.under_way) = (self.sent, None);
    }

    /// Hears what keepers answered; waits for some of it at most so long. True if the newest batch counts now.
    pub fn hear(&mut self, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            for link in &mut self.links {
                link.hear(&self.head);
            }
            self.ask_witnesses();
            if self.is_acknowledged() {
                (self.head.last, self.under_way) = (self.sent, None);
                return true;
            }
            let spent = begin.elapsed();
            if spent >= limit {
                return false;
            }
            if spent < SPIN.min(limit) {
                std::hint::spin_loop();
                continue;
            }
            wire::wait(self.links.iter().filter_map(|link| link.wire.as_ref()), limit - spent);
        }
    }

    /// True if enough have confirmed the newest batch.
    fn is_acknowledged(&self) -> bool {
        let counting = self.links.iter().filter(|link| link.role == Role::Counts);
        let confirmed = counting.map(|link| (link.confirmed, link.state.is_some() && !link.is_witness()));
        acknowledged(self.roster.acks, confirmed) >= self.sent
    }

    /// Gives up those that do not answer, as of `now`.
    pub fn give_up_silent(&mut self, now: Instant) {
        for link in &mut self.links {
            // One that joins is asked for nothing, and one that waits may have to bring all of it to its disk.
            let patience = match link.role {
                Role::Counts => SILENCE,
                Role::Waits => LONG_SILENCE,
                Role::Down | Role::Joins | Role::Fenced => continue,
            };
            if link.asked.0 > link.confirmed && now.saturating_duration_since(link.asked.1) > patience {
                link.lose("it does not answer".into());
            }
        }
    }

    /// Why no batch will count any more, if that is so: newer writers have too many of the keepers.
    pub fn fenced(&self) -> Option<WriteError> {
        let fenced = || self.links.iter().filter(|link| link.role == Role::Fenced);
        let left = self.roster.members.len() - fenced().count();
        let why = || fenced().next().map_or_else(String::new, |link| link.trouble.clone());
        (left < self.roster.acks).then(|| WriteError::Fenced(why()))
    }

    /// True while those that count, and those that are being brought up to date, are enough.
    pub fn may_become_enough(&self) -> bool {
        self.links.iter().filter(|link| link.role.gets_batches()).count() >= self.roster.acks
    }

    /// Why too few count, in words.
    pub fn too_few(&self) -> WriteError {
        let lost = self.links.iter().zip(&self.roster.members).filter(|(link, _)| link.role != Role::Counts);
        let why: Vec<String> =
            lost.map(|(link, member)| format!("{} {}", member.address, link.trouble)).collect();
        WriteError::TooFew { counting: self.counting(), acks: self.roster.acks, why: why.join("; ") }
    }
}

impl Writer {
    /// A keeper was reached, or not.
    pub fn arrives(&mut self, keeper: usize, reached: Result<Promised, PeerError>) {
        let Promised { peer, state } = match reached {
            Ok(promised) => promised,
            Err(error) => return self.misses(keeper, &error),
        };
        let stream = peer.into_stream();
        match wire::prepare(&stream) {
            Ok(()) => self.meets(keeper, stream, state),
            Err(error) => self.links[keeper].trouble = error.to_string(),
        }
    }
}
