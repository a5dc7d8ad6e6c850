//! Files that were synced once and have no slot: all of each is in the log, in a record of its directory.
//!
//! Input: the record's LSN, and the file's identity. Output: whether a file is one of them, which means that the disk
//! may lack it; and all captured files of a directory, for the thread that syncs them. An entry counts until its
//! directory's watermark has passed the record.
//!
//! Any process reads; the holder of the directory's lock writes. Two directories may want the same entry: the second
//! looks for another one, and if there is none, its file gets a real sync. A half-written entry of a writer that died
//! is given up with its directory's lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use seawall_wire::shm::{Shape, Shm, Words};

use super::{FileRef, Inside, Slot};
use crate::format::Handle;

/// How many entries are searched for one file.
const PROBES: u32 = 8;
/// Stands in place of an LSN while the holder of the directory in this slot writes the entry. No log comes to such a
/// number.
const BUSY: u64 = 1 << 63;

const LSN: usize = 0;
const SLOT: usize = 8;
const GENERATION: usize = 12;
const DEV: usize = 16;
const INO: usize = 24;
const KIND: usize = 32;
/// Bytes of the handle, above them how many names the file has, and whether one of them is in another directory.
const LEN: usize = 36;
const LINKS_SHIFT: u32 = 16;
const SPREAD: u32 = 1 << 31;
const BYTES: usize = 40;

/// A file that is in the log as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Its directory.
    pub directory: FileRef,
    /// Its identity.
    pub handle: Handle,
    /// The record's LSN.
    pub lsn: u64,
    /// How many names it has, all of them known to the log. If the kernel counts more, the others are not known.
    pub links: u32,
    /// It got one of its names in another directory; otherwise all of them are in `directory`.
    pub is_spread: bool,
}

/// An entry that belongs to the caller until its record is in the log.
pub(crate) struct Reserved<'a> {
    words: Words<'a>,
    /// The LSN of an earlier record of the same file, or 0.
    before: u64,
}

fn entries(shm: &Shm, (dev, ino): (u64, u64)) -> impl Iterator<Item = Words<'_>> {
    let mixed = (ino ^ dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (mixed >> 32) as u32;
    (0..PROBES).map(move |i| shm.captured_words(first.wrapping_add(i) % Shape::CAPTURED))
}

/// Those that are of the file with this inode.
fn own(shm: &Shm, inode: (u64, u64)) -> impl Iterator<Item = Words<'_>> {
    entries(shm, inode).filter(move |words| read(*words).is_some_and(|(found, _)| found == inode))
}

fn read(words: Words<'_>) -> Option<((u64, u64), Captured)> {
    let lsn = words.u64(LSN).load(SeqCst);
    if lsn == 0 || lsn & BUSY != 0 {
        return None;
    }
    let mut bytes = [0; 24];
    for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&words.u64(BYTES + i * 8).load(Relaxed).to_le_bytes());
    }
    let word = words.u32(LEN).load(Relaxed);
    let (len, links) = ((word & ((1 << LINKS_SHIFT) - 1)) as usize, (word & !SPREAD) >> LINKS_SHIFT);
    let handle = Handle::new(words.u32(KIND).load(Relaxed) as i32, bytes.get(..len)?)?;
    let directory =
        FileRef { slot: words.u32(SLOT).load(Relaxed), generation: words.u32(GENERATION).load(Relaxed) };
    let inode = (words.u64(DEV).load(Relaxed), words.u64(INO).load(Acquire));
    // If the LSN has changed, the entry belongs to another file by now, or is about to.
    let captured = Captured { directory, handle, lsn, links, is_spread: word & SPREAD != 0 };
    (words.u64(LSN).load(SeqCst) == lsn).then_some((inode, captured))
}

/// True if the disk may lack what the record contains.
fn is_live(shm: &Shm, captured: &Captured) -> bool {
    let slot = Slot::of(shm, captured.directory.slot);
    slot.is_some_and(|slot| slot.is_of(captured.directory) && captured.lsn > slot.watermark())
}

/// The file with this inode, if the log has all of it and the disk may lack it.
pub fn find(shm: &Shm, inode: (u64, u64)) -> Option<Captured> {
    if let Capture::Whole(captured) = of(shm, inode) { Some(captured) } else { None }
}

/// What the log has of a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Nothing that the disk may lack.
    No,
    /// Another thread may be capturing it right now, in the directory in this slot, which it holds meanwhile; or another file.
    UnderWay(u32),
    /// All of it.
    Whole(Captured),
}

/// What the log has of the file with this inode. Each entry is looked at once: one that is captured anew, as a file that moves to
/// another directory, is under way or whole at every moment.
pub fn of(shm: &Shm, inode: (u64, u64)) -> Capture {
    let (mut whole, mut busy): (Option<Captured>, _) = (None, None);
    for words in entries(shm, inode) {
        let found = loop {
            match words.u64(LSN).load(SeqCst) {
                0 => break None,
                lsn if lsn & BUSY != 0 => {
                    busy = Some((lsn & !BUSY) as u32);
                    break None;
                }
                lsn => {
                    let found = read(words);
                    // Else it has changed meanwhile.
                    if found.is_some() || words.u64(LSN).load(SeqCst) == lsn {
                        break found;
                    }
                }
            }
        };
        let captured = found.filter(|(is, captured)| *is == inode && is_live(shm, captured));
        whole = whole.into_iter().chain(captured.map(|(_, captured)| captured)).max_by_key(|of| of.lsn);
    }
    whole.map_or_else(|| busy.map_or(Capture::No, Capture::UnderWay), Capture::Whole)
}

