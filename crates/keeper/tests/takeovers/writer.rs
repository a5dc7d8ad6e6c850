//! A simulated writer: one host's daemon and its leaders, with production's quorums and plans.

use seawall_keeper::plan::{Head, Plan, plan};
use seawall_keeper::quorum::{self, Quorum};
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Position, State};

use crate::keeper::{Answer, Conn, Request};
use crate::scratch::{Commit, Image, LINES, Scratch, bytes, image, line_of};

/// What a keeper is to this writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Its promise was asked for.
    Asked,
    /// It gets the image, from this line on.
    Joins(usize),
    /// It was asked to adopt, or its second image is complete: the answer counts.
    Waits,
    /// Batches go there, and what it confirms counts.
    Counts,
}

struct Peer {
    conn: Option<usize>,
    link: Link,
    state: Option<State>,
    confirmed: u64,
}

pub enum Phase {
    /// Looks for the newest copy; then for its image.
    Looks,
    Fetches(usize),
    /// Has it, and brings enough keepers to it.
    Brings,
    Serves,
    /// Fenced.
    Over,
}

pub struct Writer {
    pub epoch: Epoch,
    pub phase: Phase,
    quorum: Quorum,
    head: Head,
    pub image: Image,
    /// The same as far as it is in batches that count. A keeper gets no other: of what no batch has yet, the newer may be
    /// there and the older not.
    counted: Image,
    /// The next batch, with what is in it, and its number: under way.
    under_way: Option<(u64, Vec<Commit>)>,
    claimed: u64,
    peers: Vec<Peer>,
    /// What no batch that counts has yet.
    waiting: Vec<Commit>,
}

impl Writer {
    pub fn new(epoch: Epoch, quorum: Quorum) -> Self {
        let peer = |_| Peer { conn: None, link: Link::Asked, state: None, confirmed: 0 };
        let head = Head { epoch, base: Position::default(), begun: 0, last: 0 };
        Self {
            epoch,
            phase: Phase::Looks,
            quorum,
            head,
            image: Image::default(),
            counted: Image::default(),
            under_way: None,
            claimed: 0,
            peers: (0..quorum.keepers).map(peer).collect(),
            waiting: Vec::new(),
        }
    }

    /// Connects to a keeper anew. What the former connection still carries is not called back.
    pub fn connect(&mut self, keeper: usize, conns: &mut Vec<(usize, Conn)>) {
        let mut conn = Conn::default();
        conn.requests.push_back(Request::Promise(self.epoch));
        conns.push((keeper, conn));
        self.peers[keeper] =
            Peer { conn: Some(conns.len() - 1), link: Link::Asked, state: None, confirmed: 0 };
    }

    /// Hears what a keeper answered. What it acknowledges by that.
    pub fn hear(&mut self, keeper: usize, conns: &mut [(usize, Conn)]) -> Vec<Commit> {
        let Some(at) = self.peers[keeper].conn else { return Vec::new() };
        let Some(answer) = conns[at].1.answers.pop_front() else {
            if conns[at].1.is_broken {
                self.peers[keeper].conn = None;
                self.peers[keeper].link = Link::Asked;
            }
            return Vec::new();
        };
        let head = self.head;
        let peer = &mut self.peers[keeper];
        match answer {
            Answer::Refused(refusal) => {
                if refusal == seawall_wire::keeper::Refusal::Fenced && self.promise_of(&conns[at].1) {
                    self.phase = Phase::Over;
                }
                self.peers[keeper].conn = None;
                self.peers[keeper].link = Link::Asked;
            }
            Answer::Promised(state) => peer.state = Some(state),
            Answer::Ack { number, counts } if counts => {
                if peer.link == Link::Waits && number >= head.last {
                    peer.link = Link::Counts;
                }
                if peer.link == Link::Counts {
                    peer.confirmed = peer.confirmed.max(number);
                }
            }
            Answer::Ack { .. } => {}
            Answer::Image(bytes) => {
                if matches!(self.phase, Phase::Fetches(from) if from == keeper) {
                    self.image = image(&bytes);
                    self.counted = self.image;
                    self.phase = Phase::Brings;
                }
            }
        }
        self.acknowledge()
    }

    /// In this world a connection is refused as fenced only by a newer epoch, or by a newer connection of one's own.
    fn promise_of(&self, conn: &Conn) -> bool {
        conn.is_broken && conn.requests.is_empty() && matches!(self.phase, Phase::Looks)
    }

