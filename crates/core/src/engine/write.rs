//! Writes and truncates: lock, append, persist, publish.

use rustix::fd::BorrowedFd;
use rustix::fs::SeekFrom;
use seawall_media::fence;
use seawall_stats::{Event, ticks};

use super::space::Wait;
use super::{At, Engine, Entering};
use crate::append::{Entry, Operation};
use crate::certain::fdatasync;
use crate::file::{FileRef, Flag, Inside, Slot};
use crate::format::RecordKind;
use crate::intake::{self, Intake};
use crate::publish::Publish;
use crate::{Errno, Owner, persist};

impl Engine {
    /// A write. `data` are the caller's slices in order; `publish` performs the caller's own system call, or what
    /// does the same, and returns what that returned. It is called once at most, with the file's lock held.
    ///
    /// When this returns `Ok(n)` and the file is still tracked, the `n` bytes are durable.
    ///
    /// # Errors
    /// What `publish` said. A full log is not an error: the write goes around it, or waits (`space`). EIO, without a
    /// call of `publish`, for a file whose every write is to be logged and that failed a sync outside the log.
    #[inline]
    pub fn write<'d>(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        at: At,
        data: impl Iterator<Item = &'d [u8]> + Clone,
        publish: impl Publish<usize>,
    ) -> Result<usize, Errno> {
        self.change(
            who,
            file,
            fd,
            publish,
            |n, length| n as u64 == length,
            || {
                let data = data.clone();
                let intake = intake::measure(data.clone());
                let offset = place(fd, at)?;
                let in_range = offset.checked_add(intake.length).is_some_and(|end| end <= i64::MAX as u64);
                let logged = in_range && intake.length > 0;
                Ok(logged.then_some((RecordKind::Write, offset, intake, data)))
            },
        )
    }

    /// A truncate to `len` bytes, in order with the file's writes. `publish` as for [`write`](Self::write).
    ///
    /// # Errors
    /// What `publish` said.
    pub fn truncate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        len: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.resize(who, file, fd, publish, || Ok(Some(len)))
    }

    /// fallocate(2) that keeps what the file holds: its size becomes `end` if it is smaller, which is logged as a
    /// truncate; blocks behind the scenes are no change. `end` 0 leaves the size alone (FALLOC_FL_KEEP_SIZE).
    /// `publish` as for [`write`](Self::write).
    ///
    /// # Errors
    /// What `publish` said.
    pub fn allocate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        end: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let grown = || {
            let size = rustix::fs::fstat(fd)?.st_size as u64;
            Ok(Some(end).filter(|end| *end > size))
        };
        self.resize(who, file, fd, publish, grown)
    }

    /// A change of nothing but the size. `size` runs under the lock and says what to log, or nothing.
    fn resize(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        publish: impl FnOnce() -> Result<(), Errno>,
        size: impl Fn() -> Result<Option<u64>, Errno>,
    ) -> Result<(), Errno> {
        self.change(
            who,
            file,
            fd,
            publish,
            |(), _| true,
            || {
                let intake = Intake { length: 0, stored: 0 };
                let in_range = size()?.filter(|size| *size <= i64::MAX as u64);
                Ok(in_range.map(|size| (RecordKind::Truncate, size, intake, core::iter::empty::<&[u8]>())))
            },
        )
    }

    /// The common course of a logged change. `entry` runs under the lock and says what to log, or nothing;
    /// `whole` tells whether the publish did all of it. Waiting for space is done with nothing held: the
    /// destager needs the file's lock, and the lane's operation would hold back what it may retire.
    #[inline]
    fn change<'d, R: Copy, D: Iterator<Item = &'d [u8]>>(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        publish: impl Publish<R>,
        whole: impl FnOnce(R, u64) -> bool,
        entry: impl Fn() -> Result<Option<(RecordKind, u64, Intake, D)>, Errno>,
    ) -> Result<R, Errno> {
        let start = ticks();
        let mut wait = Wait::default();
        loop {
            let inside = match self.enter(who, file) {
                Entering::Alone(inside) => inside,
                Entering::Nested(slot) => return nested(slot, publish),
                Entering::Gone => return publish.publish(ticks()),
            };
            let slot = inside.slot();
            if inside.inherited() {
                inside.leave(self.pool(), Flag::NONE, || fdatasync(fd));
                inside.settled();
                self.rejoin(&inside, || fdatasync(fd));
            }
            if !slot.state().has(Flag::TRACKED) {
                return around(&inside, publish);
            }
            // An offset the kernel will refuse, or nothing to write: its answer is the answer.
            let Ok(Some((kind, offset, intake, data))) = entry() else { return publish.publish(ticks()) };
            if kind == RecordKind::Truncate {
                // What is cut off is solid no more; the rest is (SQLite cuts its file to the size it has, again and
                // again).
                inside.is_cut(offset);
            }
            publish.prepare();
            let entry = Entry { kind, slot: file.slot, generation: file.generation, offset, intake };
            let Some((op, appended)) = self.append(who, &inside, &entry, data) else {
                if self.waits_for_space(slot) && self.log.fits(&intake) && !wait.is_over() {
                    drop(inside);
                    self.wait_for_space(who, slot, &mut wait);
                    continue;
                }
                inside.leave(self.pool(), Flag::LOG_FULL, || fdatasync(fd));
                let done = around(&inside, publish);
                self.rejoin(&inside, || fdatasync(fd));
                return done;
            };
            if inside.waited() != 0 {
                self.log.shm.stats(op.lane()).record(Event::FileLock, slot.class(), self.ns(inside.waited()));
            }
            let done = self.publish(op, slot, kind, (start, appended), publish);
            if !done.is_ok_and(|r| whole(r, intake.length)) {
                // The log now says more than happened. Retiring it makes the file's own content the truth.
                inside.leave(self.pool(), Flag::NONE, || fdatasync(fd));
                self.rejoin(&inside, || fdatasync(fd));
            }
            return done;
        }
    }

    /// Append and persist, and when that was done. `None` if the log is full, or every lane is taken.
    #[inline]
    fn append<'d>(
        &self,
        who: Owner,
        inside: &Inside<'_>,
        entry: &Entry,
        data: impl Iterator<Item = &'d [u8]>,
    ) -> Option<(Operation<'_>, u64)> {
        let slot = inside.slot();
        let mut op = self.log.claim(who)?;
        let start = ticks();
        let lsn = op.draw(entry.slot);
        inside.logs(lsn);
        if op.append(lsn, entry, data).is_err() {
            if !self.waits_for_space(slot) {
                self.log.shm.stats(op.lane()).count(Event::LogFull, slot.class());
            }
            // The lane's next operation says that all before it was waited for.
            fence();
            op.abandon();
            return None;
        }
        let Ok(persisted) = persist::records(&self.log, slot.state(), entry.kind, (start, lsn)) else {
            // It may be taken for made, as long as its write is under way; who goes around the log retires it.
            op.abandon();
            return None;
        };
        if persisted.spent != 0 {
            let stats = self.log.shm.stats(op.lane());
            stats.record(Event::LogFileParallelWrite, slot.class(), self.ns(persisted.spent));
        }
        inside.logged(entry.intake.length);
        Some((op, persisted.at))
    }

    /// Publish, then end the operation; `start` and `appended` are when the write and its publish began. A write that
    /// is not durable by now waits for that in its sync, and is not counted here.
    #[inline]
    fn publish<R>(
        &self,
        mut op: Operation<'_>,
        slot: Slot<'_>,
        kind: RecordKind,
        (start, appended): (u64, u64),
        publish: impl Publish<R>,
    ) -> Result<R, Errno> {
        op.publishing();
        let done = publish.publish(appended);
        let (stats, published) = (self.log.shm.stats(op.lane()), ticks());
        stats.record(Event::Publish, slot.class(), self.ns(published.wrapping_sub(appended)));
        if persist::is_first(&self.log, slot.state(), kind) {
            stats.record(Event::LogFileSync, slot.class(), self.ns(published.wrapping_sub(start)));
        }
        done
    }
}

/// Where the kernel will put the write. Asked under the lock, so several appenders get different answers.
#[inline]
fn place(fd: BorrowedFd<'_>, at: At) -> Result<u64, Errno> {
    match at {
        At::Offset(offset) => Ok(offset),
        At::Cursor => rustix::fs::seek(fd, SeekFrom::Current(0)),
        At::End => rustix::fs::fstat(fd).map(|stat| stat.st_size as u64),
        // Half the price of asking for the size.
        At::CursorAtEnd => rustix::fs::seek(fd, SeekFrom::End(0)),
    }
}

/// A change of an untracked file. Of one whose writes are refused nothing is changed at all.
#[inline]
fn around<R>(inside: &Inside<'_>, publish: impl Publish<R>) -> Result<R, Errno> {
    if inside.slot().state().is_barred() {
        return Err(Errno::IO);
    }
    inside.goes_around();
    publish.publish(ticks())
}

/// A signal handler changes the file that its own thread is changing: it goes to the kernel, and the next
/// fsync is real, also for the interrupted change.
#[cold]
fn nested<R>(slot: Slot<'_>, publish: impl Publish<R>) -> Result<R, Errno> {
    slot.disturb();
    publish.publish(ticks())
}
