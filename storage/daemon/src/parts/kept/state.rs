//! What the writer and the desk know of each keeper, and how each of them learns of what the other knows.

use std::sync::atomic::Ordering::SeqCst;

use seawall_core::journal::Standing;
use seawall_keeper::holder::Holder;
use seawall_keeper::peer::PeerError;
use seawall_keeper::turn::Promised;
use seawall_keeper::writer::{Role, WriteError, Writer};
use seawall_wire::desk::{Desk, link_flags};
use seawall_wire::keeper::Epoch;

use super::course::Course;
use super::renewal::Renewal;
use super::spells::Spells;

/// What [`Link::sending`](seawall_wire::desk::Link::sending) says while this process sends: no lead's word.
const DAEMON: u64 = u64::MAX;

/// The keepers of a log, under one lock.
pub(super) struct State {
    pub(super) writer: Writer,
    /// Keepers that were reached, or not, and that the writer does not know of yet.
    pub(super) arrivals: Vec<(usize, Result<Promised, PeerError>)>,
    /// Why nothing is written any more.
    pub(super) over: Option<String>,
    /// Who has the log, if that is another writer, and in which turn.
    pub(super) taken_by: Option<(Option<Holder>, u64)>,
    /// What the daemon's log says of that already.
    pub(super) told: Option<String>,
    /// Too few keepers counted.
    pub(super) short: Spells,
    /// This host was alone.
    pub(super) alone: Spells,
    pub(super) course: Course,
    /// Somebody waits for a batch that counts.
    pub(super) is_waited_for: bool,
    /// Changes with every connection: [`Desk::given`].
    pub(super) given: u32,
    pub(super) renewal: Renewal,
}

impl State {
    /// The state of a log whose daemon begins. Every connection counts as new.
    pub(super) fn of(writer: Writer, course: Course, desk: Desk<'_>) -> Self {
        let mut state = Self {
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
        state
    }

    /// The writer hears of everything that happened since it was last used.
    pub(super) fn catch_up(&mut self, standing: &Standing<'_>) {
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
    pub(super) fn renew(&mut self, desk: Desk<'_>) {
        for keeper in self.renewal.renew(&mut self.writer, desk) {
            self.is_made(desk, keeper);
        }
    }

    /// The writer hears of everybody who arrived.
    pub(super) fn settle(&mut self, desk: Desk<'_>) {
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
    pub(super) fn is_made(&mut self, desk: Desk<'_>, keeper: usize) {
        self.given = self.given.wrapping_add(1).max(1);
        let link = desk.link(keeper);
        link.flags().store(0, SeqCst);
        link.sending().store(0, SeqCst);
        link.confirmed().store(0, SeqCst);
        link.hardened().store(0, SeqCst);
        link.records().store(0, SeqCst);
        link.made().store(self.given, SeqCst);
    }

    pub(super) fn may_be_shared(&self) -> bool {
        self.over.is_none() && !self.course.is_alone() && self.writer.may_be_shared()
    }

    /// Says on the desk who counts, and whether any process may send.
    pub(super) fn publish(&self, desk: Desk<'_>) {
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
    pub(super) fn is_short(&mut self) -> bool {
        let is_short = self.writer.counting() < self.writer.quorum().acks;
        self.short.note(is_short);
        is_short
    }

    /// What became known of the keepers is counted in the memory that all share who may lead.
    pub(super) fn count(&mut self, desk: Desk<'_>) {
        for (keeper, news) in self.writer.news().enumerate() {
            let tally = desk.tally(keeper);
            news.answers.iter().for_each(|took| tally.answered(took.as_nanos() as u64));
            tally.sent(news.sent);
            tally.reconnected(news.reconnects);
        }
    }

    /// This process is about to send. Whoever was replaced in the middle of a frame, and may go on with it, has that connection
    /// to itself: it is of no use any more.
    pub(super) fn claim(&mut self, desk: Desk<'_>) {
        for keeper in 0..self.writer.roster().members.len() {
            let link = desk.link(keeper);
            let is_free = link.sending().compare_exchange(0, DAEMON, SeqCst, SeqCst).is_ok();
            if !is_free && link.flags().load(SeqCst) != 0 {
                self.writer.is_lost(keeper);
            }
        }
    }

    /// Nothing is written any more.
    pub(super) fn end(&mut self, error: &WriteError) {
        self.over.get_or_insert_with(|| error.to_string());
    }

    pub(super) fn over(&self) -> Option<String> {
        let over = self.over.as_ref()?;
        let Some((holder, turn)) = &self.taken_by else { return Some(over.clone()) };
        let who = holder.as_ref().map_or_else(|| "another writer".to_owned(), ToString::to_string);
        Some(format!("{who} took the log over, in turn {turn}"))
    }

    /// Somebody has a newer promise.
    pub(super) fn is_taken_by(&mut self, holder: Option<Holder>, epoch: Epoch) {
        if epoch > self.writer.head().epoch
            && self.taken_by.as_ref().is_none_or(|(_, turn)| *turn < epoch.counter)
        {
            self.taken_by = Some((holder, epoch.counter));
        }
    }
}

/// Others may send again.
pub(super) fn release(desk: Desk<'_>) {
    for link in desk.links() {
        // Else it is the word of somebody who is stopped.
        let _ = link.sending().compare_exchange(DAEMON, 0, SeqCst, SeqCst);
    }
}
