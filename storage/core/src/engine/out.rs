//! Out of the log: for any other call that changes a file (fallocate, sendfile, splice, reflinks), removes its last
//! name, or gives it to another owner.
//!
//! ```text
//! let out = engine.take_out(who, file, sync);     its records are retired, and it is the caller's alone
//! let done = …;                                   the change
//! out.finish(sync);                               or out.unlinked(), out.given_away()
//! ```
//!
//! `sync` is a real fdatasync of the file, by a caller that has a descriptor of it. It is called if it is needed.

use rustix::io::Errno;

use super::attach::Engine;
use super::enter::Entering;
use crate::Owner;
use crate::file::{FileRef, Flag, Inside, KeptOut};

/// A file that is out of the log, for a change that no record can express.
#[must_use = "nobody else changes the file before this is finished"]
pub struct Out<'e> {
    engine: &'e Engine,
    file: FileRef,
    /// `None`: the kernel alone has it, or this thread has entered it already, in a signal handler.
    inside: Option<Inside<'e>>,
}

impl Engine {
    /// Takes the file out of the log.
    pub fn take_out(&self, who: Owner, file: FileRef, sync: impl FnOnce() -> Result<(), Errno>) -> Out<'_> {
        let out = self.removal(who, file);
        out.leave(sync);
        out
    }

    /// A name of the file is about to be removed, its last one. With [`Out::leave`] the file leaves the log first,
    /// unless the log will have a record that the file is gone.
    pub fn removal(&self, who: Owner, file: FileRef) -> Out<'_> {
        let inside = match self.enter(who, file) {
            Entering::Alone(inside) => Some(inside),
            Entering::Nested(slot) => {
                slot.disturb();
                None
            }
            Entering::Gone => None,
        };
        Out { engine: self, file, inside }
    }

    /// Has `op` remove the file's last name. All its records are retired first, unless the log has a record that the
    /// file is gone: before it removes the file, `op` calls the function it gets with whether there is one. `sync` is
    /// as everywhere here.
    ///
    /// # Errors
    /// The error of `op`.
    pub fn removing(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce(&dyn Fn(bool)) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let out = self.removal(who, file);
        let done = op(&|is_in_log| {
            if !is_in_log {
                out.leave(&sync);
            }
        });
        match done {
            Ok(()) => out.unlinked(),
            Err(_) => out.finish(sync),
        }
        done
    }
}

impl Out<'_> {
    /// Takes it out of the log.
    pub fn leave(&self, sync: impl FnOnce() -> Result<(), Errno>) {
        if let Some(inside) = &self.inside {
            inside.leave(self.engine.pool(), Flag::NONE, sync);
        }
    }

    /// The change is over, whatever came of it. A file whose every write must be logged returns to the log.
    pub fn finish(self, sync: impl FnOnce() -> Result<(), Errno>) {
        if let Some(inside) = &self.inside {
            inside.was_changed();
            self.engine.rejoin(inside, sync);
        }
    }

    /// Its last name is gone: the daemon may forget the slot. If the file is still in the log, its records no longer
    /// count.
    ///
    /// This is marked before the lock is free: otherwise another process's fsync could take the file, now without a
    /// name, back into the log in between.
    pub fn unlinked(self) {
        let engine = self.engine;
        self.leave(|| Ok(()));
        self.stays(KeptOut::Unlinked);
        engine.wake_daemon();
    }

    /// It has another owner. Recovery writes no file that belongs to anybody but its directory's registered owner.
    pub fn given_away(self) {
        self.stays(KeptOut::GivenAway);
    }

    fn stays(self, why: KeptOut) {
        self.engine.keep_out(self.file, why);
        if let Some(inside) = &self.inside {
            inside.was_changed();
        }
    }
}
