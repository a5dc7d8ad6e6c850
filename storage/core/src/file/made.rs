//! Directories that were made lately in one that is in the log, and are not in the log themselves.
//!
//! Such a directory may enter the log before the disk has it, if names were only added to it since: its own log gets a record of
//! each that is there then. Of a name that was taken away before, the disk may still have a trace that no record is about; and a
//! file that got a name here by link(2) may be on the disk with all its content, of which no record here says anything.
//!
//! Any process reads and writes. One word says which directory it is and whether it only grew, another how it was made. Two
//! directories that meet at one place forget each other, which costs a sync that waits for the disk. What may not be trusted:
//! that names are taken away under Seawall alone. As with every directory whose names are in the log, what others do in it shows
//! in its change time, and only from its entry on.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::SeqCst;

use seawall_wire::shm::{Shape, Shm};

use crate::format::{Attributes, Handle};

/// In the first word: no name was taken away.
const GREW: u64 = 1;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The words at the place of a directory: which it is, and how it was made.
struct Place<'a>([&'a AtomicU64; 2]);

impl<'a> Place<'a> {
    fn of(shm: &'a Shm, inode: u64) -> Self {
        let words = shm.made_words((inode >> 32) as u32 % Shape::MADE);
        Self([words.u64(0), words.u64(8)])
    }

    /// Its first word, if it is this directory's.
    fn is_of(&self, inode: u64) -> Option<u64> {
        let word = self.0[0].load(SeqCst);
        (word & !GREW == inode).then_some(word)
    }
}

/// A directory was made.
pub(crate) fn note(shm: &Shm, inode: (u64, u64), handle: &Handle, attributes: &Attributes) {
    let inode = which(inode);
    let place = Place::of(shm, inode);
    place.0[0].store(0, SeqCst);
    place.0[1].store(how(handle, attributes), SeqCst);
    place.0[0].store(inode | GREW, SeqCst);
}

/// True if it was made lately.
pub(crate) fn is_known(shm: &Shm, inode: (u64, u64)) -> bool {
    let inode = which(inode);
    Place::of(shm, inode).is_of(inode).is_some()
}

/// True if names were only added to it since.
pub(crate) fn grew(shm: &Shm, inode: (u64, u64)) -> bool {
    let inode = which(inode);
    Place::of(shm, inode).is_of(inode).is_some_and(|word| word & GREW != 0)
}

/// The same, and it is this one, as it was made.
pub(crate) fn is_as_made(shm: &Shm, inode: (u64, u64), handle: &Handle, attributes: &Attributes) -> bool {
    let place = Place::of(shm, which(inode));
    grew(shm, inode) && place.0[1].load(SeqCst) == how(handle, attributes) && grew(shm, inode)
}

/// A name in it is about to be taken away.
pub(crate) fn shrinks(shm: &Shm, inode: (u64, u64)) {
    let inode = which(inode);
    let place = Place::of(shm, inode);
    if place.is_of(inode).is_some() {
        // Another directory may have got the place meanwhile: then that one is synced.
        place.0[0].fetch_and(!GREW, SeqCst);
    }
}

/// It is not asked about any more.
pub(crate) fn forget(shm: &Shm, inode: (u64, u64)) {
    let inode = which(inode);
    let place = Place::of(shm, inode);
    if let Some(word) = place.is_of(inode) {
        let _ = place.0[0].compare_exchange(word, 0, SeqCst, SeqCst);
    }
}

/// An inode, mixed. Never zero.
fn which((dev, ino): (u64, u64)) -> u64 {
    mixed([dev, ino]) & !GREW | 1 << 63
}

/// An identity and the attributes that a sync stands for, mixed.
fn how(handle: &Handle, attributes: &Attributes) -> u64 {
    let bytes = handle.bytes().chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let Attributes { mode, uid, gid, .. } = *attributes;
    let whose = [handle.kind() as u64, u64::from(mode & 0o7777), u64::from(uid) << 32 | u64::from(gid)];
    mixed(bytes.chain(whose))
}

fn mixed(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0, |sum: u64, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29))
}
