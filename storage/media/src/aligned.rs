//! Mappings that huge pages fit into: the address is a multiple of [`HUGE_PAGE`].

use core::ffi::c_void;
use core::ptr::null_mut;

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// What one entry of the second level of a page table maps: 2 MiB on x86-64, and on aarch64 with 4 KiB pages.
pub const HUGE_PAGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// Maps `size` bytes of `fd` from its start, at an aligned address where that can matter.
pub fn map(size: usize, prot: ProtFlags, flags: MapFlags, fd: impl AsFd) -> Result<*mut c_void, Errno> {
    if size < HUGE_PAGE {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        return unsafe { mmap(null_mut(), size, prot, flags, fd, 0) };
    }
    let room = size + HUGE_PAGE;
    // SAFETY: as above; nobody can look into it.
    let start = unsafe { mmap_anonymous(null_mut(), room, ProtFlags::empty(), MapFlags::PRIVATE) }?;
    let before = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let at = start.wrapping_byte_add(before);
    // SAFETY: takes the place of a part of the room, which is ours and which nobody has a pointer into.
    let mapped = unsafe { mmap(at, size, prot, flags | MapFlags::FIXED, fd, 0) };
    // The last page belongs to the mapping as a whole.
    let end = if mapped.is_ok() { before + size.next_multiple_of(PAGE) } else { before };
    // SAFETY: what is left of the room on both sides. That it stays would cost address space, no more.
    let _ = unsafe { (munmap(start, before), munmap(start.wrapping_byte_add(end), room - end)) };
    mapped
}