/// The holder of this directory died in it: the entry that it was writing belongs to nobody.
pub(crate) fn give_up_in(shm: &Shm, directory: u32) {
    for i in 0..Shape::CAPTURED {
        let word = shm.captured_words(i).u64(LSN);
        let _ = word.compare_exchange(BUSY | u64::from(directory), 0, SeqCst, Relaxed);
    }
}

/// All captured files of a directory that the disk may lack.
pub fn all_of(shm: &Shm, directory: FileRef) -> impl Iterator<Item = Captured> {
    let all = (0..Shape::CAPTURED).filter_map(|i| read(shm.captured_words(i)));
    all.map(|(_, captured)| captured)
        .filter(move |captured| captured.directory == directory && is_live(shm, captured))
}

/// Makes sure that nobody reads what the log has of the file with this inode: it has no name any more, or the disk has
/// it. The caller holds its directory's lock.
pub(crate) fn forget(shm: &Shm, inode: (u64, u64)) {
    for words in entries(shm, inode) {
        let lsn = words.u64(LSN).load(SeqCst);
        if read(words).is_some_and(|(found, _)| found == inode) {
            let _ = words.u64(LSN).compare_exchange(lsn, 0, SeqCst, Relaxed);
        }
    }
}

/// The file with this inode has one more name, or one less. The caller holds the lock of the directory of that name: of
/// a file with names in several directories two threads may say so at once.
pub(crate) fn count(shm: &Shm, inode: (u64, u64), is_more: bool) {
    for words in own(shm, inode) {
        let (word, one) = (words.u32(LEN), 1 << LINKS_SHIFT);
        if is_more {
            word.fetch_add(one, SeqCst)
        } else {
            word.fetch_sub(one, SeqCst)
        };
    }
}

/// One of its names is in another directory from now on. The caller holds the locks of both.
pub(crate) fn spread(shm: &Shm, inode: (u64, u64)) {
    for words in own(shm, inode) {
        words.u32(LEN).fetch_or(SPREAD, SeqCst);
    }
}

impl Inside<'_> {
    /// Reserves an entry for the file with this inode. Its record is about to be made in the directory that the caller
    /// has entered.
    pub(crate) fn reserve<'s>(&self, shm: &'s Shm, inode: (u64, u64)) -> Option<Reserved<'s>> {
        let is_its_own = |found: &Option<((u64, u64), Captured)>| found.is_some_and(|(is, _)| is == inode);
        let busy = BUSY | u64::from(self.slot().number());
        let takes = |words: Words<'s>, lsn: u64, before: u64| {
            let is_taken = words.u64(LSN).compare_exchange(lsn, busy, SeqCst, Relaxed).is_ok();
            is_taken.then_some(Reserved { words, before })
        };
        let own = entries(shm, inode).find_map(|words| {
            let found = read(words);
            let lsn = found.filter(|_| is_its_own(&found))?.1.lsn;
            takes(words, lsn, lsn)
        });
        own.or_else(|| {
            entries(shm, inode).find_map(|words| {
                let lsn = words.u64(LSN).load(SeqCst);
                let is_taken =
                    lsn & BUSY != 0 || read(words).is_some_and(|(_, captured)| is_live(shm, &captured));
                if is_taken { None } else { takes(words, lsn, 0) }
            })
        })
    }
}

impl Reserved<'_> {
    /// The record is in the log.
    pub(crate) fn note(self, directory: FileRef, inode: (u64, u64), handle: &Handle, lsn: u64) {
        let Self { words, .. } = self;
        words.u32(SLOT).store(directory.slot, Relaxed);
        words.u32(GENERATION).store(directory.generation, Relaxed);
        words.u64(DEV).store(inode.0, Relaxed);
        words.u64(INO).store(inode.1, Relaxed);
        words.u32(KIND).store(handle.kind() as u32, Relaxed);
        words.u32(LEN).store(handle.bytes().len() as u32 | 1 << LINKS_SHIFT, Relaxed);
        let mut bytes = [0; 24];
        bytes[..handle.bytes().len()].copy_from_slice(handle.bytes());
        for (i, chunk) in bytes.chunks_exact(8).enumerate() {
            words.u64(BYTES + i * 8).store(chunk.try_into().map_or(0, u64::from_le_bytes), Relaxed);
        }
        words.u64(LSN).store(lsn, Release);
    }

    /// There will be no record; an earlier one of the same file counts as before.
    pub(crate) fn give_up(self) {
        self.words.u64(LSN).store(self.before, Release);
    }
}
