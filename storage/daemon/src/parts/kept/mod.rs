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
mod renewal;
mod spells;
mod status;

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use seawall_core::Errno;
use seawall_core::journal::{Copies, Lent, Sending, Standing};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::holder::Holder;
use seawall_keeper::keeper::uuid_text;
use seawall_keeper::meta::{Member, Roster};
use seawall_keeper::peer::PeerError;
use seawall_keeper::transport::Transport;
use seawall_keeper::turn::{Promised, connect, promise};
use seawall_keeper::writer::{Role, Source, WriteError, Writer};
use seawall_media::locks::{lock, wait_for};
use seawall_wire::desk::{Desk, alone, link_flags};
use seawall_wire::keeper::Epoch;

pub(crate) use course::{Course, Due};
pub use status::{KeeperStatus, KeptStatus};

use super::survives;
use renewal::Renewal;
use spells::Spells;

/// How long commits wait for keepers to come back before they fail, and everything after them.
const PROTECTED: Duration = Duration::from_secs(30);
/// What [`Link::sending`](seawall_wire::desk::Link::sending) says while this process sends: no lead's word.
const DAEMON: u64 = u64::MAX;
/// The longest wait for answers between two looks at what else there is to do.
const LOOK: Duration = Duration::from_millis(20);
/// One keeper is asked every so many tries whether another writer has the log.
const LOOK_AROUND: usize = 8;
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

struct State {
    writer: Writer,
    /// Keepers that were reached, or not, and that the writer does not know of yet.
    arrivals: Vec<(usize, Result<Promised, PeerError>)>,
    /// Why nothing is written any more.
    over: Option<String>,
    /// Who has the log, if that is another writer, and in which turn.
    taken_by: Option<(Option<Holder>, u64)>,
    /// What the daemon's log says of that already.
    told: Option<String>,
    /// Too few keepers counted.
    short: Spells,
    /// This host was alone.
    alone: Spells,
    course: Course,
    /// Somebody waits for a batch that counts.
    is_waited_for: bool,
    /// Changes with every connection: [`Desk::given`].
    given: u32,
    renewal: Renewal,
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
            // Nothing of any number: who took this for the newest ones would go on with those that it has.
            return lent;
        }
        lent.given = state.given;
        for (keeper, connection) in state.writer.shared().enumerate() {
            // Who gets none has this process send.
            if let Some(connection) = connection.and_then(|fd| fd.try_clone_to_owned().ok()) {
                lent.keepers |= 1 << keeper;
                lent.connections.push(connection);
            }
        }
        lent
    }
}

impl State {
    /// The writer hears of everything that happened since it was last used.
    fn catch_up(&mut self, standing: &Standing<'_>) {
        let desk = standing.desk();
        self.writer.follow(standing.last);
        for keeper in 0..self.writer.roster().members.len() {
            let link = desk.link(keeper);
            if link.counts() {
                let (confirmed, hardened) = (link.confirmed().load(SeqCst), link.hardened().load(SeqCst));
                self.writer.has_confirmed(keeper, confirmed, hardened);
            }
            if link.flags().load(SeqCst) != 0 && link.is_broken() {
                self.writer.is_lost(keeper);
            }
        }
        self.settle(desk);
    }

    /// The log stands: connections with worn keys are made anew.
    fn renew(&mut self, desk: Desk<'_>) {
        for keeper in self.renewal.renew(&mut self.writer, desk) {
            self.is_made(desk, keeper);
        }
    }

    /// The writer hears of everybody who arrived.
    fn settle(&mut self, desk: Desk<'_>) {
        for (keeper, reached) in std::mem::take(&mut self.arrivals) {
            let is_new = reached.is_ok();
            self.writer.arrives(keeper, reached);
            if is_new {
                self.is_made(desk, keeper);
            }
        }
        self.is_short();
    }

    /// There is another connection to this keeper. Whoever sends on the one before does so in vain.
    fn is_made(&mut self, desk: Desk<'_>, keeper: usize) {
        self.given = self.given.wrapping_add(1).max(1);
        let link = desk.link(keeper);
        link.flags().store(0, SeqCst);
        link.sending().store(0, SeqCst);
        link.confirmed().store(0, SeqCst);
        link.hardened().store(0, SeqCst);
        link.records().store(0, SeqCst);
        link.made().store(self.given, SeqCst);
    }

    fn may_be_shared(&self) -> bool {
        self.over.is_none() && !self.course.is_alone() && self.writer.may_be_shared()
    }

