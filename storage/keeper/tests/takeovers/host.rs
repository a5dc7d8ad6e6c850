//! A simulated host that writes: production's writer and its choice of a copy, an image, and programs that commit.

mod alone;

use std::time::Duration;

use seawall_keeper::meta::{Member, Mode, Roster};
use seawall_keeper::peer::PeerError;
use seawall_keeper::plan::Head;
use seawall_keeper::turn;
use seawall_keeper::writer::{Source, Writer};
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal, State};
use zerocopy::FromBytes as _;

use crate::pipe::Pipe;
use crate::scratch::{
    COMMITS, Commit, Files, IMAGE, Image, LINES, LOG, STATE, Scratch, bytes, image, line_of, newest, state,
};
use alone::Secured;

/// A keeper, as far as the writer has not got its connection.
#[derive(Clone, Default)]
struct Reached {
    pipe: Option<Pipe>,
    state: Option<State>,
    /// The writer has it.
    is_met: bool,
}

pub enum Phase {
    /// Looks for the newest copy.
    Looks,
    /// Fetches it from the first of these that can give it.
    Fetches(Head, Vec<usize>),
    /// Has it, and brings enough keepers to it.
    Brings,
    Serves,
    /// Makes durable what was acknowledged, with too few keepers.
    Secures(Secured),
    /// Goes on without them.
    Alone,
    /// Looks for enough of them, none of which may have a copy of a newer epoch than this.
    Returns(Epoch),
    Over,
}

pub struct Host {
    pub epoch: Epoch,
    pub phase: Phase,
    pub image: Image,
    /// What its cache has of the files.
    pub files: Files,
    /// The same as the image as far as batches have it that count. A keeper gets no other: of what no batch has yet, the newer may be
    /// there and the older not.
    counted: Image,
    /// What no batch that counts has yet, and what of that is in the one under way.
    waiting: Vec<Commit>,
    under_way: Vec<Commit>,
    claimed: u64,
    /// Programs use the log.
    pub is_open: bool,
    /// The log is to say that nothing is live in it, and the batch under way does.
    is_closing: bool,
    closes: bool,
    /// Its keepers do not have the log again yet.
    pub is_returning: bool,
    roster: Roster,
    reached: Vec<Reached>,
    fetched: Vec<u8>,
    writer: Option<Writer<Pipe>>,
}

impl Host {
    /// Somebody who begins to take the log over.
    pub fn new(epoch: Epoch, keepers: usize, acks: usize) -> Self {
        let member = Member { id: String::new(), address: String::new(), witness: false };
        Self {
            epoch,
            phase: Phase::Looks,
            image: Image::default(),
            files: Files::default(),
            counted: Image::default(),
            waiting: Vec::new(),
            under_way: Vec::new(),
            claimed: 0,
            is_open: false,
            is_closing: false,
            closes: false,
            is_returning: false,
            roster: Roster { acks, members: vec![member; keepers], mode: Mode::default() },
            reached: vec![Reached::default(); keepers],
            fetched: vec![0; IMAGE],
            writer: None,
        }
    }

    /// True if this keeper is to be connected to.
    pub fn misses(&self, keeper: usize) -> bool {
        let reached = &self.reached[keeper];
        let is_lost = || self.writer.as_ref().is_some_and(|writer| writer.missing().contains(&keeper));
        // The copy is fetched from a keeper that has promised: whoever is lost and comes back may have lost it.
        let is_due = !matches!(self.phase, Phase::Fetches(..) | Phase::Alone | Phase::Over);
        is_due && (reached.pipe.is_none() || reached.is_met && is_lost())
    }

    /// Asks a keeper for its promise. What the former connection still carries is not called back.
    pub fn connect(&mut self, keeper: usize, pipe: Pipe) {
        let ask = Frame::new(Kind::Promise, LOG, self.epoch);
        pipe.ask(&match self.phase {
            Phase::Returns(found) => ask.numbered(found.counter, found.writer),
            _ => ask,
        });
        self.reached[keeper] = Reached { pipe: Some(pipe), state: None, is_met: false };
    }

