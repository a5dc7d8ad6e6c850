//! What calls say of files besides their content: times, file capabilities, listings of a directory that changes
//! meanwhile, the file system's own numbers; and the last of rename's flags.

use crate::context::{Context, c_string};
use libc::{AT_FDCWD, O_CREAT, O_RDWR, timespec};
use std::ffi::{CStr, CString, c_int};

/// cap_net_raw, effective: what `setcap cap_net_raw+ep` writes.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const NOBODY: libc::uid_t = 65534;

fn status(path: &CStr) -> libc::stat {
    // SAFETY: a zeroed stat is a valid out parameter; the path is NUL-terminated.
    unsafe {
        let mut stat = std::mem::zeroed();
        libc::lstat(path.as_ptr(), &mut stat);
        stat
    }
}

fn times(cx: &Context) {
    let (path, fd) = (cx.path("a"), cx.file("a"));
    let show = || {
        let s = status(&path);
        cx.note(format_args!("{}.{} {}.{}", s.st_atime, s.st_atime_nsec, s.st_mtime, s.st_mtime_nsec));
    };
    let set = |atime: (i64, i64), mtime: (i64, i64)| {
        let time = |(tv_sec, tv_nsec)| timespec { tv_sec, tv_nsec };
        call!(cx, utimensat(AT_FDCWD, path.as_ptr(), [time(atime), time(mtime)].as_ptr(), 0));
    };
    for (atime, mtime) in
        [((1, 2), (3, 999_999_999)), ((-5, 7), (1 << 33, 1)), ((9, libc::UTIME_OMIT), (8, 0))]
    {
        set(atime, mtime);
        show();
    }
    let moved = |what: &str| {
        let s = status(&path);
        // Not the time of access: whoever looks what kind of file this is reads it.
        cx.note(format_args!("{what}: mtime moved {}", s.st_mtime != 8));
        set((9, libc::UTIME_OMIT), (8, 0));
    };
    cx.pwrite(fd, b'w', 10, 0);
    cx.fsync(fd);
    moved("write");
    call!(cx, ftruncate(fd, 50));
    moved("truncate");
    call!(cx, ftruncate(fd, 50));
    moved("truncate to the same size");
    call!(cx, fchmod(fd, 0o640));
    moved("chmod");
    call!(cx, futimens(fd, std::ptr::null()));
    moved("now");
}

/// A write takes a file's capabilities away, whoever writes; so do truncate and chown.
fn capabilities_are_taken_away(cx: &Context) {
    for (tag, how) in ["write", "write by another", "truncate", "chown", "chmod"].into_iter().enumerate() {
        let path = cx.path(&tag.to_string());
        let fd = cx.file(&tag.to_string());
        cx.fsync(fd);
        call!(cx, fchmod(fd, 0o777));
        let name = c"security.capability";
        call!(cx, setxattr(path.as_ptr(), name.as_ptr(), CAPABILITY.as_ptr().cast(), CAPABILITY.len(), 0));
        cx.note(how);
        match how {
            "write" => drop(cx.pwrite(fd, b'w', 10, 0)),
            "truncate" => drop(call!(cx, ftruncate(fd, 10))),
            "chown" => drop(call!(cx, fchown(fd, 1, 1))),
            "chmod" => drop(call!(cx, fchmod(fd, 0o700))),
            _ => {
                cx.in_child(|| {
                    call!(cx, setuid(NOBODY));
                    cx.pwrite(fd, b'w', 10, 0);
                    0
                });
            }
        }
        let mut room = [0_u8; 64];
        call!(cx, getxattr(path.as_ptr(), name.as_ptr(), room.as_mut_ptr().cast(), room.len()));
    }
}

/// RENAME_WHITEOUT leaves a device 0:0 at the old name, for overlayfs.
fn whiteout(cx: &Context) {
    let (from, to) = (cx.plain_path("from"), cx.plain_path("to"));
    let fd = call!(cx, Descriptor, open(from.as_ptr(), O_RDWR | O_CREAT, 0o644)) as c_int;
    call!(cx, renameat2(AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), libc::RENAME_WHITEOUT));
    for path in [&from, &to] {
        let s = status(path);
        cx.note(format_args!("{:o} {:x}", s.st_mode, s.st_rdev));
    }
    cx.close(fd);
    call!(cx, unlink(from.as_ptr()));
}

fn entry(dir: &CStr, i: usize) -> CString {
    c_string([dir.to_bytes(), format!("/entry-{i:04}").as_bytes()].concat())
}

/// What was there from the beginning to the end is listed once, whatever comes and goes.
fn listing_of_a_changing_directory(cx: &Context) {
    const ENTRIES: usize = 600;
    let dir = cx.plain_path("d");
    call!(cx, mkdir(dir.as_ptr(), 0o755));
    // SAFETY: paths are NUL-terminated; the stream is ours and closed once.
    let mut seen: Vec<String> = unsafe {
        for i in 0..ENTRIES {
            libc::close(libc::open(entry(&dir, i).as_ptr(), O_RDWR | O_CREAT, 0o644));
        }
        let stream = libc::opendir(dir.as_ptr());
        let mut names = Vec::new();
        while let Some(found) = libc::readdir(stream).as_ref() {
            names.push(CStr::from_ptr(found.d_name.as_ptr()).to_string_lossy().into_owned());
            if names.len() == ENTRIES / 2 {
                for i in (0..ENTRIES).step_by(3) {
                    libc::unlink(entry(&dir, i).as_ptr());
                }
            }
        }
        libc::closedir(stream);
        names
    };
    let all = seen.len();
    seen.sort();
    seen.dedup();
    cx.note(format_args!("twice: {}", all - seen.len()));
    let stayed = (0..ENTRIES).filter(|i| i % 3 != 0).map(|i| format!("entry-{i:04}"));
    cx.note(format_args!("missed: {}", stayed.filter(|name| !seen.contains(name)).count()));
    call!(cx, rmdir(dir.as_ptr()));
    for i in 0..ENTRIES {
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::unlink(entry(&dir, i).as_ptr()) };
    }
    call!(cx, rmdir(dir.as_ptr()));
}

fn the_file_system(cx: &Context) {
    let fd = cx.file("a");
    // SAFETY: a zeroed statvfs is a valid out parameter; the descriptor is ours.
    let told = unsafe {
        let mut told: libc::statvfs = std::mem::zeroed();
        libc::fstatvfs(fd, &mut told);
        told
    };
    cx.note(format_args!("{} {} {} {}", told.f_bsize, told.f_frsize, told.f_blocks, told.f_namemax));
    let s = status(&cx.path("a"));
    cx.note(format_args!("block size {}, blocks {}", s.st_blksize, s.st_blocks));
}

family!("metadata" => [
    times, capabilities_are_taken_away, whiteout, listing_of_a_changing_directory, the_file_system,
]);
