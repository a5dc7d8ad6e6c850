//! Shared mappings: stores, msync, and how they meet write and fsync.

use crate::context::{Context, open_quietly};
use crate::process;
use libc::{
    MAP_PRIVATE, MAP_SHARED, MS_ASYNC, MS_INVALIDATE, MS_SYNC, O_RDONLY, O_RDWR, PROT_READ, PROT_WRITE,
};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

const BOTH: c_int = PROT_READ | PROT_WRITE;

fn map(cx: &Context, fd: c_int, protection: c_int, flags: c_int) -> *mut u8 {
    call!(cx, Address, mmap(null_mut(), 8192, protection, flags, fd, 0)) as *mut u8
}

fn store(address: *mut u8, offset: usize, fill: u8, length: usize) {
    // SAFETY: cases store only inside what they mapped, and below the end of the file.
    unsafe { std::ptr::write_bytes(address.add(offset), fill, length) };
}

fn first_bytes(cx: &Context, address: *const u8) {
    // SAFETY: mapped, and inside the file.
    cx.note(crate::trace::summary(unsafe { std::slice::from_raw_parts(address, 4096) }));
}

fn stores_are_seen_and_synced(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    let address = map(cx, fd, BOTH, MAP_SHARED);
    store(address, 50, b's', 200);
    cx.show(fd);
    call!(cx, msync(address.cast(), 8192, MS_SYNC));
    cx.pwrite(fd, b'C', 10, 60);
    first_bytes(cx, address);
    store(address, 4096, b't', 10);
    cx.fsync(fd);
    call!(cx, munmap(address.cast(), 8192));
    cx.write_sync_show(fd);
}

fn aliases(cx: &Context, fd: c_int) {
    let address = call!(cx, Address, mmap64(null_mut(), 8192, BOTH, MAP_SHARED, fd, 0)) as *mut u8;
    store(address, 0, b's', 100);
    call!(cx, msync(address.cast(), 4096, MS_ASYNC));
    call!(cx, msync(address.cast(), 4096, MS_SYNC | MS_INVALIDATE));
}

fn read_only_then_made_writable(cx: &Context, fd: c_int) {
    let address = map(cx, fd, PROT_READ, MAP_SHARED);
    cx.pwrite(fd, b'B', 100, 0);
    cx.fsync(fd);
    first_bytes(cx, address);
    call!(cx, mprotect(address.cast(), 8192, BOTH));
    store(address, 10, b's', 100);
    call!(cx, msync(address.cast(), 8192, MS_SYNC));
    cx.write_sync_show(fd);
    call!(cx, mprotect(address.cast(), 8192, PROT_READ));
}

fn private_stores_stay_private(cx: &Context, fd: c_int) {
    let address = map(cx, fd, BOTH, MAP_PRIVATE);
    store(address, 0, b's', 100);
    call!(cx, msync(address.cast(), 8192, MS_SYNC));
}

fn descriptor_closed_mapping_lives(cx: &Context) {
    let fd = cx.file("a");
    let address = map(cx, fd, BOTH, MAP_SHARED);
    cx.close(fd);
    store(address, 0, b's', 100);
    let again = cx.open(&cx.path("a"), O_RDWR);
    cx.pwrite(again, b'B', 50, 80);
    cx.fsync(again);
    store(address, 200, b't', 100);
    call!(cx, msync(address.cast(), 8192, MS_SYNC));
    cx.show(again);
    call!(cx, munmap(address.cast(), 8192));
    cx.write_sync_show(again);
}

fn grown_by_mremap(cx: &Context, fd: c_int) {
    let address = map(cx, fd, BOTH, MAP_SHARED);
    call!(cx, ftruncate(fd, 65_536));
    let grown =
        call!(cx, Address, mremap(address.cast::<c_void>(), 8192, 65_536, libc::MREMAP_MAYMOVE)) as *mut u8;
    store(grown, 50_000, b's', 1000);
    call!(cx, msync(grown.cast(), 65_536, MS_SYNC));
    cx.pwrite(fd, b'B', 500, 50_200);
    cx.sync_show(fd);
    call!(cx, munmap(grown.cast(), 65_536));
}

fn errors(cx: &Context, fd: c_int) {
    let read_only = cx.open(&cx.path("a"), O_RDONLY);
    map(cx, read_only, BOTH, MAP_SHARED);
    let address = map(cx, read_only, PROT_READ, MAP_SHARED);
    call!(cx, mprotect(address.cast(), 8192, BOTH));
    map(cx, fd, BOTH, libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC);
    map(cx, fd, BOTH, 0);
    call!(cx, Address, mmap(null_mut(), 0, BOTH, MAP_SHARED, fd, 0));
    call!(cx, Address, mmap(null_mut(), 4096, BOTH, MAP_SHARED, fd, 100));
    call!(cx, msync(address.wrapping_add(1).cast(), 4096, MS_SYNC));
    call!(cx, msync(address.cast(), 4096, MS_SYNC | MS_ASYNC));
    call!(cx, munmap(address.cast(), 0));
}

fn validated_mapping(cx: &Context, fd: c_int) {
    let address = map(cx, fd, BOTH, libc::MAP_SHARED_VALIDATE);
    store(address, 0, b's', 100);
    cx.fsync(fd);
}

fn inherited_by_a_child(cx: &Context, fd: c_int) {
    let address = map(cx, fd, BOTH, MAP_SHARED);
    cx.in_child(|| {
        store(address, 0, b'c', 100);
        cx.fsync(fd) as c_int
    });
    first_bytes(cx, address);
    call!(cx, munmap(address.cast(), 8192));
}

/// Mapped by one process, written and synced by another.
fn mapped_elsewhere(cx: &Context, fd: c_int) {
    let mut ready = [-1; 2];
    call!(cx, pipe(ready.as_mut_ptr()));
    let child = process::fork(|| {
        let own = open_quietly(&cx.path("a"), O_RDWR);
        let address = map(cx, own, BOTH, MAP_SHARED);
        store(address, 1000, b'm', 500);
        // SAFETY: plain calls: tell the parent, then wait to be killed.
        unsafe {
            libc::write(ready[1], c"!".as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
    });
    let mut byte = 0_u8;
    call!(cx, read(ready[0], (&raw mut byte).cast(), 1));
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
    process::kill(child);
    cx.note(process::ending(child));
}

fn truncated_while_mapped(cx: &Context, fd: c_int) {
    let address = map(cx, fd, BOTH, MAP_SHARED);
    store(address, 0, b's', 8192);
    call!(cx, ftruncate(fd, 100));
    cx.sync_show(fd);
    call!(cx, ftruncate(fd, 8192));
    store(address, 5000, b't', 10);
    call!(cx, msync(address.cast(), 8192, MS_SYNC));
    cx.show(fd);
}

fn mapped_again_and_again(cx: &Context, fd: c_int) {
    for round in 0..5_u8 {
        cx.pwrite(fd, b'0' + round, 100, 0);
        let address = map(cx, fd, BOTH, MAP_SHARED);
        store(address, 50, b'a' + round, 100);
        call!(cx, munmap(address.cast(), 8192));
        cx.fsync(fd);
        cx.pwrite(fd, b'0' + round, 10, 100);
        cx.fsync(fd);
    }
    cx.show(fd);
}

family!("mapping" => on_a_file [
    stores_are_seen_and_synced, aliases, read_only_then_made_writable, private_stores_stay_private,
    grown_by_mremap, errors, validated_mapping, inherited_by_a_child, mapped_elsewhere,
    truncated_while_mapped, mapped_again_and_again,
], others [
    descriptor_closed_mapping_lives,
]);
