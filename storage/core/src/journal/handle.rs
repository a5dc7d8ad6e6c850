//! One pool's journal, as one process sees it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use seawall_media::Region;
use seawall_wire::desk::Desk;

use super::alone::is_alone;
use super::room::{ring, used};
use super::way::Way;
use crate::format::Layout;

/// The error of an image that was given up: nothing will ever be written from it.
pub const GIVEN_UP: u32 = Errno::STALE.raw_os_error() as u32;

/// One pool's journal, as one process sees it.
pub struct Journal {
    pub(super) way: Way,
    desk_at: usize,
    /// The client slot of this process, plus one; 0: none yet.
    client: AtomicU32,
}

impl Journal {
    /// The journal that is reached in this way, with its desk at `desk_at` in the image's memory.
    pub fn new(way: Way, desk_at: usize) -> Self {
        Self { way, desk_at, client: AtomicU32::new(0) }
    }

    /// From now on this process is that client: when it is found dead, what it holds is freed.
    pub fn sits_for(&self, client: u32) {
        self.client.store(client + 1, Relaxed);
    }

    /// The desk that its writers share. `image` is the memory that the desk lies in.
    pub fn desk<'a>(&self, image: &'a Region) -> Desk<'a> {
        Desk::new(image, self.desk_at)
    }

    /// True if its desk lies in this image, which is of this layout.
    pub fn fits(&self, image: &Region, layout: Layout) -> bool {
        self.desk_at.checked_add(Desk::bytes_for(layout.segments)).is_some_and(|end| end <= image.len())
    }

    /// True while less of it is in use than cleaning leaves behind in the worst case, or while enough keepers keep it:
    /// files that left may return.
    pub fn is_roomy(&self, image: &Region) -> bool {
        let desk = self.desk(image);
        match self.has_no_ring(image) {
            true => !is_alone(desk),
            false => used(desk) < ring(desk).bytes() / 8 * 3,
        }
    }

    /// True for a log of which other hosts keep copies: they have its image, and nothing that could fill up.
    pub fn has_no_ring(&self, image: &Region) -> bool {
        self.desk(image).size().load(Relaxed) == 0
    }

    /// Where its desk lies in the image's memory: behind the pool.
    pub fn desk_at(&self) -> usize {
        self.desk_at
    }

    /// The way to its device or keepers.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// The client slot of this process, plus one; 0: none yet.
    pub(super) fn client(&self) -> u32 {
        self.client.load(Relaxed)
    }
}
