//! One keeper, as its log's writer has it: what is sent on its connection, and what its answers say.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use seawall_media::{LINE, connection};
use seawall_wire::keeper::{Frame, Kind, Refusal, State, ack};
use zerocopy::IntoBytes as _;

use crate::plan::{Head, Plan, plan};
use crate::wire::{self, Wire};

/// So many bytes of what a keeper says when it refuses are read.
const REFUSAL_TEXT: usize = 512;

/// What a keeper is to the writer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not reached.
    Down,
    /// It gets an image.
    Joins,
    /// It was sent everything, and `Complete`.
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
pub(super) struct Link<W> {
    pub(super) role: Role,
    /// The connection; `None`: there is none.
    pub(super) wire: Option<W>,
    /// What of an answer has come.
    heard: ([u8; LINE], usize),
    /// Its state when it gave its promise.
    pub(super) state: Option<State>,
    /// The newest batch that it confirmed.
    pub(super) confirmed: u64,
    /// The newest of those that its disk has.
    pub(super) hardened: u64,
    /// How far the image is sent.
    pub(super) sent_to: u64,
    /// The batch with which its copy is whole, once it was sent `Complete`.
    pub(super) whole_at: u64,
    /// The newest batch sent, and when.
    pub(super) asked: (u64, Instant),
    /// Batches that it has not confirmed: their numbers, when each was sent, and its bytes.
    open: VecDeque<(u64, Instant, u64)>,
    /// Bytes of them.
    open_bytes: u64,
    /// Records of TLS, at most, of what was sent on this connection by this process.
    pub(super) records: u64,
    /// Bytes of all batches that it lacks, those included that were never sent to it.
    pub(super) lacks: u64,
    /// When there was no answer to be read.
    looked: Instant,
    /// It gave its promise before: the next connection is a new one to a keeper that was lost.
    pub(super) was_met: bool,
    pub(super) news: News,
    /// What was wrong last.
    pub(super) trouble: String,
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
    /// The newest batch that it confirmed.
    pub confirmed: u64,
    /// The newest of those that its disk has.
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

impl<W: Wire> Link<W> {
    /// One that is not reached yet.
    pub(super) fn new() -> Self {
        Self {
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
        }
    }

    /// What is known of it.
    pub(super) fn report(&self) -> LinkReport<'_> {
        LinkReport {
            role: self.role,
            state: self.state,
            confirmed: self.confirmed,
            hardened: self.hardened,
            lacks: self.lacks,
            trouble: &self.trouble,
        }
    }

    /// It gave its promise on this connection, and was in this state: it hears what is to become of its copy.
    pub(super) fn meets(&mut self, wire: W, state: State, log: u64, head: Head) {
        let what = plan(head, &state);
        (self.wire, self.state, self.heard) = (Some(wire), Some(state), ([0; LINE], 0));
        (self.confirmed, self.sent_to, self.asked, self.records) = (0, 0, (0, Instant::now()), 0);
        self.forget_open();
        self.trouble.clear();
        self.news.reconnects += u64::from(std::mem::replace(&mut self.was_met, true));
        self.role = match what {
            Plan::Counts => Role::Counts,
            Plan::Adopt => Role::Waits,
            Plan::Copy => Role::Joins,
        };
        match what {
            Plan::Counts => (self.confirmed, self.lacks) = (state.position.number, 0),
            Plan::Adopt => {
                let frame = Frame::new(Kind::Adopt, log, head.epoch).numbered(head.last, 0);
                self.whole_at = head.last;
                self.send(&frame, head.base.as_bytes());
            }
            Plan::Copy => self.send(&Frame::new(Kind::Begin, log, head.epoch), &[]),
        }
    }

    /// True if it takes more of an image: batches must find room at once.
    pub(super) fn takes_more(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::takes_more)
    }

    pub(super) fn is_witness(&self) -> bool {
        self.state.is_some_and(|state| state.is_witness())
    }

    /// What it gets of a batch.
    pub(super) fn share<'a>(&self, batch: &'a [u8]) -> &'a [u8] {
        if self.is_witness() { &[] } else { batch }
    }

    /// Sends a batch, if it gets any; to a witness its number, if that one's word on it is needed.
    pub(super) fn ask(&mut self, frame: &Frame, batch: &[u8], needs_witnesses: bool) {
        let frame = if self.is_witness() { frame.for_witness(needs_witnesses) } else { Some(*frame) };
        let Some(frame) = frame.filter(|_| self.role.gets_batches()) else { return };
        let (body, now) = (self.share(batch), Instant::now());
        self.asked = (frame.number, now);
        self.open.push_back((frame.number, now, body.len() as u64));
        self.open_bytes += body.len() as u64;
        self.send(&frame, body);
    }

    /// Sends a frame and what is behind it. A keeper that takes no more is lost.
    pub(super) fn send(&mut self, frame: &Frame, body: &[u8]) {
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
    pub(super) fn hear(&mut self, head: &Head) {
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

    pub(super) fn lose(&mut self, why: String) {
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
