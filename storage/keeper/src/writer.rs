//! A writer's turn: batches go to every keeper at once, and count when enough have confirmed them.
//!
//! | a keeper | gets batches | its word counts |
//! |---|---|---|
//! | down: lost, or not reached yet | no | no |
//! | joins: it is sent an image, a stretch at a time | yes, into that image | no |
//! | waits: it was told that it has everything | yes | from its answer to that on |
//! | counts | yes | yes |
//! | fenced: a newer writer has its promise | no, in this turn never again | no |
//!
//! A witness's word is asked for while too few that have the data count; else a witness hears only of batches that count.
//!
//! Whoever calls leads the log: nobody else sends a batch meanwhile. A keeper that takes no more bytes, or whose answers
//! cannot be read, is lost, and comes back with a new connection; nobody waits for one that is not needed.

mod again;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use seawall_media::{LINE, connection};
use seawall_wire::keeper::{Frame, Kind, Refusal, State, ack, acknowledged, needs_witnesses};
use thiserror::Error;
use zerocopy::IntoBytes as _;

use crate::meta::Roster;
use crate::peer::PeerError;
use crate::plan::{Head, Plan, plan};
use crate::quorum::Quorum;
use crate::stream::Stream;
use crate::turn::Promised;
use crate::wire::{self, Wire};

/// One that does not answer for as long is lost; enough others are waited for no longer than it takes.
const SILENCE: Duration = Duration::from_secs(5);
/// The same of one that was told that it has everything: under `affirm` its disk gets all of the image first.
const LONG_SILENCE: Duration = Duration::from_secs(60);
/// So many bytes of what a keeper says when it refuses are read.
const REFUSAL_TEXT: usize = 512;
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

/// What a keeper is to the writer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not reached.
    Down,
    /// It gets an image.
    Joins,
    /// It was told that it has everything.
    Waits,
    /// Its word counts.
    Counts,
    /// A newer writer has its promise.
    Fenced,
}

impl Role {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Joins => "joins",
            Self::Waits => "waits",
            Self::Counts => "counts",
            Self::Fenced => "fenced",
        }
    }

    /// True for one that is sent batches: it is reached, and in this writer's turn.
    pub const fn gets_batches(self) -> bool {
        matches!(self, Self::Joins | Self::Waits | Self::Counts)
    }
}

/// One keeper.
struct Link<W> {
    role: Role,
    wire: Option<W>,
    /// What of an answer has come.
    heard: ([u8; LINE], usize),
    state: Option<State>,
    confirmed: u64,
    hardened: u64,
    /// How far the image is sent.
    sent_to: u64,
    /// The batch with which its copy is whole, once it was told that it has everything.
    whole_at: u64,
    /// The newest batch sent, and when.
    asked: (u64, Instant),
    /// Batches that it has not confirmed: their numbers, when each was sent, and its bytes.
    open: VecDeque<(u64, Instant, u64)>,
    /// Bytes of them.
    open_bytes: u64,
    /// Records of TLS, at most, of what was sent on this connection by this process.
    records: u64,
    /// Bytes of all batches that it lacks, those included that were never sent to it.
    lacks: u64,
    /// When there was no answer to be read.
    looked: Instant,
    was_met: bool,
    news: News,
    trouble: String,
}

/// What became known of a keeper, and was not said yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// How long it took to confirm batches, each one. Answers that came while nobody listened are left out: when
    /// they came is not known.
    pub answers: Vec<Duration>,
    /// Bytes that were sent.
    pub sent: u64,
    /// How often it was connected to again after it had been lost.
    pub reconnects: u64,
}

/// What is known of a keeper, for people.
#[derive(Clone, Debug)]
pub struct LinkReport<'w> {
    /// What it is now.
    pub role: Role,
    /// Its state when it gave its promise.
    pub state: Option<State>,
    /// The newest batch that it confirmed, and that its disk has.
    pub confirmed: u64,
    /// That.
    pub hardened: u64,
    /// Bytes of the batches that it lacks.
    pub lacks: u64,
    /// What was wrong last.
    pub trouble: &'w str,
}

impl LinkReport<'_> {
    /// True for one that has data, as far as it was ever reached.
    pub fn has_data(&self) -> bool {
        self.state.is_some_and(|state| !state.is_witness())
    }
}

