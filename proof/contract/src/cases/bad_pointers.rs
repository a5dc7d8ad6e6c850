//! Pointers that cannot be read or written: the kernel's answer (EFAULT, as a rule), never a crash. A call with such
//! a pointer beside good ones does to the file what it does without Seawall.

use crate::cases::tools::half_mapped;
use crate::context::{Context, INITIAL_LENGTH};
use libc::{AT_FDCWD, O_CREAT, O_DIRECT, O_RDONLY, O_RDWR, O_SYNC, O_TRUNC, c_char, c_int, c_void, iovec};
use std::ptr::null_mut;

const PAGE: usize = 4096;

/// A page of `a`, and what was done to it afterwards.
fn page(gone: impl FnOnce(*mut c_void)) -> *mut c_char {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: fresh memory of our own.
    let at = unsafe { libc::mmap(null_mut(), PAGE, prot, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: as above. The last byte ends the string.
    unsafe { at.cast::<u8>().write_bytes(b'a', PAGE - 1) };
    // What has been read and written once may be believed to stay so.
    // SAFETY: plain calls on our own page.
    unsafe {
        libc::unlink(at.cast());
        libc::write(-1, at, PAGE);
    }
    gone(at);
    at.cast()
}

/// Memory that has never been there, that is gone, that is closed.
fn bad(cx: &Context, each: impl Fn(*mut c_char)) {
    let unmapped = page(|at| {
        // SAFETY: nobody uses the page any more.
        unsafe { libc::munmap(at, PAGE) };
    });
    let closed = page(|at| {
        // SAFETY: as above.
        unsafe { libc::mprotect(at, PAGE, libc::PROT_NONE) };
    });
    let no_end = half_mapped().wrapping_add(PAGE - 8).cast();
    let all = [
        ("null", null_mut()),
        ("the first page", std::ptr::without_provenance_mut(1)),
        ("the last byte", usize::MAX as *mut c_char),
        ("a kernel's address", (usize::MAX / 2 + 1) as *mut c_char),
        ("unmapped", unmapped),
        ("closed", closed),
        ("runs into a hole", no_end),
    ];
    for (what, at) in all {
        cx.note(format_args!("{what}:"));
        each(at);
    }
}

fn paths_opened(cx: &Context, _: c_int) {
    bad(cx, |at| {
        for flags in [O_RDONLY, O_RDWR | O_CREAT, O_RDWR | O_TRUNC, O_RDWR | O_SYNC, O_RDWR | O_DIRECT] {
            call!(cx, Descriptor, open(at, flags, 0o644));
            call!(cx, Descriptor, openat(AT_FDCWD, at, flags, 0o644));
            call!(cx, Descriptor, syscall(libc::SYS_openat, AT_FDCWD, at, flags, 0o644));
        }
        call!(cx, Descriptor, creat(at, 0o644));
        call!(cx, Address, fopen(at, c"r+".as_ptr()));
        call_named!(cx, Descriptor, "__open_2", fn(*const c_char, c_int) -> c_int, (at, O_RDWR));
        let how = [O_TRUNC as u64 | O_RDWR as u64, 0, 0];
        call!(cx, Descriptor, syscall(libc::SYS_openat2, AT_FDCWD, at, how.as_ptr(), 24));
        call!(cx, Descriptor, syscall(libc::SYS_openat2, AT_FDCWD, cx.path("a").as_ptr(), at, 24));
    });
}

fn paths_looked_at(cx: &Context, _: c_int) {
    let good = cx.path("a");
    // SAFETY: a zeroed stat is a valid out parameter, and so is a zeroed statx.
    let (mut stat, mut statx): (libc::stat, libc::statx) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let (stat, statx) = (&raw mut stat, &raw mut statx);
    bad(cx, |at| {
        call!(cx, stat(at, stat));
        call!(cx, lstat(at, stat));
        call!(cx, fstatat(AT_FDCWD, at, stat, 0));
        call!(cx, statx(AT_FDCWD, at, 0, libc::STATX_SIZE, statx));
        call!(cx, access(at, libc::R_OK));
        call!(cx, faccessat(AT_FDCWD, at, libc::R_OK, 0));
        call!(cx, euidaccess(at, libc::R_OK));
        call!(cx, readlink(at, good.as_ptr().cast_mut(), 0));
    });
}

fn paths_changed(cx: &Context, _: c_int) {
    let good = cx.path("a");
    let (good, name) = (good.as_ptr(), c"user.a".as_ptr());
    bad(cx, |at| {
        call!(cx, chmod(at, 0o644));
        call!(cx, fchmodat(AT_FDCWD, at, 0o644, 0));
        call!(cx, chown(at, 0, 0));
        call!(cx, lchown(at, 0, 0));
        call!(cx, fchownat(AT_FDCWD, at, 0, 0, 0));
        call!(cx, truncate(at, 10));
        call!(cx, unlink(at));
        call!(cx, unlinkat(AT_FDCWD, at, 0));
        call!(cx, rmdir(at));
        call!(cx, mkdir(at, 0o755));
        call!(cx, rename(at, c"nowhere/x".as_ptr()));
        call!(cx, rename(good, at));
        call!(cx, renameat(AT_FDCWD, good, AT_FDCWD, at));
        call!(cx, renameat2(AT_FDCWD, at, AT_FDCWD, good, libc::RENAME_NOREPLACE));
        call!(cx, renameat2(AT_FDCWD, good, AT_FDCWD, at, libc::RENAME_EXCHANGE));
        call!(cx, link(at, c"nowhere/x".as_ptr()));
        call!(cx, link(good, at));
        call!(cx, linkat(AT_FDCWD, at, AT_FDCWD, good, 0));
        call!(cx, symlink(at, c"nowhere/x".as_ptr()));
        call!(cx, symlink(c"to".as_ptr(), at));
        call!(cx, symlinkat(c"to".as_ptr(), AT_FDCWD, at));
        call!(cx, setxattr(at, name, c"b".as_ptr().cast(), 1, 0));
        call!(cx, setxattr(good, at, c"b".as_ptr().cast(), 1, 0));
        call!(cx, setxattr(good, name, at.cast(), PAGE, 0));
        call!(cx, removexattr(at, name));
        call!(cx, utime(at, std::ptr::null()));
        call!(cx, utimes(at, std::ptr::null()));
    });
}

/// A path may cross from one page into the next, and be as long as the kernel allows.
fn long_paths(cx: &Context, _: c_int) {
    let path = cx.path("a");
    let path = path.as_bytes();
    for length in [1000, PAGE - 2, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE] {
        let mut memory = vec![0; 6 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE) + PAGE - 100;
        // "/" as often as it takes: the same file.
        memory[start..start + length].fill(b'/');
        memory[start + length - path.len()..start + length].copy_from_slice(path);
        cx.note(format_args!("{length} bytes:"));
        let at = memory[start..].as_ptr().cast::<c_char>();
        call!(cx, access(at, libc::R_OK));
        call!(cx, Descriptor, open(at, O_RDWR | O_TRUNC));
        call!(cx, truncate(at, INITIAL_LENGTH as i64));
    }
}

fn buffers(cx: &Context, fd: c_int) {
    bad(cx, |at| {
        call!(cx, pwrite(fd, at.cast(), 2 * PAGE, 0));
        call!(cx, write(fd, at.cast(), 2 * PAGE));
        call!(cx, pread(fd, at.cast(), 2 * PAGE, 0));
        cx.seek(fd, 0, libc::SEEK_SET);
        let part = iovec { iov_base: at.cast(), iov_len: 2 * PAGE };
        call!(cx, pwritev(fd, &raw const part, 1, 0));
        call!(cx, pwritev2(fd, &raw const part, 1, 0, libc::RWF_DSYNC));
        call!(cx, preadv(fd, &raw const part, 1, 0));
        call!(cx, writev(fd, at.cast(), 1));
        call!(cx, pwritev(fd, at.cast(), 3, 0));
        call!(cx, preadv(fd, at.cast(), 3, 0));
        cx.fsync(fd);
    });
    cx.show(fd);
}

fn control_blocks(cx: &Context, _: c_int) {
    let mut context = 0_u64;
    // SAFETY: the kernel fills in the context.
    if unsafe { libc::syscall(libc::SYS_io_setup, 16, &raw mut context) } != 0 {
        return cx.note("no context");
    }
    bad(cx, |at| {
        call!(cx, syscall(libc::SYS_io_submit, context, 1_i64, at));
        call!(cx, syscall(libc::SYS_io_submit, context, 1_i64, [at].as_ptr()));
        call!(cx, syscall(libc::SYS_io_submit, context, -1_i64, [at].as_ptr()));
        call!(cx, syscall(libc::SYS_io_submit, 0_u64, 1_i64, at));
        call!(cx, syscall(libc::SYS_io_setup, 16, at));
    });
    // A block that the kernel cannot store its key in.
    static CONSTANT: [u64; 8] = [0; 8];
    call!(cx, syscall(libc::SYS_io_submit, context, 1_i64, [CONSTANT.as_ptr()].as_ptr()));
}

/// Whatever the kernel alone reads or fills.
fn other_structures(cx: &Context, fd: c_int) {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()) }, 0);
    bad(cx, |at| {
        call!(cx, pipe(at.cast()));
        call!(cx, pipe2(at.cast(), 0));
        call!(cx, socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, at.cast()));
        call!(cx, recvmsg(ends[0], at.cast(), libc::MSG_DONTWAIT));
        call!(cx, recvmmsg(ends[0], at.cast(), 1, libc::MSG_DONTWAIT, null_mut()));
        call!(cx, fcntl(fd, libc::F_SETLK, at));
        call!(cx, fcntl(fd, libc::F_GETLK, at));
        call!(cx, Descriptor, memfd_create(at, 0));
        call!(cx, sendfile(fd, fd, at.cast(), 1));
        call!(cx, copy_file_range(fd, at.cast(), fd, null_mut(), 1, 0));
        call!(cx, Descriptor, syscall(libc::SYS_io_uring_setup, 1, at));
        call!(cx, ioctl(fd, libc::FIONREAD, at));
    });
}

family!("bad_pointers" => on_a_file [
    paths_opened, paths_looked_at, paths_changed, long_paths, buffers, control_blocks, other_structures,
]);
