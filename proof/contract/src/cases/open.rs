//! open, openat, creat and their aliases; what a descriptor's flags allow; reused numbers.

use crate::context::{Context, c_string};
use libc::{AT_FDCWD, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY};
use std::ffi::{c_char, c_int, c_uint, c_void};

fn use_and_close(cx: &Context, fd: i64, fill: u8, page: i64) {
    let fd = fd as c_int;
    cx.pwrite(fd, fill, 512, page * 1024);
    cx.fsync(fd);
    cx.close(fd);
}

fn aliases(cx: &Context) {
    cx.file("a");
    let path = cx.path("a");
    let path = path.as_ptr();
    use_and_close(cx, call!(cx, Descriptor, open(path, O_RDWR)), b'1', 0);
    use_and_close(cx, call!(cx, Descriptor, open64(path, O_RDWR)), b'2', 1);
    use_and_close(cx, call!(cx, Descriptor, openat(AT_FDCWD, path, O_WRONLY)), b'3', 2);
    use_and_close(cx, call!(cx, Descriptor, openat64(AT_FDCWD, path, O_RDWR)), b'4', 3);
    let fd =
        call_named!(cx, Descriptor, "__open", fn(*const c_char, c_int, c_uint) -> c_int, (path, O_RDWR, 0));
    use_and_close(cx, fd, b'5', 4);
    let fd =
        call_named!(cx, Descriptor, "__open64", fn(*const c_char, c_int, c_uint) -> c_int, (path, O_RDWR, 0));
    use_and_close(cx, fd, b'6', 5);
}

fn fortified(cx: &Context) {
    cx.file("a");
    let path = cx.path("a");
    let path = path.as_ptr();
    let fd = call_named!(cx, Descriptor, "__open_2", fn(*const c_char, c_int) -> c_int, (path, O_RDWR));
    use_and_close(cx, fd, b'1', 0);
    let fd = call_named!(cx, Descriptor, "__open64_2", fn(*const c_char, c_int) -> c_int, (path, O_RDWR));
    use_and_close(cx, fd, b'2', 1);
    let fd = call_named!(
        cx,
        Descriptor,
        "__openat_2",
        fn(c_int, *const c_char, c_int) -> c_int,
        (AT_FDCWD, path, O_RDWR)
    );
    use_and_close(cx, fd, b'3', 2);
    let fd = call_named!(
        cx,
        Descriptor,
        "__openat64_2",
        fn(c_int, *const c_char, c_int) -> c_int,
        (AT_FDCWD, path, O_RDWR)
    );
    use_and_close(cx, fd, b'4', 3);
}

fn creat_truncates(cx: &Context, other: c_int) {
    let path = cx.path("a");
    for (fill, fd) in [
        (b'1', call!(cx, Descriptor, creat(path.as_ptr(), 0o600))),
        (b'2', call!(cx, Descriptor, creat64(path.as_ptr(), 0o600))),
    ] {
        cx.show(other);
        use_and_close(cx, fd, fill, 1);
    }
    cx.show(other);
}

fn relative_paths(cx: &Context) {
    cx.file("a");
    let directory = cx.directory();
    let name = c_string(cx.name("a"));
    let at = call!(cx, Descriptor, open(directory.as_ptr(), O_RDONLY | O_DIRECTORY)) as c_int;
    use_and_close(cx, call!(cx, Descriptor, openat(at, name.as_ptr(), O_RDWR)), b'1', 0);
    call!(cx, chdir(directory.as_ptr()));
    use_and_close(cx, call!(cx, Descriptor, open(name.as_ptr(), O_RDWR)), b'2', 1);
    call!(cx, Descriptor, openat(-1, name.as_ptr(), O_RDWR));
    call!(cx, Descriptor, openat(99_999, name.as_ptr(), O_RDWR));
}

fn errors(cx: &Context) {
    cx.file("a");
    let (path, missing) = (cx.path("a"), cx.path("missing"));
    cx.open(&path, O_RDWR | O_CREAT | O_EXCL);
    cx.open(&path, O_RDONLY | O_DIRECTORY);
    cx.open(&missing, O_RDWR);
    cx.open(&cx.directory(), O_RDWR);
    cx.open(c"", O_RDWR);
    call!(cx, Descriptor, open(std::ptr::dangling::<c_char>(), O_RDWR));
    let below = [path.as_bytes(), b"/below"].concat();
    cx.open(&c_string(below), O_RDWR | O_CREAT);
    let long = c_string(vec![b'x'; 5000]);
    cx.open(&long, O_RDWR | O_CREAT);
}

fn through_symlink(cx: &Context, _: c_int) {
    let link = cx.path("link");
    call!(cx, symlink(cx.path("a").as_ptr(), link.as_ptr()));
    cx.open(&link, O_RDWR | O_NOFOLLOW);
    let through = cx.open(&link, O_RDWR);
    use_and_close(cx, through.into(), b's', 1);
}

fn path_descriptor(cx: &Context) {
    cx.file("a");
    let fd = cx.open(&cx.path("a"), O_PATH);
    cx.pwrite(fd, b'p', 10, 0);
    cx.write(fd, b'p', 10);
    cx.fsync(fd);
    call!(cx, ftruncate(fd, 0));
}

fn read_only_descriptor(cx: &Context) {
    let writer = cx.file("a");
    let fd = cx.open(&cx.path("a"), O_RDONLY);
    cx.pwrite(fd, b'r', 10, 0);
    cx.write(fd, b'r', 10);
    call!(cx, ftruncate(fd, 0));
    cx.pwrite(writer, b'w', 10, 0);
    cx.sync_show(fd);
}

