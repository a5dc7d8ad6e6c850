//! Writes and truncates: begin, log, publish, finish.
//!
//! ```text
//! let change = engine.begin(who, file, fd);      the file is the caller's alone from here on
//! let change = change.log_write(at, data)?;      intake, append, persist: the record is durable, where it has to be
//! let done = …;                                  publish: the front's own call, or a store
//! change.finish(done.is_ok_and(…));              a record that says more than happened is retired; the file is free
//! ```
//!
//! The path of a logged write is inlined into the front's call: moved from step to step, its state would cost as much
//! as the lock.
//!
//! | the file is | `log_…` | the publish |
//! |---|---|---|
//! | in the log | appends and persists a record; waits for room | is made from the record if the process dies in it |
//! | out of the log | counts it, so that a sync that is under way does not cover it | is the kernel's alone |
//! | out of it, and suspended: a copy is taken of what must not be torn | waits until the copy is done | is the kernel's alone |
//! | no longer known, or already entered by this thread, in a signal handler | does nothing | is the kernel's alone |

#[cfg(feature = "std")]
mod content;

use rustix::fd::BorrowedFd;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use seawall_media::fence;
use seawall_stats::{Event, ticks};

use super::attach::Engine;
use super::enter::Entering;
use super::space::Wait;
use crate::Owner;
use crate::append::{NewRecord, Operation};
use crate::certain::fdatasync;
use crate::file::{FileRef, Flag, Inside};
use crate::format::RecordKind;
use crate::intake::{self, Intake};
use crate::persist::{self, Persisted};

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// pwrite(2).
    Offset(u64),
    /// write(2): the descriptor's position.
    Cursor,
    /// O_APPEND, RWF_APPEND: the end of the file, whatever the descriptor's position, which stays where it is
    /// (pwrite(2)).
    End,
    /// The same, after setting the descriptor's position there (write(2)).
    CursorAtEnd,
}

/// A change of a file that has begun and is not logged yet.
#[must_use = "nobody else changes the file before this is finished"]
pub struct Begun<'e> {
    engine: &'e Engine,
    who: Owner,
    file: FileRef,
    fd: BorrowedFd<'e>,
    start: u64,
    /// `None`: the change is the kernel's alone.
    inside: Option<Inside<'e>>,
}

/// A change that has to be published now.
#[must_use = "nobody else changes the file before this is finished"]
pub struct Change<'e> {
    engine: &'e Engine,
    fd: BorrowedFd<'e>,
    start: u64,
    /// When the publish began, in ticks, or a moment earlier.
    now: u64,
    course: Course<'e>,
}