    fn acknowledge(&mut self) -> Vec<Commit> {
        let counting = |peer: &&Peer| peer.link == Link::Counts;
        let confirmed: Vec<(u64, bool)> = self
            .peers
            .iter()
            .filter(counting)
            .map(|peer| (peer.confirmed, peer.state.is_some_and(|state| !state.is_witness())))
            .collect();
        let enough = quorum::acknowledged(self.quorum.acks, &confirmed);
        if matches!(self.phase, Phase::Brings) && enough >= self.head.begun && enough > 0 {
            self.phase = Phase::Serves;
        }
        match self.under_way.take() {
            Some((number, commits)) if enough >= number && matches!(self.phase, Phase::Serves) => {
                self.head.last = number;
                for commit in &commits {
                    self.counted[line_of(*commit)] = *commit;
                }
                self.waiting.retain(|commit| !commits.contains(commit));
                commits
            }
            other => {
                self.under_way = other;
                Vec::new()
            }
        }
    }

    /// Chooses the newest copy, if enough keepers have promised. False: it is not to be told.
    pub fn choose(&mut self, conns: &mut [(usize, Conn)]) -> bool {
        let answers: Vec<Option<State>> = self.peers.iter().map(|peer| peer.conn.and(peer.state)).collect();
        let Ok((base, holders)) = quorum::newest(self.quorum, &answers) else { return false };
        let from = holders[0];
        // One number of its own: what the former writer wrote has another epoch.
        (self.head.base, self.head.begun) = (base, base.number + 1);
        (self.head.last, self.claimed) = (base.number + 1, base.number + 1);
        self.phase = Phase::Fetches(from);
        self.send(from, Request::Fetch, conns);
        true
    }

    /// Goes on with a keeper that has promised.
    pub fn bring(&mut self, keeper: usize, conns: &mut [(usize, Conn)]) {
        if self.under_way.is_some() || !matches!(self.phase, Phase::Brings | Phase::Serves) {
            return;
        }
        let head = self.head;
        let peer = &mut self.peers[keeper];
        let (Some(_), Some(state)) = (peer.conn, peer.state) else { return };
        match peer.link {
            Link::Asked => match plan(head, &state) {
                Plan::Counts => {
                    (peer.link, peer.confirmed) = (Link::Counts, state.position.number);
                }
                Plan::Adopt => {
                    peer.link = Link::Waits;
                    self.send(keeper, Request::Adopt(head.base, head.last), conns);
                }
                Plan::Copy => {
                    peer.link = Link::Joins(0);
                    self.send(keeper, Request::Begin, conns);
                }
            },
            Link::Joins(LINES) => {
                peer.link = Link::Waits;
                self.send(keeper, Request::Complete(head.last), conns);
            }
            Link::Joins(line) => {
                peer.link = Link::Joins(line + 1);
                let piece = bytes(&self.counted)[line * LINE..][..LINE].to_vec();
                self.send(keeper, Request::Piece((line * LINE) as u64, piece), conns);
            }
            Link::Waits | Link::Counts => {}
        }
    }

    /// A program writes: the commit is in the image, and in the next batch.
    pub fn write(&mut self, by: u64) -> Option<Commit> {
        if !matches!(self.phase, Phase::Serves) {
            return None;
        }
        let order = self.image.iter().map(|commit| commit.order).max().unwrap_or(0) + 1;
        let commit = Commit { order, by };
        self.image[line_of(commit)] = commit;
        self.waiting.push(commit);
        Some(commit)
    }

    /// A thread leads: all that is not in a batch that counts goes to everybody. `replaces`: in the place of one whose
    /// batch is under way.
    pub fn lead(&mut self, replaces: bool, scratch: &Scratch, conns: &mut [(usize, Conn)]) {
        if !matches!(self.phase, Phase::Serves) || self.waiting.is_empty() {
            return;
        }
        if self.under_way.is_some() && !replaces {
            return;
        }
        self.claimed += 1;
        let (number, previous) = (self.claimed, self.head.last);
        let mut lines: Vec<usize> = self.waiting.iter().map(|commit| line_of(*commit)).collect();
        lines.sort_unstable();
        lines.dedup();
        let bytes = scratch.batch(&self.image, &lines, (number, previous));
        self.under_way = Some((number, self.waiting.clone()));
        for keeper in 0..self.peers.len() {
            let (is_witness, link) =
                (self.peers[keeper].state.is_some_and(|state| state.is_witness()), self.peers[keeper].link);
            if matches!(link, Link::Joins(_) | Link::Counts) || link == Link::Waits {
                let bytes = if is_witness { Vec::new() } else { bytes.clone() };
                self.send(keeper, Request::Batch { number, previous, bytes }, conns);
            }
        }
    }

    fn send(&self, keeper: usize, request: Request, conns: &mut [(usize, Conn)]) {
        if let Some(at) = self.peers[keeper].conn {
            conns[at].1.requests.push_back(request);
        }
    }
}
