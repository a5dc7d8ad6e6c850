//! Moves and links between two directories: a record in each of them, which vouches for the other one.

use super::{Place, Turn};
use crate::format::{Across, Elsewhere, Handle, NameChange, Replaced};

impl<P: Place> Turn<'_, P> {
    /// A file gets a name in the directory `to`, which is entered too, and loses its name in this one: a record in
    /// each, both durable. False: neither directory is in the log any more.
    pub fn log_move(&self, to: &Self, names: (&[u8], &[u8]), file: Handle, over: Option<Replaced>) -> bool {
        let moved =
            |across| NameChange::Moved { name: names.0, to: names.1, file, over, exchanged: false, across };
        // Once both have their records they do not leave: the watermark of the first one to leave would vouch for a
        // move that nobody has made.
        let is_logged = self.is_in_log()
            && to.is_in_log()
            && self.may_wait()
            && self.log_both(to, moved).is_some()
            && self.is_hardened();
        if !is_logged {
            // What one record says of the other directory does not hold.
            self.leave();
            to.leave();
        }
        is_logged
    }

    /// The kernel refused a move that was logged like this. Both directories leave the log, with records that take the
    /// move back: the power may fail between their syncs, and whichever is synced first vouches for the move.
    pub fn take_back(&self, to: &Self, names: (&[u8], &[u8]), file: Handle, over: Option<Replaced>) {
        let exchanged = over.is_some();
        let back = |across| NameChange::Moved { name: names.1, to: names.0, file, over, exchanged, across };
        if to.log_both(self, back).is_some() {
            to.is_hardened();
        }
        // What was captured of the file is in the records of `to`: all of it comes to the disk with that directory, and
        // from then on the disk shows that nobody moved it.
        to.leave_with(true);
        self.leave();
    }

    /// A file of this directory has got one more name, in `to`, which is entered too: a record in each. False: neither
    /// directory is in the log any more.
    pub fn log_link(&self, to: &Self, names: (&[u8], &[u8]), file: Handle) -> bool {
        let linked = |across| NameChange::Linked { name: names.0, to: names.1, file, across };
        let lsn = if self.is_in_log() && to.is_in_log() { self.log_both(to, linked) } else { None };
        if let Some((inside, lsn)) = self.inside.as_ref().zip(lsn) {
            inside.links_out(lsn);
        }
        // One that was taken over meanwhile may lack the link, and its watermark would vouch for it.
        let is_logged = lsn.is_some() && self.is_in_log() && to.is_in_log();
        if !is_logged {
            self.leave();
            to.leave();
        }
        is_logged
    }

    /// What was captured of a file that has no name here is in this directory's records: it comes to the disk now.
    pub fn sync_captured(&self) {
        self.leave_with(true);
    }

    /// Makes the two records of a change from this directory to the other one. Returns the LSN of this directory's.
    fn log_both<'n>(&self, to: &Self, change: impl Fn(Across) -> NameChange<'n>) -> Option<u64> {
        let first = change(Across::From { other: self.elsewhere(), first: 0 });
        // From here on both have it to retire. Else whoever dies between the two records leaves one that goes on saying what
        // nobody did, whatever becomes of this directory.
        let both = |lsn| self.inside.iter().for_each(|inside| inside.logs(lsn));
        let first = to.append_with(&first, both)?;
        self.append(&change(Across::To { other: to.elsewhere(), first }))
    }

    /// How a record of another directory refers to this one.
    pub fn elsewhere(&self) -> Elsewhere {
        Elsewhere { slot: self.directory.slot, generation: self.directory.generation }
    }
}
