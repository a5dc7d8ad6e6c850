//! A host that goes on without its keepers, with its disk, and comes back to them.

use seawall_keeper::plan::Head;
use seawall_keeper::writer::Writer;
use seawall_wire::keeper::Epoch;

use super::{Host, Phase, Reached};
use crate::scratch::{Commit, LOG, STATE, newest, state};
use crate::volume::Volume;

/// How far it is with what it makes durable, before it goes on alone.
pub enum Secured {
    Nothing,
    OnDisk,
    Marked,
}

impl Host {
    /// True while its files are out of the log.
    pub fn is_alone(&self) -> bool {
        matches!(self.phase, Phase::Alone | Phase::Returns(_)) || self.is_returning
    }

    /// One step of going on without keepers, with the disk.
    pub fn goes_alone(&mut self, volume: &mut Volume) {
        self.phase = match &self.phase {
            Phase::Serves if self.is_open && !self.is_returning => Phase::Secures(Secured::Nothing),
            Phase::Secures(Secured::Nothing) => {
                volume.files = self.files;
                Phase::Secures(Secured::OnDisk)
            }
            Phase::Secures(Secured::OnDisk) => {
                volume.mark = Some(self.epoch.counter);
                Phase::Secures(Secured::Marked)
            }
            Phase::Secures(Secured::Marked) => {
                if let Some(writer) = &mut self.writer {
                    writer.stops();
                }
                self.under_way.clear();
                Phase::Alone
            }
            _ => return,
        };
    }

    /// A sync of somebody while the files are out of the log. What is durable by that.
    pub fn syncs(&mut self, volume: &mut Volume) -> Vec<Commit> {
        volume.files = self.files;
        std::mem::take(&mut self.waiting)
    }

    /// It begins a turn of its own with what it has: nothing is live in that. It found these promises.
    pub fn returns(&mut self, found: &[(Epoch, Epoch)]) {
        let is_another = |(promised, _): &&(Epoch, Epoch)| promised.writer != self.epoch.writer;
        let newest_promise = found.iter().map(|(promised, _)| promised.counter).max().unwrap_or(0);
        if found.iter().filter(is_another).any(|(promised, _)| *promised > self.epoch) {
            self.phase = Phase::Over;
            return;
        }
        let retired = newest(&self.files).max(self.image[STATE].order);
        self.image[STATE] = state(retired, self.epoch.counter + 1);
        self.counted = self.image;
        let copies = found.iter().map(|(_, position)| *position).max().unwrap_or_default();
        self.epoch = Epoch { counter: newest_promise.max(self.epoch.counter) + 1, writer: self.epoch.writer };
        (self.phase, self.writer, self.is_returning) = (Phase::Returns(copies), None, true);
        self.reached.fill(Reached::default());
    }

    /// Enough have promised the turn that it began: they get its log.
    pub fn begins(&mut self) {
        let promised = self.reached.iter().filter(|reached| reached.state.is_some()).count();
        if matches!(self.phase, Phase::Returns(_)) && promised >= self.roster.quorum().begins() {
            self.claimed += 1;
            let head = Head::anew(self.epoch, self.claimed);
            self.writer = Some(Writer::new(LOG, head, self.roster.clone()));
            self.phase = Phase::Brings;
            (0..self.reached.len()).for_each(|keeper| self.meet(keeper));
        }
    }
}