/// The course of a change.
enum Course<'e> {
    /// Its record is in the log.
    Logged { inside: Inside<'e>, op: Operation<'e>, kind: RecordKind },
    /// The change goes around a log that has no room. The file may be back at once.
    Around(Inside<'e>),
    /// The change is the kernel's alone: with the file's lock, or without.
    Unlogged { _inside: Option<Inside<'e>> },
}

/// The change to be logged.
#[derive(Clone, Copy)]
enum What {
    Write(At),
    Truncate(u64),
    /// A new size, if the file is smaller.
    Grow(u64),
}

/// The outcome of an append.
enum Appended<'e> {
    Persisted(Operation<'e>, Persisted),
    /// There is no room for it: nothing that was stored counts, or ever will.
    Full,
}

impl Engine {
    /// Begins a change of a file through `fd`. If a holder was lost inside, what it left behind is dealt with first.
    #[inline(always)]
    pub fn begin<'e>(&'e self, who: Owner, file: FileRef, fd: BorrowedFd<'e>) -> Begun<'e> {
        let mut begun = Begun { engine: self, who, file, fd, start: ticks(), inside: None };
        begun.enter();
        begun
    }
}

impl<'e> Begun<'e> {
    /// Enters the file. In a signal handler that changes the very file which its own thread is changing, the kernel
    /// does all of it, and the next fsync is real, also for the interrupted change.
    #[inline(always)]
    fn enter(&mut self) {
        match self.engine.enter(self.who, self.file) {
            Entering::Alone(inside) => {
                if inside.inherited() {
                    self.engine.settle(&inside, self.fd);
                }
                self.inside = Some(inside);
            }
            Entering::Nested(slot) => slot.disturb(),
            Entering::Gone => {}
        }
    }

    /// True if the file is in the log: a record of the change is what comes next.
    #[inline]
    pub fn is_tracked(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.slot().state().has(Flag::TRACKED))
    }

    /// True if the change has to wait for the end of a freeze. Only what comes later can make it true.
    #[inline]
    pub fn must_wait(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.slot().state().is_suspended())
    }

    /// Logs a write of these slices. When the change is finished and the file is still in the log, what the kernel
    /// wrote is durable; on a block device, only after the file's next sync, unless its every write must be logged.
    ///
    /// # Errors
    /// EIO for a file whose every write must be logged, and which failed a sync outside the log: nothing must be
    /// published. A full log is no error: the change goes around it, or waits.
    #[inline(always)]
    pub fn log_write<'d>(
        self,
        at: At,
        data: impl Iterator<Item = &'d [u8]> + Clone,
    ) -> Result<Change<'e>, Errno> {
        self.log(What::Write(at), &data)
    }

    /// Logs a truncate to `len` bytes, in order with the file's writes.
    ///
    /// # Errors
    /// As for [`log_write`](Self::log_write).
    pub fn log_truncate(self, len: u64) -> Result<Change<'e>, Errno> {
        self.log(What::Truncate(len), &core::iter::empty())
    }

    /// Logs an fallocate(2) that keeps the file's content: its size becomes `end` if it is smaller, which is logged as
    /// a truncate; blocks behind the scenes are no change. `end` 0 leaves the size alone (FALLOC_FL_KEEP_SIZE).
    ///
    /// # Errors
    /// As for [`log_write`](Self::log_write).
    pub fn log_allocate(self, end: u64) -> Result<Change<'e>, Errno> {
        self.log(What::Grow(end), &core::iter::empty())
    }

    /// Nothing is held while waiting for space: the destager needs the file's lock, and the lane's operation would
    /// limit what the destager may retire.
    #[inline(always)]
    fn log<'d>(
        mut self,
        what: What,
        data: &(impl Iterator<Item = &'d [u8]> + Clone),
    ) -> Result<Change<'e>, Errno> {
        let mut wait = Wait::default();
        let mut freeze = Wait::default();
        loop {
            let Some(inside) = self.inside.take() else { return Ok(self.unlogged(None)) };
            if !inside.slot().state().has(Flag::TRACKED) {
                if inside.slot().state().is_suspended() && !freeze.is_over() {
                    drop(inside);
                    self.engine.wait_for_thaw(&mut freeze);
                    self.enter();
                    continue;
                }
                return self.around(inside);
            }
            // The kernel will refuse the offset, or there is nothing to write: the kernel's answer is the answer.
            let Some((kind, offset, intake)) = what.measure(self.fd, data) else {
                return Ok(self.unlogged(Some(inside)));
            };
            if kind == RecordKind::Truncate {
                // The part that is cut off is no longer solid; the rest still is (SQLite cuts its file to the size it
                // has, again and again).
                inside.is_cut(offset);
            }
            let (slot, generation) = (self.file.slot, self.file.generation);
            let record = NewRecord { kind, slot, generation, offset, intake };
            match self.append(&inside, &record, data.clone()) {
                Appended::Persisted(op, persisted) => return Ok(self.logged(inside, op, kind, &persisted)),
                Appended::Full if self.waits(&inside, &intake, &wait) => {
                    let slot = inside.slot();
                    drop(inside);
                    self.engine.wait_for_space(self.who, slot, &mut wait);
                    self.enter();
                }
                Appended::Full => return self.around_full(inside),
            }
        }
    }

    fn waits(&self, inside: &Inside<'_>, intake: &Intake, wait: &Wait) -> bool {
        let (engine, slot) = (self.engine, inside.slot());
        // A record that could not be retired never will be.
        let may_come_back = !slot.state().has(Flag::FAILED);
        may_come_back && engine.waits_for_space(slot) && engine.log.fits(intake) && !wait.is_over()
    }

    /// Append and persist.
    #[inline(always)]
    fn append<'d>(
        &self,
        inside: &Inside<'_>,
        record: &NewRecord,
        data: impl Iterator<Item = &'d [u8]>,
    ) -> Appended<'e> {
        let (engine, slot) = (self.engine, inside.slot());
        let Some(mut op) = engine.log.claim(self.who) else { return Appended::Full };
        let start = ticks();
        let lsn = op.draw(record.slot);
        inside.logs(lsn);
        if op.append(lsn, record, data).is_err() {
            if !engine.waits_for_space(slot) {
                engine.log.shm.stats(op.lane()).count(Event::LogFull, slot.class());
            }
            // The next operation of the lane claims that everything before it was fenced.
            fence();
            return Appended::Full;
        }
        let Some(persisted) = self.persist(inside, record.kind, (start, lsn)) else { return Appended::Full };
        if persisted.spent != 0 {
            let stats = engine.log.shm.stats(op.lane());
            stats.record(Event::LogFileParallelWrite, slot.class(), engine.ns(persisted.spent));
        }
        inside.logged(record.intake.length);
        Appended::Persisted(op, persisted)
    }

    /// Persists the record that was appended since `start`. `None`: it does not count, and never will.
    #[inline(always)]
    fn persist(&self, inside: &Inside<'_>, kind: RecordKind, record: (u64, u64)) -> Option<Persisted> {
        let engine = self.engine;
        match persist::records(&engine.log, inside.slot(), kind, record) {
            Ok(persisted) => Some(persisted),
            Err(why) => engine.persist_later(inside, (kind, record), why, self.fd),
        }
    }

    /// Its record is persisted.
    #[inline(always)]
    fn logged(
        &self,
        inside: Inside<'e>,
        op: Operation<'e>,
        kind: RecordKind,
        persisted: &Persisted,
    ) -> Change<'e> {
        if inside.waited() != 0 {
            let stats = self.engine.log.shm.stats(op.lane());
            stats.record(Event::FileLock, inside.slot().class(), self.engine.ns(inside.waited()));
        }
        op.publishing();
        self.change(persisted.at, Course::Logged { inside, op, kind })
    }

    /// Begins a change of a file that is out of the log.
    #[inline]
    fn around(&self, inside: Inside<'e>) -> Result<Change<'e>, Errno> {
        if inside.slot().state().is_barred() {
            return Err(Errno::IO);
        }
        inside.goes_around();
        Ok(self.unlogged(Some(inside)))
    }

    /// The log is full: the file leaves it for this change.
    #[cold]
    fn around_full(&self, inside: Inside<'e>) -> Result<Change<'e>, Errno> {
        inside.leave(self.engine.pool(), Flag::LOG_FULL, || fdatasync(self.fd));
        if inside.slot().state().is_barred() {
            return Err(Errno::IO);
        }
        inside.goes_around();
        Ok(self.change(ticks(), Course::Around(inside)))
    }

    fn unlogged(&self, inside: Option<Inside<'e>>) -> Change<'e> {
        self.change(ticks(), Course::Unlogged { _inside: inside })
    }

    #[inline(always)]
    fn change(&self, now: u64, course: Course<'e>) -> Change<'e> {
        Change { engine: self.engine, fd: self.fd, start: self.start, now, course }
    }
}

impl Change<'_> {
    /// A reading of [`ticks`] that was made a moment ago.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// True if the change has a record.
    #[inline]
    pub fn is_logged(&self) -> bool {
        matches!(self.course, Course::Logged { .. })
    }

    /// The publish is over; `whole`: the kernel made all of the change. A change that is not durable by now waits for
    /// that in its sync, and is not counted here.
    #[inline(always)]
    pub fn finish(self, whole: bool) {
        let engine = self.engine;
        match self.course {
            Course::Logged { inside, op, kind } => {
                let (slot, stats, published) = (inside.slot(), engine.log.shm.stats(op.lane()), ticks());
                stats.record(Event::Publish, slot.class(), engine.ns(published.wrapping_sub(self.now)));
                if persist::is_first(&engine.log, slot, kind) {
                    let ns = engine.ns(published.wrapping_sub(self.start));
                    stats.record(Event::LogFileSync, slot.class(), ns);
                }
                drop(op);
                if !whole {
                    engine.settle(&inside, self.fd);
                }
            }
            Course::Around(inside) => engine.rejoin(&inside, || fdatasync(self.fd)),
            Course::Unlogged { .. } => {}
        }
    }
}

impl Engine {
    /// The log says more than happened, or may do so. Retiring the record makes the file's own content the truth.
    #[cold]
    fn settle(&self, inside: &Inside<'_>, fd: BorrowedFd<'_>) {
        inside.leave(self.pool(), Flag::NONE, || fdatasync(fd));
        self.rejoin(inside, || fdatasync(fd));
    }
}

impl What {
    /// Kind, offset (or the new size) and measure of the record. `None`: there is nothing to log, or the kernel refuses
    /// it. Call this under the lock.
    #[inline]
    fn measure<'d>(
        self,
        fd: BorrowedFd<'_>,
        data: &(impl Iterator<Item = &'d [u8]> + Clone),
    ) -> Option<(RecordKind, u64, Intake)> {
        const LONGEST: u64 = i64::MAX as u64;
        let intake = intake::measure(data.clone());
        let (kind, offset) = match self {
            Self::Write(_) if intake.length == 0 => return None,
            Self::Write(at) => (RecordKind::Write, place(fd, at).ok()?),
            Self::Truncate(len) => (RecordKind::Truncate, len),
            Self::Grow(end) => {
                let size = rustix::fs::fstat(fd).ok()?.st_size as u64;
                (RecordKind::Truncate, Some(end).filter(|end| *end > size)?)
            }
        };
        let in_range = offset.checked_add(intake.length).is_some_and(|end| end <= LONGEST);
        in_range.then_some((kind, offset, intake))
    }
}

/// Where the kernel will put the write. Call this under the lock, so that several appenders get different answers.
#[inline]
fn place(fd: BorrowedFd<'_>, at: At) -> Result<u64, Errno> {
    match at {
        At::Offset(offset) => Ok(offset),
        At::Cursor => rustix::fs::seek(fd, SeekFrom::Current(0)),
        At::End => rustix::fs::fstat(fd).map(|stat| stat.st_size as u64),
        // This costs half as much as asking for the size.
        At::CursorAtEnd => rustix::fs::seek(fd, SeekFrom::End(0)),
    }
}
