//! The cache's own disk, if it has one: read and written half by half, with others in between.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use seawall_cache::shared::{Cache, FromDisk, Layout, OperationOwner};

use super::World;

thread_local! {
    static DISK: RefCell<(Vec<u8>, Weak<World>)> = const { RefCell::new((Vec::new(), Weak::new())) };
}

/// A disk of zeros, of this world.
pub fn install(layout: Layout, world: &Rc<World>) {
    DISK.with_borrow_mut(|disk| *disk = (vec![0; layout.stored_bytes() as usize], Rc::downgrade(world)));
}

fn step() {
    let world = DISK.with_borrow(|(_, world)| world.upgrade());
    world.into_iter().for_each(|world| world.step());
}

pub fn read(at: u64, into: &mut [u8]) -> FromDisk {
    let mut at = at as usize;
    for half in into.chunks_mut(super::BLOCK / 2) {
        step();
        DISK.with_borrow(|(bytes, _)| half.copy_from_slice(&bytes[at..at + half.len()]));
        at += half.len();
    }
    step();
    FromDisk::All
}

fn write(at: u64, block: &[u8]) -> bool {
    let mut at = at as usize;
    for half in block.chunks(super::BLOCK / 2) {
        step();
        DISK.with_borrow_mut(|(bytes, _)| bytes[at..at + half.len()].copy_from_slice(half));
        at += half.len();
    }
    step();
    true
}

/// What lies behind this is zeros.
pub fn punch(from: u64) {
    DISK.with_borrow_mut(|(bytes, _)| bytes[from as usize..].fill(0));
}

/// What the daemon does with what was offered.
pub fn bring_all(cache: &Cache, owner: OperationOwner) -> u64 {
    let (mut from, mut brought) = (0, 0);
    let mut memory = vec![0; super::BLOCK];
    while let Some((staged, next)) = cache.next_staged(from) {
        let offered = cache.bring(owner, &staged, &mut memory, write);
        brought += u64::from(offered == seawall_cache::shared::Offered::Admitted);
        from = next;
    }
    brought
}