    /// Its daemon is killed: another one goes on in the same turn, with the image and what no batch has yet. True if so.
    pub fn is_replaced(&mut self) -> bool {
        let may_be = matches!(self.phase, Phase::Brings | Phase::Serves);
        let Some(writer) = self.writer.as_ref().filter(|_| may_be) else {
            return false;
        };
        self.writer = Some(Writer::new(LOG, writer.head(), self.roster.clone()));
        self.reached.fill(Reached::default());
        self.under_way.clear();
        self.is_closing |= std::mem::take(&mut self.closes);
        self.phase = Phase::Brings;
        true
    }

    /// Chooses the newest copy, if enough keepers have promised. False: nobody can tell which it is.
    pub fn choose(&mut self) -> bool {
        let answers: Vec<Option<State>> = self.reached.iter().map(|reached| reached.state).collect();
        let Ok((head, newest)) = turn::choose(self.roster.quorum(), self.epoch, &answers) else {
            return false;
        };
        self.fetch(head, newest);
        true
    }

    fn fetch(&mut self, head: Head, holders: Vec<usize>) {
        self.fetched.fill(0);
        self.phase = match holders.first().map(|keeper| &self.reached[*keeper].pipe) {
            Some(Some(pipe)) => {
                pipe.ask(&Frame::new(Kind::Fetch, LOG, self.epoch));
                Phase::Fetches(head, holders)
            }
            Some(None) => return self.fetch(head, holders[1..].to_vec()),
            None => Phase::Over,
        };
    }

    /// Hears what keepers answered, and so many bytes more of this one. What it acknowledges by that.
    pub fn hear(&mut self, keeper: usize, more: usize) -> Vec<Commit> {
        if let Some(pipe) = self.reached[keeper].pipe.clone() {
            pipe.deliver(more);
            if !self.reached[keeper].is_met {
                self.hear_from(keeper, &pipe);
            }
        }
        self.hear_those_met()
    }

