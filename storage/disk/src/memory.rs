//! The guest's memory, as QEMU shares it: which of its addresses we may touch.
//!
//! Two kinds of addresses name it: the guest's own (in its rings and requests), and QEMU's (in messages about rings). Both are
//! looked up, none is believed.

use std::fs::File;
use std::sync::Arc;

use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, VolatileSlice};

use crate::dirty::{Dirty, Marks, Pages};

/// All of it, as it is at one moment.
pub type Memory = GuestMemoryMmap<Dirty>;
/// A part of it, in one piece.
pub type Slice<'m> = VolatileSlice<'m, Marks<'m>>;

/// A stretch of it.
#[derive(Clone)]
struct Stretch {
    /// QEMU's address of it.
    user: u64,
    /// The guest's.
    guest: u64,
    bytes: u64,
    mapped: Arc<GuestRegionMmap<Dirty>>,
}

/// What QEMU has shared.
#[derive(Clone, Default)]
pub struct Shared(Vec<Stretch>);

/// The file's bytes from `place` on, as memory of the guest's.
pub fn mapped(
    file: File,
    place: u64,
    bytes: usize,
    guest: u64,
    pages: &Arc<Pages>,
) -> Option<GuestRegionMmap<Dirty>> {
    let region = MmapRegionBuilder::new_with_bitmap(bytes, Dirty::new(pages, guest))
        .with_file_offset(FileOffset::new(file, place))
        .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
        .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
        .build();
    GuestRegionMmap::new(region.ok()?, GuestAddress(guest))
}

impl Shared {
    /// Takes one more stretch in, whose writes are marked in `pages`. False: it cannot be mapped, or overlaps another one.
    pub fn add(&mut self, region: &VhostUserMemoryRegion, file: File, pages: &Arc<Pages>) -> bool {
        let Ok(bytes) = usize::try_from(region.memory_size) else { return false };
        let mapped = mapped(file, region.mmap_offset, bytes, region.guest_phys_addr, pages);
        let Some(mapped) = mapped else { return false };
        let (user, guest) = (region.user_addr, region.guest_phys_addr);
        if user.checked_add(region.memory_size).is_none() {
            return false;
        }
        self.0.push(Stretch { user, guest, bytes: region.memory_size, mapped: Arc::new(mapped) });
        self.0.sort_by_key(|stretch| stretch.guest);
        let is_sound = self.memory().is_some();
        if !is_sound {
            self.0.retain(|stretch| (stretch.user, stretch.guest) != (user, guest));
        }
        is_sound
    }

    /// Gives one back. False: there is no such one.
    pub fn remove(&mut self, region: &VhostUserMemoryRegion) -> bool {
        let is_it = |stretch: &Stretch| {
            (stretch.user, stretch.guest, stretch.bytes)
                == (region.user_addr, region.guest_phys_addr, region.memory_size)
        };
        let before = self.0.len();
        self.0.retain(|stretch| !is_it(stretch));
        self.0.len() < before
    }

    /// All of it. `None`: there is none, or parts overlap.
    pub fn memory(&self) -> Option<Memory> {
        let regions = self.0.iter().map(|stretch| Arc::clone(&stretch.mapped)).collect();
        Memory::from_arc_regions(regions).ok()
    }

    /// The guest's address of what QEMU calls so.
    pub fn guest_address(&self, user: u64) -> Option<u64> {
        let within = |stretch: &&Stretch| user >= stretch.user && user - stretch.user < stretch.bytes;
        self.0.iter().find(within).map(|stretch| stretch.guest + (user - stretch.user))
    }
}