fn write_only_descriptor(cx: &Context) {
    cx.file("a");
    let fd = cx.open(&cx.path("a"), O_WRONLY);
    let mut byte = 0_u8;
    call!(cx, pread(fd, (&raw mut byte).cast::<c_void>(), 1, 0));
    cx.pwrite(fd, b'w', 10, 0);
    cx.fsync(fd);
}

fn truncating_open(cx: &Context) {
    let other = cx.file("a");
    let fd = cx.open(&cx.path("a"), O_RDWR | O_TRUNC);
    cx.show(other);
    cx.pwrite(fd, b't', 100, 1000);
    cx.fsync(fd);
    cx.pwrite(other, b'o', 100, 0);
    cx.fdatasync(other);
    cx.open(&cx.path("a"), O_RDONLY | O_TRUNC);
    cx.show(other);
    cx.write_sync_show(fd);
}

fn create_again_keeps_content(cx: &Context) {
    cx.file("a");
    let fd = cx.open(&cx.path("a"), O_RDWR | O_CREAT);
    cx.write_sync_show(fd);
}

fn through_proc(cx: &Context) {
    let fd = cx.file("a");
    let path = c_string(format!("/proc/self/fd/{fd}"));
    let again = cx.open(&path, O_RDWR);
    cx.write_sync_show(again);
    let path = c_string(format!("/dev/fd/{fd}"));
    let again = cx.open(&path, O_RDWR | O_TRUNC);
    cx.write_sync_show(again);
}

fn unnamed_then_linked(cx: &Context) {
    let fd = call!(cx, Descriptor, open(cx.directory().as_ptr(), libc::O_TMPFILE | O_RDWR, 0o600)) as c_int;
    cx.pwrite(fd, b'u', 5000, 0);
    cx.fsync(fd);
    let from = c_string(format!("/proc/self/fd/{fd}"));
    let to = cx.path("linked");
    call!(cx, linkat(AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW));
    cx.write_sync_show(fd);
    cx.write_sync_show(fd);
}

fn temporary_names(cx: &Context) {
    for (flags, which) in [(0, 0), (libc::O_CLOEXEC, 1), (0, 2), (libc::O_CLOEXEC, 3)] {
        let mut template = cx.path("XXXXXX").into_bytes_with_nul();
        let name = template.as_mut_ptr().cast::<c_char>();
        let suffix = if cx.variant() == crate::context::Variant::Bypass { 6 } else { 4 };
        let fd = match which {
            0 => call!(cx, Descriptor, mkstemps(name, suffix)),
            1 => call!(cx, Descriptor, mkostemps(name, suffix, flags)),
            2 => call_named!(cx, Descriptor, "mkstemps64", fn(*mut c_char, c_int) -> c_int, (name, suffix)),
            _ => call_named!(
                cx,
                Descriptor,
                "mkostemps64",
                fn(*mut c_char, c_int, c_int) -> c_int,
                (name, suffix, flags)
            ),
        } as c_int;
        cx.pwrite(fd, b't', 3000, 0);
        cx.fsync(fd);
        cx.write_sync_show(fd);
        call!(cx, unlink(name));
        cx.write_sync_show(fd);
    }
}

/// The number of a closed managed descriptor comes back as another file's, and the reverse.
fn reused_numbers(cx: &Context) {
    cx.file("a");
    let (path, plain) = (cx.path("a"), cx.plain_path("b"));
    for round in 0..3_u8 {
        let managed = cx.open(&path, O_RDWR);
        cx.pwrite(managed, b'0' + round, 100, 0);
        cx.fsync(managed);
        cx.close(managed);
        let other = cx.open(&plain, O_RDWR | O_CREAT);
        cx.note(format_args!("same number: {}", managed == other));
        cx.write_sync_show(other);
        cx.close(other);
        let mut pair = [-1; 2];
        call!(cx, socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()));
        cx.note(format_args!("same number: {}", managed == pair[0]));
        cx.write(pair[0], b's', 100);
        cx.pwrite(pair[0], b's', 100, 0);
        cx.fsync(pair[0]);
        cx.close(pair[0]);
        cx.close(pair[1]);
    }
    cx.show_path(&path);
}

/// POSIX: the lowest free number. Checked from a known hole, because a shim may own others.
fn lowest_number(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, dup2(fd, 20));
    cx.close(0);
    let opened = cx.open(&cx.path("a"), O_RDWR);
    cx.note(format_args!("number {opened}"));
    cx.write_sync_show(opened);
}

fn by_handle(cx: &Context) {
    cx.file("a");
    // The kernel's struct file_handle with room for 128 bytes of handle.
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0;
    let at = handle.as_mut_ptr().cast();
    call!(cx, name_to_handle_at(AT_FDCWD, cx.path("a").as_ptr(), at, &raw mut mount, 0));
    let directory = cx.open(&cx.directory(), O_RDONLY);
    let fd = call!(cx, Descriptor, open_by_handle_at(directory, at, O_RDWR)) as c_int;
    cx.write_sync_show(fd);
    cx.fsync(fd);
}

family!("open" => on_a_file [
    creat_truncates, through_symlink,
], others [
    aliases, fortified, relative_paths, errors, path_descriptor, read_only_descriptor,
    write_only_descriptor, truncating_open, create_again_keeps_content, through_proc, unnamed_then_linked,
    temporary_names, reused_numbers, lowest_number, by_handle,
]);
