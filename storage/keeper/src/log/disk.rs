//! What a log's own disk has of it: when its frames go to the file, and when that is durable.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use seawall_wire::keeper::{Position, Refusal};

use super::{Harden, Log, Refused, copy_of, meta_of};
use crate::spool::Step;

/// Bytes of frames that go to the file at once.
const MANY: usize = 1 << 20;

impl Log {
    /// To be called when the answer was sent: what can wait until then. Whoever forgets it, or is slower than the next one to
    /// answer, changes nothing of what the file has in the end. One call of the kernel for many frames: they go to the file
    /// when they have become so many, or [soon](Self::behind).
    pub fn answered(&mut self) {
        if self.unspooled.len() >= MANY {
            // What the disk says is in `trouble`.
            let _ = self.spool_all();
        }
    }

    /// The file, to be made durable while the log goes on; and up to which batch it will be then.
    pub fn behind(&mut self) -> Option<(File, Position)> {
        // What the disk says is in `trouble`.
        let _ = self.spool_all();
        let spool = self.spool.as_ref().filter(|_| self.trouble.is_none())?;
        let at = self.copy.position();
        (at.number != self.hardened).then(|| Some((spool.again().ok()?, at))).flatten()
    }

    /// That was done, or not.
    pub fn is_behind_no_more(&mut self, at: Position, done: io::Result<()>) {
        match done {
            Ok(()) if at.epoch == self.copy.position().epoch => self.hardened = self.hardened.max(at.number),
            Ok(()) => {}
            Err(e) => self.trouble = Some(e.to_string()),
        }
    }

    /// Where there is to be room for the next file, if it is about to be begun.
    pub fn wants_room(&self) -> Option<(PathBuf, u64)> {
        self.spool.as_ref().filter(|_| self.trouble.is_none())?.wants_room()
    }

    /// A step towards a shorter file.
    pub fn shorten(&mut self) -> Step {
        // What the disk says is in `trouble`.
        let _ = self.spool_all();
        let is_due = self.trouble.is_none() && !self.copy.is_joining();
        let Some(spool) = self.spool.as_mut().filter(|_| is_due) else { return Step::Nothing };
        spool.shorten(&self.copy).unwrap_or_else(|e| {
            self.trouble = Some(e.to_string());
            Step::Nothing
        })
    }

    /// The next file was synced, or not: it takes its turn.
    pub fn takes_turns(&mut self, synced: io::Result<()>) {
        let hardens = self.harden == Harden::Affirm;
        let Some(spool) = self.spool.as_mut().filter(|_| self.trouble.is_none()) else { return };
        if let Err(e) = synced.and_then(|()| spool.take_turns(hardens)) {
            self.trouble = Some(e.to_string());
        }
    }

    /// A clean end: its file has everything, and says so.
    ///
    /// # Errors
    /// [`Refused`]: the disk. Then the next start has not kept everything.
    pub fn close(&mut self) -> Result<(), Refused> {
        if self.spool.is_none() || self.trouble.is_some() || !self.copy.is_kept() {
            return Ok(());
        }
        self.spool_all()?;
        self.harden()?;
        let at = self.copy.position();
        self.meta.closed_at = Some((at.epoch.counter, at.epoch.writer, at.number));
        self.meta.write(&meta_of(&self.directory)).map_err(|e| Refused::disk(&self.directory, &e))
    }

    /// Gives the file the frames that it lacks.
    pub(super) fn spool_all(&mut self) -> Result<(), Refused> {
        if self.unspooled.is_empty() {
            return Ok(());
        }
        if let Some(trouble) = &self.trouble {
            // The file says nothing any more, and never will: it needs none of them.
            self.unspooled.clear();
            return Err(Refused::new(Refusal::Disk, trouble.clone()));
        }
        let Some(spool) = &mut self.spool else { return Ok(()) };
        let appended = spool.append(&mut self.unspooled);
        self.unspooled.clear();
        appended.map_err(|e| self.failed(&e))
    }

    /// Makes durable what the file has: all that the copy took.
    pub(super) fn harden(&mut self) -> Result<(), Refused> {
        let Some(spool) = &self.spool else { return Ok(()) };
        spool.harden().map_err(|e| self.failed(&e))?;
        self.hardened = self.copy.position().number;
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) -> Refused {
        self.trouble = Some(error.to_string());
        Refused::disk(&copy_of(&self.directory), error)
    }
}