    /// Says on the desk who counts, and whether any process may send.
    fn publish(&self, desk: Desk<'_>) {
        for (keeper, known) in self.writer.known().enumerate() {
            let link = desk.link(keeper);
            let data = if known.has_data() { link_flags::DATA } else { 0 };
            link.confirmed().fetch_max(known.confirmed, SeqCst);
            link.hardened().fetch_max(known.hardened, SeqCst);
            let what = match known.role {
                Role::Counts => link_flags::COUNTS | data,
                Role::Joins | Role::Waits => link_flags::JOINS | data,
                Role::Down | Role::Fenced => 0,
            };
            link.flags().store(what, SeqCst);
        }
        desk.given().store(self.given, SeqCst);
        let acks = if self.may_be_shared() { self.writer.quorum().acks } else { 0 };
        desk.acks().store(acks as u32, SeqCst);
    }

    /// True while too few count. For how long is noted.
    fn is_short(&mut self) -> bool {
        let is_short = self.writer.counting() < self.writer.quorum().acks;
        self.short.note(is_short);
        is_short
    }

    /// What became known of the keepers is counted in the memory that all share who may lead.
    fn count(&mut self, desk: Desk<'_>) {
        for (keeper, news) in self.writer.news().enumerate() {
            let tally = desk.tally(keeper);
            news.answers.iter().for_each(|took| tally.answered(took.as_nanos() as u64));
            tally.sent(news.sent);
            tally.reconnected(news.reconnects);
        }
    }

    /// This process is about to send. Whoever was replaced in the middle of a frame, and may go on with it, has that connection
    /// to itself: it is of no use any more.
    fn claim(&mut self, desk: Desk<'_>) {
        for keeper in 0..self.writer.roster().members.len() {
            let link = desk.link(keeper);
            let is_free = link.sending().compare_exchange(0, DAEMON, SeqCst, SeqCst).is_ok();
            if !is_free && link.flags().load(SeqCst) != 0 {
                self.writer.is_lost(keeper);
            }
        }
    }

    /// Nothing is written any more.
    fn end(&mut self, error: &WriteError) {
        self.over.get_or_insert_with(|| error.to_string());
    }

    fn over(&self) -> Option<String> {
        let over = self.over.as_ref()?;
        let Some((holder, turn)) = &self.taken_by else { return Some(over.clone()) };
        let who = holder.as_ref().map_or_else(|| "another writer".to_owned(), ToString::to_string);
        Some(format!("{who} took the log over, in turn {turn}"))
    }

    /// Somebody has a newer promise.
    fn is_taken_by(&mut self, holder: Option<Holder>, epoch: Epoch) {
        if epoch > self.writer.head().epoch
            && self.taken_by.as_ref().is_none_or(|(_, turn)| *turn < epoch.counter)
        {
            self.taken_by = Some((holder, epoch.counter));
        }
    }
}

