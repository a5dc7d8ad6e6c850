//! From (device, inode) to slot: open addressing, one writer (the daemon), any readers, no lock.
//!
//! A bucket holds slot + 2; 0 is empty, 1 is a removed entry. The slot's own identity decides, so a reader
//! that races with a removal at worst asks the daemon.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Flag, Shm};

const EMPTY: u32 = 0;
const REMOVED: u32 = 1;

#[inline]
fn start(shm: &Shm, dev: u64, ino: u64) -> usize {
    let mixed = (ino ^ dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize & (shm.shape().buckets() - 1)
}

fn probes(shm: &Shm, dev: u64, ino: u64) -> impl Iterator<Item = usize> {
    let mask = shm.shape().buckets() - 1;
    let first = start(shm, dev, ino);
    (0..=mask).map(move |i| (first + i) & mask)
}

fn is(shm: &Shm, slot: u32, dev: u64, ino: u64) -> bool {
    shm.file(slot).is_some_and(|f| {
        Flag::USED.any_in(f.flags().load(Acquire))
            && f.dev().load(Relaxed) == dev
            && f.ino().load(Relaxed) == ino
    })
}

pub(super) fn find(shm: &Shm, dev: u64, ino: u64) -> Option<u32> {
    for i in probes(shm, dev, ino) {
        match shm.bucket(i).load(Acquire) {
            EMPTY => return None,
            REMOVED => {}
            slot if is(shm, slot - 2, dev, ino) => return Some(slot - 2),
            _ => {}
        }
    }
    None
}

pub(super) fn insert(shm: &Shm, dev: u64, ino: u64, slot: u32) -> bool {
    for i in probes(shm, dev, ino) {
        if shm.bucket(i).load(Relaxed) <= REMOVED {
            shm.bucket(i).store(slot + 2, Release);
            return true;
        }
    }
    false
}

pub(super) fn remove(shm: &Shm, dev: u64, ino: u64, slot: u32) {
    for i in probes(shm, dev, ino) {
        match shm.bucket(i).load(Relaxed) {
            EMPTY => return,
            found if found == slot + 2 => return retire(shm, i),
            _ => {}
        }
    }
}

/// Empties bucket `i`; if the next one is empty, so may be the run of removed ones that ends here.
fn retire(shm: &Shm, i: usize) {
    let mask = shm.shape().buckets() - 1;
    shm.bucket(i).store(REMOVED, Release);
    let mut at = i;
    while shm.bucket((at + 1) & mask).load(Relaxed) == EMPTY && shm.bucket(at).load(Relaxed) == REMOVED {
        shm.bucket(at).store(EMPTY, Release);
        at = at.wrapping_sub(1) & mask;
    }
}
