//! rename, renameat2, link, symlink: the name changes, the file and its descriptors do not.

use crate::context::{Context, Variant, c_string};
use libc::{AT_FDCWD, O_CREAT, O_RDWR};
use std::ffi::c_int;

/// A write and a sync through the descriptor, twice: the second pair may be absorbed again.
fn write_twice(cx: &Context, fd: i32) {
    cx.pwrite(fd, b'1', 100, 0);
    cx.fsync(fd);
    cx.pwrite(fd, b'2', 100, 100);
    cx.fsync(fd);
}

fn rename(cx: &Context, from: &str, to: &str, flags: u32) {
    let (from, to) = (cx.path(from), cx.path(to));
    call!(cx, renameat2(AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), flags));
}

fn rename_open_file(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 1000, 0);
    call!(cx, rename(cx.path("a").as_ptr(), cx.path("b").as_ptr()));
    write_twice(cx, fd);
    cx.show_path(&cx.path("b"));
    cx.open(&cx.path("a"), O_RDWR);
    let fresh = cx.open(&cx.path("a"), O_RDWR | O_CREAT);
    write_twice(cx, fresh);
    cx.show(fd);
}

fn rename_over_managed_file(cx: &Context) {
    let (old, new) = (cx.file("old"), cx.file("new"));
    cx.pwrite(old, b'o', 500, 0);
    cx.pwrite(new, b'n', 600, 0);
    cx.fsync(new);
    call!(cx, rename(cx.path("new").as_ptr(), cx.path("old").as_ptr()));
    write_twice(cx, old);
    write_twice(cx, new);
    cx.show(old);
    cx.show_path(&cx.path("old"));
}

fn rename_at(cx: &Context) {
    let fd = cx.file("a");
    let directory = cx.open(&cx.directory(), libc::O_RDONLY);
    let from = c_string(cx.name("a"));
    let to = c_string(cx.name("b"));
    call!(cx, renameat(directory, from.as_ptr(), directory, to.as_ptr()));
    write_twice(cx, fd);
    call!(cx, renameat(-1, to.as_ptr(), -1, from.as_ptr()));
    cx.show_path(&cx.path("b"));
}

fn no_replace(cx: &Context) {
    let (a, b) = (cx.file("a"), cx.file("b"));
    rename(cx, "a", "b", libc::RENAME_NOREPLACE);
    write_twice(cx, a);
    rename(cx, "a", "c", libc::RENAME_NOREPLACE);
    write_twice(cx, a);
    write_twice(cx, b);
    cx.show_path(&cx.path("c"));
}

fn exchange(cx: &Context) {
    let (a, b) = (cx.file("a"), cx.file("b"));
    cx.pwrite(a, b'a', 5000, 0);
    cx.pwrite(b, b'b', 6000, 0);
    cx.fsync(b);
    rename(cx, "a", "b", libc::RENAME_EXCHANGE);
    write_twice(cx, a);
    cx.pwrite(b, b'!', 10, 0);
    cx.fsync(b);
    cx.show_path(&cx.path("a"));
    cx.show_path(&cx.path("b"));
    rename(cx, "a", "missing", libc::RENAME_EXCHANGE);
    rename(cx, "a", "b", 0x40);
}

fn out_of_the_managed_names_and_back(cx: &Context) {
    let fd = cx.file("a");
    let plain = cx.plain_path("p");
    call!(cx, rename(cx.path("a").as_ptr(), plain.as_ptr()));
    write_twice(cx, fd);
    let again = cx.open(&plain, O_RDWR);
    cx.write_sync_show(again);
    call!(cx, rename(plain.as_ptr(), cx.path("b").as_ptr()));
    write_twice(cx, again);
    let last = cx.open(&cx.path("b"), O_RDWR);
    cx.write_sync_show(last);
    cx.write_sync_show(last);
}

fn into_the_managed_names(cx: &Context) {
    let plain = cx.plain_path("p");
    let fd = cx.open(&plain, O_RDWR | O_CREAT);
    write_twice(cx, fd);
    call!(cx, rename(plain.as_ptr(), cx.path("a").as_ptr()));
    write_twice(cx, fd);
    let again = cx.open(&cx.path("a"), O_RDWR);
    write_twice(cx, again);
    cx.show(again);
}

fn into_another_directory_and_back(cx: &Context) {
    let fd = cx.file("a");
    let sub = cx.plain_path("sub");
    call!(cx, mkdir(sub.as_ptr(), 0o755));
    let inside = c_string([sub.as_bytes(), b"/inside-wal"].concat());
    call!(cx, rename(cx.path("a").as_ptr(), inside.as_ptr()));
    write_twice(cx, fd);
    let again = cx.open(&inside, O_RDWR);
    write_twice(cx, again);
    call!(cx, rename(inside.as_ptr(), cx.path("back").as_ptr()));
    write_twice(cx, fd);
    cx.show_path(&cx.path("back"));
}

