//! A keeper's connection is made anew while it is good: the former one's keys are worn. Nothing of that is a loss.

use seawall_wire::keeper::State;

use super::{Role, Writer};
use crate::turn::Promised;
use crate::wire::{self, Wire};

impl<W: Wire> Writer<W> {
    /// A keeper gave its promise on another connection as well, in place of the one that it has: that one is of no use any
    /// more. If it [has everything](Self::has_everything) it goes on as it was.
    pub fn meets_again(&mut self, keeper: usize, wire: W, state: State) {
        let link = &mut self.links[keeper];
        if let Some(former) = link.wire.take() {
            former.hang_up();
        }
        // It was not lost.
        link.was_met = false;
        self.meets(keeper, wire, state);
    }

    /// How many records of TLS are made of what this process sent on this keeper's connection, at most, and whether its keys
    /// [wear](Wire::wears) by that; `None`: there is none.
    pub fn records(&self, keeper: usize) -> Option<(u64, bool)> {
        let link = &self.links[keeper];
        link.wire.as_ref().map(|wire| (link.records, wire.wears()))
    }

    /// True for one whose word counts, and that has confirmed every batch that was sent to it.
    pub fn has_everything(&self, keeper: usize) -> bool {
        let link = &self.links[keeper];
        let sent = if link.is_witness() { link.asked.0 } else { self.sent };
        link.role == Role::Counts && link.confirmed >= sent && self.under_way.is_none()
    }

    /// A keeper's connection is given up.
    pub fn gives_up(&mut self, keeper: usize, why: &str) {
        if self.links[keeper].role.gets_batches() {
            self.links[keeper].lose(why.to_owned());
        }
    }
}

impl Writer {
    /// A keeper that [has everything](Self::has_everything) gave its promise on another connection as well.
    pub fn arrives_again(&mut self, keeper: usize, Promised { peer, state }: Promised) {
        let stream = peer.into_stream();
        match wire::prepare(&stream) {
            Ok(()) => self.meets_again(keeper, stream, state),
            // It listens to no other one by now.
            Err(error) => self.gives_up(keeper, &error.to_string()),
        }
    }
}
