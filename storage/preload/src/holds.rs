//! Mappings and streams that keep managed files out of the log, so that their end is noticed.
//!
//! A fixed table. What does not fit is held until the process ends, which is always safe.

use core::sync::atomic::{
    AtomicU8, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use seawall_core::FileRef;

use crate::{client, owner, session};

/// What a hold stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A shared mapping of `len` bytes at `at`.
    Mapping {
        /// Its first byte.
        at: usize,
        /// Its length.
        len: usize,
    },
    /// The stream at this address.
    Stream(usize),
}

const FREE: u8 = 0;
const BUSY: u8 = 1;
/// A mapping that could become writable by mprotect(2): not held yet.
const LATENT: u8 = 2;
const HELD: u8 = 3;
/// Held until the process ends: a forked child may still use it.
const FOREVER: u8 = 4;

struct Row {
    state: AtomicU8,
    at: AtomicUsize,
    /// 0 for a stream.
    len: AtomicUsize,
    file: AtomicU64,
}

const ROWS: usize = 256;
static TABLE: [Row; ROWS] = [const {
    Row {
        state: AtomicU8::new(FREE),
        at: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        file: AtomicU64::new(0),
    }
}; ROWS];
/// Rows in use, so that munmap and mprotect of everybody else cost one load.
static USED: AtomicUsize = AtomicUsize::new(0);

/// True if there is anything to look for.
#[inline]
pub fn any() -> bool {
    USED.load(Relaxed) != 0
}

/// Notes a hold that was taken.
pub fn held(why: Why, file: FileRef) {
    add(why, file, HELD);
}

/// Notes a mapping that may become writable. False if there is no room: hold it now.
pub fn latent(why: Why, file: FileRef) -> bool {
    add(why, file, LATENT)
}

fn add(why: Why, file: FileRef, state: u8) -> bool {
    let free = TABLE.iter().find(|row| row.state.compare_exchange(FREE, BUSY, AcqRel, Relaxed).is_ok());
    let Some(row) = free else { return false };
    let (at, len) = match why {
        Why::Mapping { at, len } => (at, len),
        Why::Stream(at) => (at, 0),
    };
    row.at.store(at, Relaxed);
    row.len.store(len, Relaxed);
    row.file.store(file.word(), Relaxed);
    USED.fetch_add(1, Relaxed);
    row.state.store(state, Release);
    true
}

/// True if the application has the file mapped, to read it.
pub fn is_read_mapped(file: FileRef) -> bool {
    rows().any(|row| row.state.load(Relaxed) == LATENT && row.file() == file)
}

/// The stream at this address was closed.
pub fn closed(stream: usize) {
    rows().filter(|row| row.len.load(Relaxed) == 0 && row.at.load(Relaxed) == stream).for_each(Row::end);
}

/// A range was unmapped: mappings that lay wholly inside are gone.
pub fn unmapped(at: usize, len: usize) {
    let end = at.saturating_add(page_round(len));
    mappings().filter(|(_, from, to)| at <= *from && *to <= end).for_each(|(row, ..)| row.end());
}

/// A mapping moved. One that moved in part is held on at its old place, until the process ends.
pub fn moved(at: usize, len: usize, to: usize, to_len: usize) {
    for (row, from, end) in mappings() {
        if from == at && end == at + page_round(len) {
            row.at.store(to, Relaxed);
            row.len.store(to_len, Relaxed);
        } else if from < at + page_round(len).max(1) && at < end {
            row.make_held();
            let _ = row.state.compare_exchange(HELD, FOREVER, AcqRel, Relaxed);
        }
    }
}

/// A range is about to become writable.
pub fn writable(at: usize, len: usize) {
    let end = at.saturating_add(page_round(len));
    mappings().filter(|(_, from, to)| *from < end && at < *to).for_each(|(row, ..)| row.make_held());
}

/// Before a fork: the child inherits everything here, so the parent may not release it.
pub fn before_fork() {
    rows().for_each(|row| {
        let _ = row.state.compare_exchange(HELD, FOREVER, AcqRel, Relaxed);
    });
}

/// In the child: what it inherited is held in its own name.
pub fn after_fork() {
    rows().filter(|row| row.state.load(Acquire) == FOREVER).for_each(Row::hold);
}

fn rows() -> impl Iterator<Item = &'static Row> {
    let used = if any() { &TABLE[..] } else { &[] };
    used.iter().filter(|row| row.state.load(Acquire) > BUSY)
}

fn mappings() -> impl Iterator<Item = (&'static Row, usize, usize)> {
    rows().filter_map(|row| {
        let (at, len) = (row.at.load(Relaxed), row.len.load(Relaxed));
        (len != 0).then(|| (row, at, at + page_round(len)))
    })
}

fn page_round(len: usize) -> usize {
    len.checked_next_multiple_of(4096).unwrap_or(len)
}

impl Row {
    fn file(&self) -> FileRef {
        FileRef::of_word(self.file.load(Relaxed))
    }

    fn hold(&self) {
        if let Some(engine) = session::joined()
            && let Some(who) = owner::current(engine)
        {
            engine.hold(who, self.file(), || client::sync_file(self.file()));
        }
    }

    fn make_held(&self) {
        if self.state.compare_exchange(LATENT, BUSY, AcqRel, Relaxed).is_ok() {
            self.hold();
            self.state.store(HELD, Release);
        }
    }

    fn end(&self) {
        let was = self.state.load(Acquire);
        let over = was > BUSY && self.state.compare_exchange(was, BUSY, AcqRel, Relaxed).is_ok();
        if !over {
            return;
        }
        if was == HELD
            && let Some(engine) = session::joined()
            && let Some(who) = owner::current(engine)
        {
            engine.release(who, self.file());
        }
        USED.fetch_sub(1, Relaxed);
        self.state.store(FREE, Release);
    }
}