/// Others may send again.
fn release(desk: Desk<'_>) {
    for link in desk.links() {
        // Else it is the word of somebody who stands still.
        let _ = link.sending().compare_exchange(DAEMON, 0, SeqCst, SeqCst);
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
        let mut state = State {
            writer,
            arrivals: Vec::new(),
            over: None,
            taken_by: None,
            told: None,
            short: Spells::default(),
            alone: Spells::default(),
            course: Course::Together,
            is_waited_for: false,
            given: desk.given().load(SeqCst),
            renewal: Renewal::default(),
        };
        state.goes(course);
        (0..state.writer.roster().members.len()).for_each(|keeper| state.is_made(desk, keeper));
        state.publish(desk);
        let state = Mutex::new(state);
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

    /// What each keeper is, and what is wrong with it.
    pub fn roles(&self) -> Vec<(String, Role, String)> {
        let state = lock(&self.state);
        let members = state.writer.roster().members.iter();
        members
            .zip(state.writer.known())
            .map(|(m, link)| (m.address.clone(), link.role, link.trouble.to_owned()))
            .collect()
    }

    /// What is known of the keepers, on the log's desk as well.
    pub fn status(&self, desk: Desk<'_>) -> KeptStatus {
        let state = lock(&self.state);
        let (head, writer, mut links) = (state.writer.head(), &state.writer, state.writer.report());
        let last = head.last.max(desk.newest().0.number());
        for (keeper, known) in links.iter_mut().enumerate().filter(|(_, known)| known.role == Role::Counts) {
            let link = desk.link(keeper);
            known.confirmed = known.confirmed.max(link.confirmed().load(SeqCst));
            known.hardened = known.hardened.max(link.hardened().load(SeqCst));
            if link.counts() && !link.is_usable() {
                known.role = Role::Down;
            }
        }
        let survives = survives::now(writer.roster(), &links);
        let members = writer.roster().members.iter().enumerate();
        let keepers = links.iter().zip(members);
        let of = |(link, (i, member)): (_, (usize, &Member))| {
            KeeperStatus::of(link, member, last, desk.tally(i), state.renewal.times(i))
        };
        KeptStatus {
            log: uuid_text(self.log),
            acks: writer.quorum().acks,
            counting: writer.counting(),
            epoch: head.epoch.counter,
            last,
            transport: self.transport.name().into(),
            encrypts: self.encrypts(&state),
            certificate_until: self.transport.certificate_until(),
            survives,
            over: state.over(),
            mode: writer.roster().mode,
            alone_s: state.alone.now().map(|alone| alone.as_secs_f64()),
            alone_total_s: state.alone.total().as_secs_f64(),
            alone_times: state.alone.times,
            taken_by: state.taken_by.as_ref().and_then(|(holder, _)| holder.clone()),
            short_s: state.short.total().as_secs_f64(),
            short_times: state.short.times,
            keepers: keepers.map(of).collect(),
        }
    }

    /// Who encrypts, if that is done and a keeper is reached.
    fn encrypts(&self, state: &State) -> Option<String> {
        let is_by_kernel = state.writer.are_shareable().filter(|_| self.transport.is_encrypted())?;
        Some(if is_by_kernel { "kernel" } else { "daemon" }.into())
    }

    /// Connects to keepers that are not reached, again and again, until the log is used no more.
    fn reach_missing(kept: &Weak<Self>) {
        let mut round = 0;
        while let Some(kept) = kept.upgrade() {
            let (missing, roster, head) = {
                let state = lock(&kept.state);
                // Of a turn that is over for this host nobody is to have a copy.
                let missing = if state.course.is_in_turn() { state.writer.missing() } else { Vec::new() };
                (missing, state.writer.roster().clone(), state.writer.head())
            };
            for keeper in missing {
                let reached = connect(kept.log, &roster.members[keeper], &kept.transport);
                let reached = reached.and_then(|(peer, _)| promise(peer, head.epoch, &roster));
                kept.has_come(keeper, reached);
            }
            kept.connect_beside(&roster);
            // A turn that begins anew looks itself, and finds what it was promised before.
            if lock(&kept.state).course.is_in_turn() {
                kept.look_for_another(&roster, head.epoch, round);
            }
            round += 1;
            drop(kept);
            std::thread::sleep(AGAIN);
        }
    }

    /// Connects to those keepers whose connection is to be made anew.
    fn connect_beside(&self, roster: &Roster) {
        let wanted = lock(&self.state).renewal.wanted();
        for keeper in wanted {
            // Without one it goes on, and the next round tries again.
            if let Ok((peer, _)) = connect(self.log, &roster.members[keeper], &self.transport) {
                lock(&self.state).renewal.has_come(keeper, peer);
            }
        }
    }

    /// A keeper was reached, or not: for whoever leads next, or waits now.
    fn has_come(&self, keeper: usize, reached: Result<Promised, PeerError>) {
        let mut state = lock(&self.state);
        // Nobody may have come for the one before.
        state.arrivals.retain(|(other, _)| *other != keeper);
        state.arrivals.push((keeper, reached));
        drop(state);
        self.arrived.notify_all();
    }

    /// Whether another writer has the log by now: asks one keeper now and then, each in its turn, so that a host that does
    /// not commit learns of it too; and all of them as soon as one said so.
    fn look_for_another(&self, roster: &Roster, epoch: Epoch, round: usize) {
        let (fenced, known) = {
            let state = lock(&self.state);
            let fenced = state.writer.known().any(|link| link.role == Role::Fenced);
            (fenced, state.taken_by.is_some())
        };
        let keepers = 0..roster.members.len();
        let asked: Vec<usize> = match (fenced, known) {
            (_, true) if lock(&self.state).over.is_some() => return,
            (true, _) | (_, true) => keepers.collect(),
            _ if round % LOOK_AROUND == LOOK_AROUND - 1 => vec![round / LOOK_AROUND % keepers.len()],
            _ => return,
        };
        for keeper in asked {
            let Ok((peer, found)) = connect(self.log, &roster.members[keeper], &self.transport) else {
                continue;
            };
            if found.promised <= epoch {
                continue;
            }
            lock(&self.state).is_taken_by(peer.holder().cloned(), found.promised);
            // It refuses, and says why.
            if let Err(error) = promise(peer, epoch, roster) {
                self.has_come(keeper, Err(error));
            }
        }
    }
}
