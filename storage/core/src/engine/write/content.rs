//! A new file that was written around the log enters it with what it has.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_stats::ticks;

use super::{Appended, Begun};
use crate::append::NewRecord;
use crate::file::{FileRef, Flag, Inside};
use crate::format::RecordKind;
use crate::{Engine, Owner, intake};

/// Content is logged in records of this length, bytes.
const PIECE: usize = 8192;

impl Engine {
    /// Takes a file into the log with all that it has. Everybody finds it, and waits for its lock, so what goes around the log
    /// meanwhile makes its next sync a real one. Without room for its content it stays outside, synced by `sync`.
    pub(in crate::engine) fn rejoin_with_content(
        &self,
        inside: &Inside<'_>,
        (who, file): (Owner, FileRef),
        fd: BorrowedFd<'_>,
        sync: impl FnOnce() -> Result<(), Errno>,
    ) {
        debug_assert!(inside.slot().state().has(Flag::UNBORN), "any other file has content on the disk");
        let begun = Begun { engine: self, who, file, fd, start: ticks(), inside: None };
        match begun.log_content(inside) {
            Ok(()) if self.may_rejoin(inside.slot()) => inside.track(self.has_room()),
            _ => inside.leave(self.pool(), Flag::LOG_FULL, sync),
        }
    }
}

impl Begun<'_> {
    /// Logs what the file has. NOSPC without room for it.
    fn log_content(&self, inside: &Inside<'_>) -> Result<(), Errno> {
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        loop {
            let len = rustix::io::retry_on_intr(|| rustix::io::pread(self.fd, &mut piece[..], offset))?;
            if len == 0 {
                return Ok(());
            }
            let data = core::iter::once(&piece[..len]);
            let intake = intake::measure(data.clone());
            let (slot, generation) = (self.file.slot, self.file.generation);
            let record = NewRecord { kind: RecordKind::Write, slot, generation, offset, intake };
            match self.append(inside, &record, data) {
                Appended::Persisted(..) => offset += len as u64,
                Appended::Full => return Err(Errno::NOSPC),
            }
        }
    }
}
