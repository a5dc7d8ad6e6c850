//! Files that were synced once and have no slot: all of each is in the log, in a record of its directory.
//!
//! Input: the record's LSN, and who the file is. Output: whether the file at hand is one of them, which the disk may lack;
//! and all of a directory's, for whoever syncs them. An entry counts until its directory's watermark has passed the record.
//!
//! Any process reads; whoever has the directory's lock writes. Two directories may want the same entry: the one that comes
//! second looks for another, and where there is none its file is synced for real. Whoever dies while it writes an entry costs
//! that entry.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use seawall_wire::shm::{Shape, Shm, Words};

use super::{FileRef, Inside, Slot};
use crate::format::Handle;

/// Entries that are looked at for one file.
const PROBES: u32 = 8;
/// Somebody writes the entry.
const BUSY: u64 = 1;

const LSN: usize = 0;
const SLOT: usize = 8;
const GENERATION: usize = 12;
const DEV: usize = 16;
const INO: usize = 24;
const KIND: usize = 32;
const LEN: usize = 36;
const BYTES: usize = 40;

/// A file that is in the log as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Its directory.
    pub directory: FileRef,
    /// Who it is.
    pub handle: Handle,
    /// The record's.
    pub lsn: u64,
}

/// An entry that is the caller's until its record is in the log.
pub(crate) struct Reserved<'a>(Words<'a>);

fn entries(shm: &Shm, (dev, ino): (u64, u64)) -> impl Iterator<Item = Words<'_>> {
    let mixed = (ino ^ dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (mixed >> 32) as u32;
    (0..PROBES).map(move |i| shm.captured_words(first.wrapping_add(i) % Shape::CAPTURED))
}

fn read(words: Words<'_>) -> Option<((u64, u64), Captured)> {
    let lsn = words.u64(LSN).load(SeqCst);
    if lsn <= BUSY {
        return None;
    }
    let mut bytes = [0; 24];
    for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&words.u64(BYTES + i * 8).load(Relaxed).to_le_bytes());
    }
    let len = words.u32(LEN).load(Relaxed) as usize;
    let handle = Handle::new(words.u32(KIND).load(Relaxed) as i32, bytes.get(..len)?)?;
    let directory =
        FileRef { slot: words.u32(SLOT).load(Relaxed), generation: words.u32(GENERATION).load(Relaxed) };
    let inode = (words.u64(DEV).load(Relaxed), words.u64(INO).load(Acquire));
    // It is another one's by now, or about to be.
    (words.u64(LSN).load(SeqCst) == lsn).then_some((inode, Captured { directory, handle, lsn }))
}

/// True if the disk may lack what the record has.
fn is_live(shm: &Shm, captured: &Captured) -> bool {
    let slot = Slot::of(shm, captured.directory.slot);
    slot.is_some_and(|slot| slot.is_of(captured.directory) && captured.lsn > slot.watermark())
}

/// The file with this inode, if the log has all of it and the disk may lack it.
pub fn find(shm: &Shm, inode: (u64, u64)) -> Option<Captured> {
    let here = entries(shm, inode).filter_map(read).filter(|(found, _)| *found == inode);
    here.map(|(_, captured)| captured)
        .filter(|captured| is_live(shm, captured))
        .max_by_key(|captured| captured.lsn)
}

/// All of a directory's that the disk may lack.
pub fn all_of(shm: &Shm, directory: FileRef) -> impl Iterator<Item = Captured> {
    let all = (0..Shape::CAPTURED).filter_map(|i| read(shm.captured_words(i)));
    all.map(|(_, captured)| captured)
        .filter(move |captured| captured.directory == directory && is_live(shm, captured))
}

/// Whatever the log has of the file with this inode is never looked at: it has no name any more, or the disk has it. The caller
/// has the lock of its directory.
pub(crate) fn forget(shm: &Shm, inode: (u64, u64)) {
    for words in entries(shm, inode) {
        let lsn = words.u64(LSN).load(SeqCst);
        if read(words).is_some_and(|(found, _)| found == inode) {
            let _ = words.u64(LSN).compare_exchange(lsn, 0, SeqCst, Relaxed);
        }
    }
}

impl Inside<'_> {
    /// A place for the file with this inode, whose record is about to be made in the directory that is entered.
    pub(crate) fn reserve<'s>(&self, shm: &'s Shm, inode: (u64, u64)) -> Option<Reserved<'s>> {
        let is_its_own = |found: &Option<((u64, u64), Captured)>| found.is_some_and(|(is, _)| is == inode);
        let takes = |words: Words<'s>, lsn: u64| {
            words.u64(LSN).compare_exchange(lsn, BUSY, SeqCst, Relaxed).is_ok().then_some(Reserved(words))
        };
        let own = entries(shm, inode).find_map(|words| {
            let found = read(words);
            if is_its_own(&found) { takes(words, found?.1.lsn) } else { None }
        });
        own.or_else(|| {
            entries(shm, inode).find_map(|words| {
                let lsn = words.u64(LSN).load(SeqCst);
                let is_taken =
                    lsn == BUSY || read(words).is_some_and(|(_, captured)| is_live(shm, &captured));
                if is_taken { None } else { takes(words, lsn) }
            })
        })
    }
}

impl Reserved<'_> {
    /// The record is in the log.
    pub(crate) fn note(self, directory: FileRef, inode: (u64, u64), handle: &Handle, lsn: u64) {
        let Self(words) = self;
        words.u32(SLOT).store(directory.slot, Relaxed);
        words.u32(GENERATION).store(directory.generation, Relaxed);
        words.u64(DEV).store(inode.0, Relaxed);
        words.u64(INO).store(inode.1, Relaxed);
        words.u32(KIND).store(handle.kind() as u32, Relaxed);
        words.u32(LEN).store(handle.bytes().len() as u32, Relaxed);
        let mut bytes = [0; 24];
        bytes[..handle.bytes().len()].copy_from_slice(handle.bytes());
        for (i, chunk) in bytes.chunks_exact(8).enumerate() {
            words.u64(BYTES + i * 8).store(chunk.try_into().map_or(0, u64::from_le_bytes), Relaxed);
        }
        words.u64(LSN).store(lsn, Release);
    }

    /// There is none.
    pub(crate) fn give_up(self) {
        self.0.u64(LSN).store(0, Release);
    }
}
