//! The keepers of a log on other hosts: this host's end of it.
//!
//! Whoever leads sends a batch and waits for enough answers. Keepers that are lost are connected to again by a thread of
//! their own; one whose copy is not up to date gets an image, a stretch at a time, while the log goes on.

use std::io;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use seawall_core::Errno;
use seawall_core::journal::{Copies, Sending, Standing};
use seawall_keeper::keeper::uuid_text;
use seawall_keeper::meta::Member;
use seawall_keeper::peer::PeerError;
use seawall_keeper::turn::{Promised, connect, promise};
use seawall_keeper::writer::{LinkReport, Role, Source, WriteError, Writer};
use seawall_media::locks::{lock, wait_for};
use serde::{Deserialize, Serialize};

use super::survives;

/// How long commits wait for keepers to come back before they fail, and everything after them.
const PROTECTED: Duration = Duration::from_secs(30);
/// The longest wait for answers between two looks at what else there is to do.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two tries to reach a keeper.
pub(crate) const AGAIN: Duration = Duration::from_millis(250);

/// The keepers of a log.
pub(crate) struct Kept {
    log: [u8; 16],
    state: Mutex<State>,
    /// Rung when somebody arrived.
    arrived: Condvar,
}

struct State {
    writer: Writer,
    /// Keepers that were reached, or not, and that the writer does not know of yet.
    arrivals: Vec<(usize, Result<Promised, PeerError>)>,
    /// Why nothing is written any more.
    over: Option<String>,
}

/// What is known of the keepers, for `status`.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptStatus {
    /// The log's UUID.
    pub log: String,
    /// How many confirm a commit before it is acknowledged.
    pub acks: usize,
    /// The writer's turn.
    pub epoch: u64,
    /// The newest batch that counts.
    pub last: u64,
    /// What that survives, in words.
    pub survives: String,
    /// Why nothing is written any more.
    pub over: Option<String>,
    /// Each keeper.
    pub keepers: Vec<KeeperStatus>,
}

/// One keeper.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperStatus {
    /// Where it is.
    pub address: String,
    /// `counts`, `joins`, `waits`, `down`, `fenced`.
    pub role: String,
    /// It has no data.
    pub witness: bool,
    /// It confirms only what its disk has.
    pub affirms: bool,
    /// Batches that it lacks.
    pub behind: u64,
    /// Up to which batch its disk has them.
    pub hardened: u64,
    /// Batches that it confirmed, and how long it took: all, and the longest; microseconds.
    pub answers: u64,
    /// That.
    pub mean_us: f64,
    /// That.
    pub longest_us: f64,
    /// What was wrong last.
    pub trouble: String,
}

impl Copies for Kept {
    fn write(&self, batch: &Sending<'_>) -> Result<(), Errno> {
        let mut bytes = Vec::new();
        batch.copy_to(&mut bytes);
        let mut state = lock(&self.state);
        if state.over.is_some() {
            return Err(Errno::IO);
        }
        state.settle();
        state.writer.send(batch.number, batch.standing.last, bytes);
        let begin = Instant::now();
        loop {
            let limit = if state.writer.counting() == 0 { Duration::ZERO } else { LOOK };
            if state.writer.hear(limit) {
                return Ok(());
            }
            state.settle();
            state.writer.give_up_silent();
            let too_long = || (begin.elapsed() > PROTECTED).then(|| state.writer.too_few());
            if let Some(error) = state.writer.fenced().or_else(too_long) {
                return state.end(&error);
            }
            if state.writer.counting() < state.writer.quorum().acks {
                // Nothing can go on without them, so they get all of it at once.
                state.writer.bring(&Image(&batch.standing), usize::MAX);
                state = wait_for(&self.arrived, state, LOOK).0;
            }
        }
    }
}

impl State {
    /// The writer hears of everybody who arrived.
    fn settle(&mut self) {
        for (keeper, reached) in std::mem::take(&mut self.arrivals) {
            self.writer.arrives(keeper, reached);
        }
    }

    fn end(&mut self, error: &WriteError) -> Result<(), Errno> {
        self.over = Some(error.to_string());
        Err(Errno::IO)
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
    /// The keepers of the log with this UUID. A thread connects to those that are lost, as long as this is used.
    pub fn start(log: [u8; 16], writer: Writer) -> io::Result<Arc<Self>> {
        let state = Mutex::new(State { writer, arrivals: Vec::new(), over: None });
        let kept = Arc::new(Self { log, state, arrived: Condvar::new() });
        let weak = Arc::downgrade(&kept);
        std::thread::Builder::new().name("keepers".into()).spawn(move || Self::reach_missing(&weak))?;
        Ok(kept)
    }

    /// Hears what keepers say while nobody commits. True if one of them is to be sent an image.
    pub fn look(&self) -> bool {
        let mut state = lock(&self.state);
        state.settle();
        state.writer.hear(Duration::ZERO);
        state.writer.is_joining()
    }

    /// Sends keepers that are to have an image some more of it, at most so many bytes each.
    pub fn bring(&self, standing: &Standing<'_>, most: usize) {
        lock(&self.state).writer.bring(&Image(standing), most);
    }

    /// What each keeper is, and what is wrong with it.
    pub fn roles(&self) -> Vec<(String, Role, String)> {
        let state = lock(&self.state);
        let members = state.writer.roster().members.iter();
        members
            .zip(state.writer.report())
            .map(|(m, link)| (m.address.clone(), link.role, link.trouble))
            .collect()
    }

    /// What is known of the keepers.
    pub fn status(&self) -> KeptStatus {
        let state = lock(&self.state);
        let (head, writer, links) = (state.writer.head(), &state.writer, state.writer.report());
        let of = |(link, member): (LinkReport, &Member)| {
            let mean = link.answers.total.as_secs_f64() * 1e6 / link.answers.count.max(1) as f64;
            KeeperStatus {
                address: member.address.clone(),
                role: link.role.name().into(),
                witness: member.witness,
                affirms: link.state.is_some_and(|state| state.affirms()),
                behind: head.last.saturating_sub(link.confirmed),
                hardened: link.hardened,
                answers: link.answers.count,
                mean_us: mean,
                longest_us: link.answers.longest.as_secs_f64() * 1e6,
                trouble: link.trouble,
            }
        };
        KeptStatus {
            log: uuid_text(self.log),
            acks: writer.quorum().acks,
            epoch: head.epoch.counter,
            last: head.last,
            survives: survives::text(writer.roster(), &links),
            over: state.over.clone(),
            keepers: links.into_iter().zip(&writer.roster().members).map(of).collect(),
        }
    }

    /// Connects to keepers that are not reached, again and again, until the log is used no more.
    fn reach_missing(kept: &Weak<Self>) {
        while let Some(kept) = kept.upgrade() {
            let (missing, roster, head) = {
                let state = lock(&kept.state);
                (state.writer.missing(), state.writer.roster().clone(), state.writer.head())
            };
            for keeper in missing {
                let reached = connect(kept.log, &roster.members[keeper]);
                let reached = reached.and_then(|(peer, _)| promise(peer, head.epoch, &roster));
                lock(&kept.state).arrivals.push((keeper, reached));
                kept.arrived.notify_all();
            }
            drop(kept);
            std::thread::sleep(AGAIN);
        }
    }
}
