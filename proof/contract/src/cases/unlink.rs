//! unlink, unlinkat, remove: the name goes, the open file stays, the name may come back.

use crate::context::{Context, c_string};
use libc::{AT_FDCWD, O_CREAT, O_RDWR};
use std::ffi::c_int;

fn open_file_lives_on(cx: &Context) {
    let fd = cx.file("a");
    cx.pwrite(fd, b'B', 100, 0);
    call!(cx, unlink(cx.path("a").as_ptr()));
    cx.pwrite(fd, b'C', 100, 9000);
    cx.fsync(fd);
    cx.fdatasync(fd);
    call!(cx, ftruncate(fd, 8500));
    cx.write_sync_show(fd);
    cx.open(&cx.path("a"), O_RDWR);
}

/// A new file under the old name, quite likely with the old inode number.
fn name_comes_back(cx: &Context) {
    for fill in [b'1', b'2', b'3', b'4'] {
        let fd = cx.open(&cx.path("a"), O_RDWR | O_CREAT | libc::O_EXCL);
        cx.show(fd);
        cx.pwrite(fd, fill, 3000, 0);
        cx.fsync(fd);
        cx.pwrite(fd, fill, 3000, 2000);
        cx.sync_show(fd);
        cx.close(fd);
        call!(cx, unlink(cx.path("a").as_ptr()));
    }
}

fn old_and_new_side_by_side(cx: &Context) {
    let old = cx.file("a");
    call!(cx, unlink(cx.path("a").as_ptr()));
    let new = cx.file("a");
    for round in 0..3 {
        cx.pwrite(old, b'o', 100, round * 100);
        cx.pwrite(new, b'n', 100, round * 200);
        cx.fsync(if round % 2 == 0 { old } else { new });
    }
    cx.show(old);
    cx.show(new);
}

fn aliases(cx: &Context) {
    let (b, c) = (cx.file("b"), cx.file("c"));
    let directory = cx.open(&cx.directory(), libc::O_RDONLY);
    let name = c_string(cx.name("b"));
    call!(cx, unlinkat(directory, name.as_ptr(), 0));
    call!(cx, remove(cx.path("c").as_ptr()));
    cx.fsync(directory);
    cx.write_sync_show(b);
    cx.write_sync_show(c);
}

fn errors(cx: &Context, _: c_int) {
    call!(cx, unlink(cx.path("missing").as_ptr()));
    call!(cx, unlink(cx.directory().as_ptr()));
    call!(cx, unlinkat(AT_FDCWD, cx.path("a").as_ptr(), libc::AT_REMOVEDIR));
    call!(cx, unlinkat(AT_FDCWD, cx.path("a").as_ptr(), 0x4000_0000));
    call!(cx, unlinkat(-1, c"relative".as_ptr(), 0));
    call!(cx, rmdir(cx.path("a").as_ptr()));
    call!(cx, remove(std::ptr::null()));
}

/// SQLite's delete mode: the rollback journal's unlink is the commit.
fn rollback_journal_cycle(cx: &Context) {
    let directory = cx.open(&cx.directory(), libc::O_RDONLY);
    for fill in [b'1', b'2', b'3'] {
        let journal = cx.open(&cx.path("journal"), O_RDWR | O_CREAT);
        cx.pwrite(journal, fill, 512, 0);
        cx.pwrite(journal, fill, 4104, 512);
        cx.fdatasync(journal);
        cx.pwrite(journal, b'h', 12, 0);
        cx.fdatasync(journal);
        cx.fdatasync(directory);
        cx.show(journal);
        cx.close(journal);
        call!(cx, unlink(cx.path("journal").as_ptr()));
    }
}

/// Many short-lived files: what is remembered about a file must go with it.
fn many_short_lives(cx: &Context) {
    let mut bad = 0;
    for round in 0..300_usize {
        let fd = crate::context::open_quietly(&cx.path("short"), O_RDWR | O_CREAT | libc::O_EXCL);
        let page = vec![b'0' + (round % 10) as u8; 100 + round];
        // SAFETY: plain calls on our own descriptor and buffer.
        unsafe {
            bad += usize::from(libc::write(fd, page.as_ptr().cast(), page.len()) != page.len() as isize);
            bad += usize::from(round % 10 == 0 && libc::fsync(fd) != 0);
            bad += usize::from(libc::write(fd, page.as_ptr().cast(), 50) != 50);
            bad += usize::from(crate::context::contents(fd).len() != page.len() + 50);
            bad += usize::from(libc::unlink(cx.path("short").as_ptr()) != 0);
            bad += usize::from(libc::close(fd) != 0);
        }
    }
    cx.note(format_args!("failures {bad}"));
}

family!("unlink" => on_a_file [
    errors,
], others [
    open_file_lives_on, name_comes_back, old_and_new_side_by_side, aliases, rollback_journal_cycle,
    many_short_lives,
]);