    /// True if every keeper's word counts.
    pub fn has_all(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.counting() == self.roster.members.len())
    }

    /// Hears one that the writer does not know of yet.
    fn hear_from(&mut self, keeper: usize, pipe: &Pipe) {
        while let Some((frame, body)) = pipe.heard() {
            match (frame.kind(), &self.phase) {
                (Some(Kind::Promised), _) => {
                    let state = State::read_from_bytes(&body).expect("a state");
                    self.reached[keeper].state = Some(state);
                    if self.writer.is_some() {
                        return self.meet(keeper);
                    }
                }
                (Some(Kind::Piece), _) => {
                    self.fetched[frame.number as usize..][..body.len()].copy_from_slice(&body);
                }
                (Some(Kind::Complete), Phase::Fetches(head, _)) => return self.has_it(*head),
                (Some(Kind::Refused), _) => {
                    let refusal = Refusal::from_word(frame.code);
                    let (address, why) = (String::new(), String::new());
                    if let Some(writer) = &mut self.writer {
                        writer.misses(keeper, &PeerError::Refused { address, refusal, why });
                    }
                }
                (kind, _) => panic!("{kind:?} was not asked for"),
            }
        }
        if pipe.is_lost() {
            self.reached[keeper] = Reached::default();
            if let Phase::Fetches(head, holders) = &self.phase
                && holders[0] == keeper
            {
                self.fetch(*head, holders[1..].to_vec());
            }
        }
    }

    /// The newest copy is here.
    fn has_it(&mut self, head: Head) {
        self.image = image(&self.fetched);
        (self.counted, self.claimed) = (self.image, head.begun);
        self.writer = Some(Writer::new(LOG, head, self.roster.clone()));
        self.phase = Phase::Brings;
        (0..self.reached.len()).for_each(|keeper| self.meet(keeper));
    }

    fn meet(&mut self, keeper: usize) {
        let (reached, writer) = (&mut self.reached[keeper], self.writer.as_mut());
        if let (Some(pipe), Some(state), Some(writer)) = (&reached.pipe, reached.state, writer) {
            writer.meets(keeper, pipe.clone(), state);
            reached.is_met = true;
        }
    }

    fn hear_those_met(&mut self) -> Vec<Commit> {
        let is_over = matches!(self.phase, Phase::Over | Phase::Alone);
        let Some(writer) = self.writer.as_mut().filter(|_| !is_over) else {
            return Vec::new();
        };
        let counts = writer.hear(Duration::ZERO);
        if !counts {
            if writer.fenced().is_some() {
                self.phase = Phase::Over;
            }
            return Vec::new();
        }
        if matches!(self.phase, Phase::Brings) {
            self.phase = Phase::Serves;
        }
        let commits = std::mem::take(&mut self.under_way);
        commits.iter().for_each(|commit| self.counted[line_of(*commit)] = *commit);
        self.waiting.retain(|commit| !commits.contains(commit));
        if std::mem::take(&mut self.closes) {
            // Its first batch: from now on programs use the log.
            (self.counted[STATE], self.is_open) = (self.image[STATE], true);
        }
        commits
    }

    /// It has recovered: the files are these, and nothing of the log is live any more. Programs use it once that counts.
    pub fn closes(&mut self, files: Files) {
        self.files = files;
        let retired = newest(&files).max(newest(&self.image[..COMMITS]));
        (self.image[STATE], self.is_closing) = (state(retired, self.epoch.counter), true);
    }

    /// Sends keepers some more of the image.
    pub fn bring(&mut self, most: usize) {
        // Nothing may be older than in a batch that was sent: the keeper may have that already.
        let mut sent = self.counted;
        self.under_way.iter().for_each(|commit| sent[line_of(*commit)] = *commit);
        if self.closes {
            sent[STATE] = self.image[STATE];
        }
        let is_over = matches!(self.phase, Phase::Over | Phase::Alone);
        if let Some(writer) = self.writer.as_mut().filter(|_| !is_over) {
            writer.bring(&Lines(bytes(&sent)), most);
        }
    }

    /// A program writes: the commit is in the image, and in the next batch.
    pub fn write(&mut self) {
        if self.is_open && !matches!(self.phase, Phase::Over) {
            let order = newest(&self.files).max(self.image[STATE].order) + 1;
            let commit = Commit { order, by: self.epoch.writer };
            self.files[line_of(commit)] = commit;
            if !self.is_alone() {
                self.image[line_of(commit)] = commit;
            }
            self.waiting.push(commit);
        }
    }

    /// True once its files are what the log made of them.
    pub fn has_recovered(&self) -> bool {
        self.is_open || self.is_closing || self.closes
    }

    /// A thread leads: all that is not in a batch that counts goes to everybody.
    pub fn lead(&mut self, scratch: &Scratch) {
        let is_idle = matches!(self.phase, Phase::Serves) && self.under_way.is_empty() && !self.closes;
        let has_more = self.is_closing || !self.waiting.is_empty();
        let Some(writer) = self.writer.as_mut().filter(|_| is_idle && has_more && !self.is_returning) else {
            return;
        };
        self.claimed += 1;
        let (number, previous) = (self.claimed, writer.head().last);
        let mut lines: Vec<usize> = self.waiting.iter().map(|commit| line_of(*commit)).collect();
        if self.is_closing {
            (self.is_closing, self.closes) = (false, true);
            lines.push(STATE);
        }
        lines.sort_unstable();
        lines.dedup();
        self.under_way = self.waiting.clone();
        writer.send(number, previous, scratch.batch(&self.image, &lines, (number, previous)));
    }
}

/// An image, as it is sent.
struct Lines(Vec<u8>);

impl Source for Lines {
    fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64> {
        let lines = (from as usize / LINE..LINES).map(|line| (line * LINE, &self.0[line * LINE..][..LINE]));
        let (at, line) = { lines }.find(|(_, line)| line.iter().any(|byte| *byte != 0))?;
        bytes.clear();
        bytes.extend_from_slice(line);
        Some(at as u64)
    }
}