/// A writer with its keepers.
pub struct Writer<W = Stream> {
    log: u64,
    head: Head,
    roster: Roster,
    links: Vec<Link<W>>,
    /// The newest batch that was sent, whether it counts or not.
    sent: u64,
    /// It, until it counts.
    under_way: Option<(Frame, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl<W: Wire> Writer<W> {
    /// The writer of the log whose UUID has this low half. Nobody is reached yet.
    pub fn new(log: u64, head: Head, roster: Roster) -> Self {
        let link = |_: &_| Link {
            role: Role::Down,
            wire: None,
            heard: ([0; LINE], 0),
            state: None,
            confirmed: 0,
            hardened: 0,
            sent_to: 0,
            whole_at: 0,
            asked: (0, Instant::now()),
            open: VecDeque::new(),
            open_bytes: 0,
            records: 0,
            lacks: 0,
            looked: Instant::now(),
            was_met: false,
            news: News::default(),
            trouble: "not reached yet".into(),
        };
        let links = roster.members.iter().map(link).collect();
        Self { log, head, roster, links, sent: head.last, under_way: None, buffer: Vec::new() }
    }

    /// Where its log is.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Who keeps it.
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
        self.links.iter().map(|link| LinkReport {
            role: link.role,
            state: link.state,
            confirmed: link.confirmed,
            hardened: link.hardened,
            lacks: link.lacks,
            trouble: &link.trouble,
        })
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
        let (head, log) = (self.head, self.log);
        let link = &mut self.links[keeper];
        let what = plan(head, &state);
        (link.wire, link.state, link.heard) = (Some(wire), Some(state), ([0; LINE], 0));
        (link.confirmed, link.sent_to, link.asked, link.records) = (0, 0, (0, Instant::now()), 0);
        link.forget_open();
        link.trouble.clear();
        link.news.reconnects += u64::from(std::mem::replace(&mut link.was_met, true));
        link.role = match what {
            Plan::Counts => Role::Counts,
            Plan::Adopt => Role::Waits,
            Plan::Copy => Role::Joins,
        };
        match what {
            Plan::Counts => (link.confirmed, link.lacks) = (state.position.number, 0),
            Plan::Adopt => {
                let frame = Frame::new(Kind::Adopt, log, head.epoch).numbered(head.last, 0);
                link.whole_at = head.last;
                link.send(&frame, head.base.as_bytes());
            }
            Plan::Copy => link.send(&Frame::new(Kind::Begin, log, head.epoch), &[]),
        }
        if let Some((frame, batch)) = &self.under_way {
            link.ask(frame, batch, false);
        }
    }

    /// Sends joining keepers some more of the image, at most so many bytes each. The log stands meanwhile.
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

    /// Other processes of this host led meanwhile: batches count up to this one.
    pub fn follow(&mut self, last: u64) {
        assert!(last >= self.head.last, "{last} counts, and {:?}", self.head);
        let before = std::mem::replace(&mut self.head.last, last);
        self.sent = self.sent.max(last);
        for link in self.links.iter_mut().filter(|link| matches!(link.role, Role::Waits | Role::Counts)) {
            // They asked it at some time since the last look; a witness for one that counted by then, at least.
            let asked = if link.is_witness() { before } else { last };
            if link.asked.0 < asked {
                link.asked = (asked, Instant::now());
            }
        }
    }

    /// Another process of this host heard on this keeper's connection that it confirmed these, and that its disk has those.
    pub fn has_confirmed(&mut self, keeper: usize, number: u64, hardened: u64) {
        let link = &mut self.links[keeper];
        if link.role == Role::Counts {
            (link.confirmed, link.hardened) = (link.confirmed.max(number), link.hardened.max(hardened));
        }
    }

    /// Another process of this host found this keeper's connection of no use. What came on it is heard first.
    pub fn is_lost(&mut self, keeper: usize) {
        let (head, link) = (self.head, &mut self.links[keeper]);
        link.hear(&head);
        if link.role.gets_batches() {
            link.lose("the connection was lost".into());
        }
    }

    /// True if other processes of this host may send: enough keepers count, and the connections may be
    /// [shared](Wire::shared).
    pub fn may_be_shared(&self) -> bool {
        let is_settled = |link: &Link<W>| {
            !link.role.gets_batches() || link.wire.as_ref().is_some_and(|wire| wire.shared().is_some())
        };
        self.under_way.is_none() && self.counting() >= self.roster.acks && self.links.iter().all(is_settled)
    }

    /// The connections of those that get batches, if they may be [shared](Wire::shared), in the roster's order.
    pub fn shared(&self) -> impl Iterator<Item = Option<BorrowedFd<'_>>> {
        let gets = |link: &&Link<W>| link.role.gets_batches();
        self.links.iter().map(move |link| Some(link).filter(gets)?.wire.as_ref()?.shared())
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

impl<W: Wire> Link<W> {
    /// True if it takes more of an image: batches must find room at once.
    fn takes_more(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::takes_more)
    }

    fn is_witness(&self) -> bool {
        self.state.is_some_and(|state| state.is_witness())
    }

    /// What it gets of a batch.
    fn share<'a>(&self, batch: &'a [u8]) -> &'a [u8] {
        if self.is_witness() { &[] } else { batch }
    }

    /// Sends a batch, if it gets any; to a witness its number, if that one's word on it is needed.
    fn ask(&mut self, frame: &Frame, batch: &[u8], needs_witnesses: bool) {
        let frame = if self.is_witness() { frame.for_witness(needs_witnesses) } else { Some(*frame) };
        let Some(frame) = frame.filter(|_| self.role.gets_batches()) else { return };
        let (body, now) = (self.share(batch), Instant::now());
        self.asked = (frame.number, now);
        self.open.push_back((frame.number, now, body.len() as u64));
        self.open_bytes += body.len() as u64;
        self.send(&frame, body);
    }

    /// Sends a frame and what is behind it. A keeper that takes no more is lost.
    fn send(&mut self, frame: &Frame, body: &[u8]) {
        let Some(wire) = &self.wire else { return };
        match wire.send_all(&wire::sealed(frame, body)) {
            Ok(()) => {
                self.news.sent += (LINE + body.len()) as u64;
                self.records += connection::records(LINE + body.len());
            }
            Err(error) => self.lose(error.to_string()),
        }
    }

    /// Reads the answers that are there.
    fn hear(&mut self, head: &Head) {
        while let Some(wire) = &self.wire {
            let (line, len) = &mut self.heard;
            match wire.read(&mut line[*len..]) {
                Ok(0) => return self.lose("it hung up".into()),
                Ok(more) => *len += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.looked = Instant::now();
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.lose(error.to_string()),
            }
            if *len == LINE {
                let frame = Frame::parse(line);
                *len = 0;
                self.take(head, frame);
            }
        }
    }

    fn take(&mut self, head: &Head, frame: Option<Frame>) {
        let Some(frame) = frame else { return self.lose("its answer makes no sense".into()) };
        match frame.kind() {
            Some(Kind::Ack) => {}
            Some(Kind::Refused) => {
                let is_fenced = Refusal::from_word(frame.code) == Some(Refusal::Fenced);
                let why = self.text(frame.len as usize);
                let why = why.unwrap_or_else(|| format!("{:?}", Refusal::from_word(frame.code)));
                self.lose(format!("it refused: {why}"));
                self.role = if is_fenced { Role::Fenced } else { Role::Down };
                return;
            }
            _ => return self.lose("its answer does not fit the request".into()),
        }
        if frame.code & ack::JOINING != 0 || frame.epoch != head.epoch {
            return;
        }
        self.answered(frame.number);
        // From there on it says itself how far it is.
        if self.role == Role::Waits && frame.number >= self.whole_at {
            self.role = Role::Counts;
        }
        if self.role == Role::Counts && frame.number > self.confirmed {
            (self.confirmed, self.hardened) = (frame.number, frame.previous);
            self.lacks = self.open_bytes;
        }
    }

    /// Batches up to this number are not open any more. How long each took is news if it is known better than to a
    /// quarter: the answer came since it was last looked for.
    fn answered(&mut self, number: u64) {
        let now = Instant::now();
        let since_look = now.duration_since(self.looked);
        while let Some((_, asked, bytes)) = self.open.front().copied().filter(|(open, _, _)| *open <= number)
        {
            self.open.pop_front();
            self.open_bytes -= bytes;
            let at_most = now.duration_since(asked);
            let unknown = since_look.min(at_most);
            if self.role == Role::Counts && unknown <= at_most / 4 {
                self.news.answers.push(at_most - unknown / 2);
            }
        }
    }

    /// The text behind a refusal, as far as it has come with it.
    fn text(&self, len: usize) -> Option<String> {
        let mut bytes = vec![0; len.min(REFUSAL_TEXT)];
        let read = self.wire.as_ref()?.read(&mut bytes).ok().filter(|read| *read > 0)?;
        Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }

    fn lose(&mut self, why: String) {
        if let Some(wire) = &self.wire {
            wire.hang_up();
        }
        (self.role, self.wire, self.trouble) = (Role::Down, None, why);
        self.forget_open();
    }

    /// Nothing is answered any more of what was sent to it.
    fn forget_open(&mut self) {
        self.open.clear();
        self.open_bytes = 0;
    }
}
