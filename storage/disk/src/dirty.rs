//! Which pages of the guest's memory were written, for QEMU while it moves the guest to another host (VHOST_F_LOG_ALL).
//!
//! Whoever writes through a slice of [`Memory`](crate::memory::Memory) marks it with that; whoever writes past it, by a system call, marks
//! the slice itself. Invariant: a page is marked after it was written, so QEMU, which takes a mark away and then copies the page, has
//! the last write of each.

use std::fmt;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst, fence};
use std::sync::{Arc, RwLock};

use seawall_media::locks::{read, write};
use vm_memory::bitmap::{Bitmap, BitmapSlice, NewBitmap, WithBitmapSlice};
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

/// Bytes of guest memory for which there is one bit (VHOST_LOG_PAGE).
const PAGE: u64 = 4096;

/// QEMU's bits, as long as it wants them.
#[derive(Default)]
pub struct Pages {
    is_wanted: AtomicBool,
    /// A bit for each page from the guest's address 0 on.
    bits: RwLock<Option<MmapRegion<()>>>,
}

impl Pages {
    /// The bits are in this file from now on, which QEMU shares.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn keep_in(&self, file: File, at: u64, bytes: u64) -> std::io::Result<()> {
        let bytes = usize::try_from(bytes).map_err(std::io::Error::other)?;
        let mapped = MmapRegion::from_file(FileOffset::new(file, at), bytes);
        *write(&self.bits) = Some(mapped.map_err(std::io::Error::other)?);
        Ok(())
    }

    /// Pages are marked from now on, or no more.
    pub fn want(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, SeqCst);
    }

    /// True while QEMU moves the guest.
    pub fn are_wanted(&self) -> bool {
        self.is_wanted.load(SeqCst)
    }

    fn mark(&self, at: u64, len: usize) {
        // The write comes first: if marks are wanted only after it, the page is copied later still.
        fence(SeqCst);
        if len == 0 || !self.are_wanted() {
            return;
        }
        let bits = read(&self.bits);
        let Some(bits) = bits.as_ref() else { return };
        for page in at / PAGE..=(at + len as u64 - 1) / PAGE {
            // QEMU has a bit for all of the guest's memory.
            let byte =
                usize::try_from(page / 8).ok().and_then(|byte| bits.get_atomic_ref::<AtomicU8>(byte).ok());
            if let Some(byte) = byte {
                byte.fetch_or(1 << (page % 8), SeqCst);
            }
        }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("is_wanted", &self.is_wanted).finish_non_exhaustive()
    }
}

/// The marks of a stretch of memory.
#[derive(Clone, Debug, Default)]
pub struct Dirty {
    pages: Arc<Pages>,
    /// The guest's address of its first byte.
    from: u64,
}

/// Those of a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'p> {
    pages: &'p Pages,
    from: u64,
}

impl Dirty {
    /// Of memory that begins at this address of the guest's.
    pub fn new(pages: &Arc<Pages>, from: u64) -> Self {
        Self { pages: Arc::clone(pages), from }
    }
}

/// Of memory that nobody moves.
impl NewBitmap for Dirty {
    fn with_len(_len: usize) -> Self {
        Self::default()
    }
}

impl<'p> WithBitmapSlice<'p> for Dirty {
    type S = Marks<'p>;
}

impl Bitmap for Dirty {
    fn mark_dirty(&self, offset: usize, len: usize) {
        self.pages.mark(self.from + offset as u64, len);
    }

    /// Only QEMU reads them.
    fn dirty_at(&self, _offset: usize) -> bool {
        false
    }

    fn slice_at(&self, offset: usize) -> Marks<'_> {
        Marks { pages: &self.pages, from: self.from + offset as u64 }
    }
}

impl WithBitmapSlice<'_> for Marks<'_> {
    type S = Self;
}

impl BitmapSlice for Marks<'_> {}

impl Bitmap for Marks<'_> {
    fn mark_dirty(&self, offset: usize, len: usize) {
        self.pages.mark(self.from + offset as u64, len);
    }

    fn dirty_at(&self, _offset: usize) -> bool {
        false
    }

    fn slice_at(&self, offset: usize) -> Self {
        Self { from: self.from + offset as u64, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use vm_memory::{Bytes, GuestAddress, GuestMemory, Permissions};

    use crate::memory::{Memory, mapped};

    fn marked(file: &File) -> Vec<u64> {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0).expect("the bits");
        let bits = u64::from_le_bytes(bytes);
        (0..64).filter(|page| bits >> page & 1 == 1).collect()
    }

    #[test]
    fn what_is_written_is_marked_by_the_guests_addresses_and_only_while_that_is_wanted() {
        let (ram, bits) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
        ram.set_len(16 * PAGE).expect("sized");
        bits.set_len(PAGE).expect("sized");
        let pages = Arc::new(Pages::default());
        let region = mapped(ram, 0, 16 * PAGE as usize, 8 * PAGE, &pages).expect("mapped");
        let memory = Memory::from_arc_regions(vec![Arc::new(region)]).expect("memory");
        pages.keep_in(bits.try_clone().expect("the same"), 0, PAGE).expect("kept");
        memory.write_obj(1_u8, GuestAddress(8 * PAGE)).expect("written");
        assert_eq!(marked(&bits), [0_u64; 0]);
        pages.want(true);
        memory.write_obj(1_u8, GuestAddress(9 * PAGE)).expect("written");
        memory.write_slice(&[1; 8], GuestAddress(12 * PAGE - 4)).expect("written");
        let slices = memory.get_slices(GuestAddress(14 * PAGE), PAGE as usize, Permissions::ReadWrite);
        for slice in slices.expect("there") {
            let slice = slice.expect("there");
            slice.offset(8).expect("there").copy_from(&[1_u8; 2]);
            slice.bitmap().mark_dirty(0, 0);
        }
        assert_eq!(marked(&bits), [9, 11, 12, 14]);
        pages.want(false);
        memory.write_obj(1_u8, GuestAddress(16 * PAGE)).expect("written");
        assert_eq!(marked(&bits), [9, 11, 12, 14]);
    }
}
