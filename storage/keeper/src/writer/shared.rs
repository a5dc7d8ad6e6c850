//! Other processes of this host lead as well, and send and hear on the same connections: what the writer learns of that.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use super::Writer;
use super::link::{Link, Role};
use crate::wire::Wire;

impl<W: Wire> Writer<W> {
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

    /// True if other processes may send on the connections that there are, as far as these are concerned; `None`: there are
    /// none.
    pub fn are_shareable(&self) -> Option<bool> {
        let mut wires = self.links.iter().filter_map(|link| link.wire.as_ref()).peekable();
        wires.peek()?;
        Some(wires.all(|wire| wire.shared().is_some()))
    }
}