fn errors(cx: &Context, _: c_int) {
    call!(cx, rename(cx.path("missing").as_ptr(), cx.path("a").as_ptr()));
    call!(cx, rename(cx.path("a").as_ptr(), cx.directory().as_ptr()));
    call!(cx, rename(cx.path("a").as_ptr(), cx.path("a").as_ptr()));
    call!(cx, rename(std::ptr::null(), cx.path("a").as_ptr()));
    call!(cx, rename(cx.path("a").as_ptr(), c"/dev/null/x".as_ptr()));
    call!(cx, link(cx.path("a").as_ptr(), cx.path("a").as_ptr()));
    call!(cx, link(cx.path("missing").as_ptr(), cx.path("b").as_ptr()));
}

fn hard_link(cx: &Context, fd: c_int) {
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, link(cx.path("a").as_ptr(), cx.path("b").as_ptr()));
    write_twice(cx, fd);
    let second = cx.open(&cx.path("b"), O_RDWR);
    cx.pwrite(second, b's', 100, 300);
    cx.fsync(second);
    cx.show(fd);
    call!(cx, unlink(cx.path("a").as_ptr()));
    write_twice(cx, second);
    cx.show(fd);
}

/// A second name that no policy covers: it is still the same file.
fn hard_link_with_a_plain_name(cx: &Context, fd: c_int) {
    let plain = cx.plain_path("p");
    call!(cx, link(cx.path("a").as_ptr(), plain.as_ptr()));
    let other = cx.open(&plain, O_RDWR);
    for round in 0..4 {
        cx.pwrite(if round % 2 == 0 { fd } else { other }, b'0' + round, 50, i64::from(round) * 30);
        cx.fsync(if round < 2 { fd } else { other });
    }
    cx.show(fd);
}

fn link_at(cx: &Context, fd: c_int) {
    let by_descriptor = c_string(format!("/proc/self/fd/{fd}"));
    call!(cx, linkat(AT_FDCWD, cx.path("a").as_ptr(), AT_FDCWD, cx.path("b").as_ptr(), 0));
    call!(
        cx,
        linkat(AT_FDCWD, by_descriptor.as_ptr(), AT_FDCWD, cx.path("c").as_ptr(), libc::AT_SYMLINK_FOLLOW)
    );
    call!(cx, linkat(fd, c"".as_ptr(), AT_FDCWD, cx.path("d").as_ptr(), libc::AT_EMPTY_PATH));
    call!(cx, linkat(AT_FDCWD, cx.path("a").as_ptr(), AT_FDCWD, cx.path("e").as_ptr(), 0x4000));
    write_twice(cx, fd);
    cx.show(fd);
}

/// How databases replace a file: write a new one, sync it, rename it over, sync the directory.
fn atomic_replacement(cx: &Context) {
    cx.file("a");
    let directory = cx.open(&cx.directory(), libc::O_RDONLY);
    for fill in [b'1', b'2', b'3'] {
        let fd = cx.open(&cx.path("temporary"), O_RDWR | O_CREAT | libc::O_EXCL);
        cx.write(fd, fill, 3000);
        cx.fsync(fd);
        cx.close(fd);
        call!(cx, rename(cx.path("temporary").as_ptr(), cx.path("a").as_ptr()));
        cx.fsync(directory);
        cx.show_path(&cx.path("a"));
    }
}

/// PostgreSQL's recycling: an old segment becomes a future one and is overwritten in place.
fn recycled_segment(cx: &Context) {
    let fd = cx.file("1");
    cx.pwrite(fd, b'x', 8192, 0);
    cx.fdatasync(fd);
    cx.close(fd);
    call!(cx, rename(cx.path("1").as_ptr(), cx.path("2").as_ptr()));
    let fd = cx.open(&cx.path("2"), O_RDWR);
    cx.fsync(fd);
    for page in 0..3 {
        cx.pwrite(fd, b'y', 4096, page * 4096);
        cx.fdatasync(fd);
    }
    cx.show(fd);
    if cx.variant() == Variant::Tracked {
        let other = cx.file("1");
        cx.write_sync_show(other);
    }
}

family!("names" => on_a_file [
    rename_open_file, errors, hard_link, hard_link_with_a_plain_name, link_at,
], others [
    rename_over_managed_file, rename_at, no_replace, exchange, out_of_the_managed_names_and_back,
    into_the_managed_names, into_another_directory_and_back, atomic_replacement, recycled_segment,
]);
