//! From (device, inode) to slot: open addressing, one writer (the daemon), any readers, no lock.
//!
//! A bucket holds slot + 2; 0 is empty, 1 is a removed entry. The slot's own identity decides, so a reader
//! that races with a removal at worst asks the daemon.

use core::sync::atomic::Ordering;

use seawall_wire::shm::Shm;

use super::{FileRef, Flag, Slot};

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

/// The managed file with this inode.
#[inline]
pub(crate) fn find(shm: &Shm, dev: u64, ino: u64) -> Option<FileRef> {
    let slot = find_slot(shm, dev, ino)?;
    let file = slot.file();
    slot.is_of(file).then_some(file)
}

#[inline]
fn find_slot(shm: &Shm, dev: u64, ino: u64) -> Option<Slot<'_>> {
    let is = |slot: &Slot<'_>| slot.state().has(Flag::USED) && slot.inode() == (dev, ino);
    for i in probes(shm, dev, ino) {
        match shm.bucket(i).load(Ordering::Acquire) {
            EMPTY => return None,
            REMOVED => {}
            number => {
                if let Some(slot) = Slot::of(shm, number - 2).filter(is) {
                    return Some(slot);
                }
            }
        }
    }
    None
}

/// Makes the slot findable. False: there is no room.
#[cfg(feature = "std")]
pub(crate) fn insert(shm: &Shm, slot: Slot<'_>) -> bool {
    let (dev, ino) = slot.inode();
    for i in probes(shm, dev, ino) {
        if shm.bucket(i).load(Ordering::Relaxed) <= REMOVED {
            shm.bucket(i).store(slot.number() + 2, Ordering::Release);
            return true;
        }
    }
    false
}

/// Makes the slot unfindable.
#[cfg(feature = "std")]
pub(crate) fn remove(shm: &Shm, slot: Slot<'_>) {
    let (dev, ino) = slot.inode();
    for i in probes(shm, dev, ino) {
        match shm.bucket(i).load(Ordering::Relaxed) {
            EMPTY => return,
            found if found == slot.number() + 2 => return vacate(shm, i),
            _ => {}
        }
    }
}

/// Empties bucket `i`; if the next one is empty, the run of removed ones that ends here may become empty too.
#[cfg(feature = "std")]
fn vacate(shm: &Shm, i: usize) {
    let mask = shm.shape().buckets() - 1;
    shm.bucket(i).store(REMOVED, Ordering::Release);
    let mut at = i;
    while shm.bucket((at + 1) & mask).load(Ordering::Relaxed) == EMPTY
        && shm.bucket(at).load(Ordering::Relaxed) == REMOVED
    {
        shm.bucket(at).store(EMPTY, Ordering::Release);
        at = at.wrapping_sub(1) & mask;
    }
}
