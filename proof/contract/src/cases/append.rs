//! O_APPEND and shared offsets with one and with several appenders.

use crate::context::{Context, contents, open_quietly};
use crate::process;
use libc::{O_APPEND, O_RDWR};
use std::ffi::{CStr, c_int};

/// Appenders, and records each of them writes.
const APPENDERS: u8 = 8;
const RECORDS: usize = 60;
const RECORD: usize = 97;

fn one_descriptor(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    cx.write(fd, b'B', 100);
    cx.seek(fd, 0, libc::SEEK_CUR);
    cx.seek(fd, 10, libc::SEEK_SET);
    cx.write(fd, b'C', 100);
    cx.sync_show(fd);
    // Linux: pwrite on an O_APPEND descriptor appends, whatever the offset.
    cx.pwrite(fd, b'D', 100, 5);
    cx.sync_show(fd);
    let parts = [libc::iovec { iov_base: c"vector".as_ptr().cast_mut().cast(), iov_len: 6 }];
    call!(cx, writev(fd, parts.as_ptr(), 1));
    call!(cx, pwritev(fd, parts.as_ptr(), 1, 3));
    cx.fdatasync(fd);
    cx.show(fd);
}

fn two_descriptors(cx: &Context) {
    let one = cx.file_with("a", O_APPEND);
    let two = cx.open(&cx.path("a"), O_RDWR | O_APPEND);
    let plain = cx.open(&cx.path("a"), O_RDWR);
    for round in 0..4_u8 {
        cx.write(one, b'1', 30);
        cx.write(two, b'2', 40);
        cx.pwrite(plain, b'p', 5, i64::from(round) * 10);
        cx.fsync(two);
    }
    cx.show(one);
    cx.show(two);
}

fn flag_toggled(cx: &Context, fd: c_int) {
    call!(cx, fcntl(fd, libc::F_SETFL, O_APPEND));
    cx.write(fd, b'B', 50);
    cx.sync_show(fd);
    call!(cx, fcntl(fd, libc::F_SETFL, 0));
    cx.seek(fd, 0, libc::SEEK_SET);
    cx.write(fd, b'C', 50);
    cx.pwrite(fd, b'D', 50, 100);
    cx.sync_show(fd);
}

fn after_truncation(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    cx.write(fd, b'B', 100);
    call!(cx, ftruncate(fd, 10));
    cx.write(fd, b'C', 100);
    cx.sync_show(fd);
    call!(cx, truncate(cx.path("a").as_ptr(), 200));
    cx.write(fd, b'D', 100);
    cx.sync_show(fd);
}

fn large_appends(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    cx.write(fd, b'B', (2 << 20) + 3);
    cx.fsync(fd);
    cx.write(fd, b'C', 1 << 20);
    cx.sync_show(fd);
}

fn append_flag_in_pwritev2(cx: &Context, fd: c_int) {
    let other = cx.open(&cx.path("a"), O_RDWR | O_APPEND);
    let part = libc::iovec { iov_base: c"rwf".as_ptr().cast_mut().cast(), iov_len: 3 };
    for _ in 0..3 {
        call!(cx, pwritev2(fd, &raw const part, 1, 0, libc::RWF_APPEND));
        cx.write(other, b'o', 4);
    }
    cx.sync_show(fd);
}

/// Each appender writes its records, each a line of one letter with a running digit.
fn append_records(fd: c_int, appender: u8, sync_every: usize) -> c_int {
    let mut failures = 0;
    for index in 0..RECORDS {
        let mut record = [b'a' + appender; RECORD];
        record[0] = b'<';
        record[1] = b'!' + index as u8;
        record[RECORD - 1] = b'>';
        // SAFETY: the record outlives the call.
        let written = unsafe { libc::write(fd, record.as_ptr().cast(), RECORD) };
        failures += c_int::from(written != RECORD as isize);
        if index % sync_every == 0 {
            // SAFETY: plain call.
            failures += unsafe { libc::fdatasync(fd) };
        }
    }
    failures
}

/// Whole records only, each appender's in its own order, none missing. Nobody promises who comes
/// first: afterwards the records are sorted, so that the file left behind is always the same.
fn check_records(cx: &Context, path: &CStr, start: usize) {
    let fd = open_quietly(path, O_RDWR);
    let mut bytes = contents(fd);
    let mut next = [0_u8; APPENDERS as usize];
    let mut torn = 0;
    for record in bytes[start..].chunks(RECORD) {
        let whole = record.len() == RECORD && record[0] == b'<' && record[RECORD - 1] == b'>';
        let owner = usize::from(record[2].wrapping_sub(b'a'));
        if !whole || owner >= next.len() || record[1] != b'!' + next[owner] {
            torn += 1;
            continue;
        }
        next[owner] += 1;
    }
    cx.note(format_args!("size {} torn or out of order {torn} per appender {next:?}", bytes.len()));
    let mut records: Vec<&[u8]> = bytes[start..].chunks(RECORD).collect();
    records.sort_by_key(|record| (record.get(2).copied(), record.get(1).copied()));
    let sorted = records.concat();
    bytes[start..].copy_from_slice(&sorted);
    call!(cx, pwrite(fd, bytes.as_ptr().cast(), bytes.len(), 0));
    cx.fsync(fd);
}

fn threads_with_own_descriptors(cx: &Context) {
    cx.file("a");
    let path = cx.path("a");
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            let path = &path;
            scope.spawn(move || append_records(open_quietly(path, O_RDWR | O_APPEND), appender, 7));
        }
    });
    check_records(cx, &path, crate::context::INITIAL_LENGTH);
}

fn threads_sharing_a_descriptor(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            scope.spawn(move || append_records(fd, appender, 11));
        }
    });
    check_records(cx, &cx.path("a"), crate::context::INITIAL_LENGTH);
}

fn fork_appenders(cx: &Context, open: impl Fn() -> c_int) {
    let children: Vec<c_int> =
        (0..APPENDERS).map(|appender| process::fork(|| append_records(open(), appender, 7))).collect();
    for child in children {
        cx.note(process::ending(child));
    }
}

fn processes_with_own_descriptors(cx: &Context) {
    cx.file("a");
    let path = cx.path("a");
    fork_appenders(cx, || open_quietly(&path, O_RDWR | O_APPEND));
    check_records(cx, &path, crate::context::INITIAL_LENGTH);
}

fn processes_sharing_a_descriptor(cx: &Context) {
    let fd = cx.file_with("a", O_APPEND);
    fork_appenders(cx, || fd);
    check_records(cx, &cx.path("a"), crate::context::INITIAL_LENGTH);
}

/// Not O_APPEND: `write` on one open file description moves one offset, and no record is lost.
fn processes_sharing_an_offset(cx: &Context) {
    let fd = cx.file("a");
    fork_appenders(cx, || fd);
    check_records(cx, &cx.path("a"), 0);
}

fn threads_sharing_an_offset(cx: &Context) {
    let fd = cx.file("a");
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            scope.spawn(move || append_records(fd, appender, 5));
        }
    });
    check_records(cx, &cx.path("a"), 0);
    cx.seek(fd, 0, libc::SEEK_CUR);
}

family!("append" => on_a_file [
    flag_toggled, append_flag_in_pwritev2,
], others [
    one_descriptor, two_descriptors, after_truncation, large_appends, threads_with_own_descriptors,
    threads_sharing_a_descriptor, processes_with_own_descriptors, processes_sharing_a_descriptor,
    processes_sharing_an_offset, threads_sharing_an_offset,
]);
