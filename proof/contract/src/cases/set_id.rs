//! Set-user-id and set-group-id bits: which calls take them away, by whom. Every call on a file of its own, by root, by
//! an owner without privileges, by another user who may write it. Run by anybody but root the refusals agree.

use crate::context::{Context, Variant, c_string};
use libc::{O_CREAT, O_DIRECT, O_DSYNC, O_RDWR, O_TRUNC, c_int, c_uint, mode_t, uid_t};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

const NOBODY: uid_t = 65534;
const GROUPS: [libc::gid_t; 1] = [4242];
const LENGTH: i64 = 16384;
/// `call`'s room for O_DIRECT.
#[repr(align(4096))]
struct Page([u8; 4096]);
static PAGE: Page = Page([b's'; 4096]);

/// A call on an open file and its path.
type Call = (&'static str, c_int, fn(c_int, &CStr) -> i64);

fn page() -> *const libc::c_void {
    PAGE.0.as_ptr().cast()
}

fn part() -> libc::iovec {
    libc::iovec { iov_base: page().cast_mut(), iov_len: 4096 }
}

fn allocate(fd: c_int, mode: c_int, from: i64, len: i64) -> i64 {
    // SAFETY: plain call.
    unsafe { libc::fallocate(fd, mode, from, len) as i64 }
}

fn opened_again(path: &CStr, flags: c_int) -> i64 {
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o6755 as c_uint) };
    i64::from(fd.min(0))
}

fn stored(fd: c_int) -> i64 {
    // SAFETY: a fresh mapping inside the file, which nobody else uses.
    unsafe {
        let at = libc::mmap(null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0);
        if at == libc::MAP_FAILED {
            return -1;
        }
        at.cast::<u8>().write(b'm');
        let synced = libc::msync(at, 4096, libc::MS_SYNC);
        libc::munmap(at, 4096);
        i64::from(synced)
    }
}

fn overwritten(fd: c_int) -> i64 {
    // SAFETY: plain calls on a static page.
    unsafe { (0..200).map(|i| libc::pwrite(fd, page(), 4096, i % 4 * 4096) as i64).sum() }
}

fn spliced(fd: c_int) -> i64 {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors; plain calls.
    unsafe {
        libc::pipe(ends.as_mut_ptr());
        libc::write(ends[1], page(), 100);
        libc::splice(ends[0], null_mut(), fd, null_mut(), 100, 0) as i64
    }
}

// SAFETY (all of them): plain calls on the file's descriptor or path, with a static page that outlives them.
#[allow(clippy::undocumented_unsafe_blocks)] // One reason for all.
const CALLS: &[Call] = &[
    ("write", 0, |fd, _| unsafe { libc::write(fd, page(), 100) as i64 }),
    ("write of nothing", 0, |fd, _| unsafe { libc::write(fd, page(), 0) as i64 }),
    ("pwrite", 0, |fd, _| unsafe { libc::pwrite(fd, page(), 4096, 4096) as i64 }),
    ("pwrite, again and again", 0, |fd, _| overwritten(fd)),
    ("pwrite behind the end", 0, |fd, _| unsafe { libc::pwrite(fd, page(), 100, 2 * LENGTH) as i64 }),
    ("writev", 0, |fd, _| unsafe { libc::writev(fd, &part(), 1) as i64 }),
    ("pwritev2 RWF_DSYNC", 0, |fd, _| unsafe { libc::pwritev2(fd, &part(), 1, 0, libc::RWF_DSYNC) as i64 }),
    ("append", libc::O_APPEND, |fd, _| unsafe { libc::write(fd, page(), 100) as i64 }),
    ("O_DSYNC", O_DSYNC, |fd, _| unsafe { libc::pwrite(fd, page(), 4096, 0) as i64 }),
    ("O_DIRECT", O_DIRECT, |fd, _| unsafe { libc::pwrite(fd, page(), 4096, 0) as i64 }),
    ("ftruncate to less", 0, |fd, _| unsafe { libc::ftruncate(fd, 100) as i64 }),
    ("ftruncate to the same", 0, |fd, _| unsafe { libc::ftruncate(fd, LENGTH) as i64 }),
    ("ftruncate to more", 0, |fd, _| unsafe { libc::ftruncate(fd, 2 * LENGTH) as i64 }),
    ("truncate", 0, |_, path| unsafe { libc::truncate(path.as_ptr(), 100) as i64 }),
    ("truncate to the same", 0, |_, path| unsafe { libc::truncate(path.as_ptr(), LENGTH) as i64 }),
    ("open O_TRUNC", 0, |_, path| opened_again(path, O_RDWR | O_TRUNC)),
    ("open O_TRUNC, to read", 0, |_, path| opened_again(path, O_TRUNC)),
    ("open O_CREAT O_TRUNC", 0, |_, path| opened_again(path, O_RDWR | O_CREAT | O_TRUNC)),
    ("creat", 0, |_, path| unsafe { i64::from(libc::creat(path.as_ptr(), 0o6755).min(0)) }),
    ("open", 0, |_, path| opened_again(path, O_RDWR | O_CREAT)),
    ("fallocate", 0, |fd, _| allocate(fd, 0, 0, LENGTH)),
    ("fallocate of more", 0, |fd, _| allocate(fd, 0, 0, 2 * LENGTH)),
    ("fallocate KEEP_SIZE", 0, |fd, _| allocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, 2 * LENGTH)),
    ("fallocate PUNCH_HOLE", 0, |fd, _| {
        allocate(fd, libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE, 0, 4096)
    }),
    ("fallocate ZERO_RANGE", 0, |fd, _| allocate(fd, libc::FALLOC_FL_ZERO_RANGE, 0, 4096)),
    ("posix_fallocate", 0, |fd, _| unsafe { libc::posix_fallocate(fd, 0, 2 * LENGTH) as i64 }),
    ("copy_file_range", 0, |fd, _| unsafe {
        let (mut from, mut to) = (0, LENGTH);
        libc::copy_file_range(fd, &raw mut from, fd, &raw mut to, 4096, 0) as i64
    }),
    ("sendfile", 0, |fd, _| unsafe { libc::sendfile(fd, fd, &mut 8192, 100) as i64 }),
    ("splice", 0, |fd, _| spliced(fd)),
    ("a store", 0, |fd, _| stored(fd)),
    ("fsync", 0, |fd, _| unsafe { libc::fsync(fd) as i64 }),
    ("pread", 0, |fd, _| unsafe { libc::pread(fd, [0_u8; 10].as_mut_ptr().cast(), 10, 0) as i64 }),
];

/// What a FUSE file system is not asked for.
const MOVING_CALLS: &[Call] = &[
    ("fallocate COLLAPSE_RANGE", 0, |fd, _| allocate(fd, libc::FALLOC_FL_COLLAPSE_RANGE, 0, 4096)),
    ("fallocate INSERT_RANGE", 0, |fd, _| allocate(fd, libc::FALLOC_FL_INSERT_RANGE, 0, 4096)),
];

fn mode_of(path: &CStr) -> mode_t {
    // SAFETY: a zeroed stat is a valid out parameter, the path NUL-terminated.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::stat(path.as_ptr(), &mut stat);
        stat.st_mode
    }
}

/// A directory where everybody may make files.
fn directory(cx: &Context) -> CString {
    let path = cx.plain_path("d");
    // SAFETY: the path is NUL-terminated.
    unsafe {
        libc::mkdir(path.as_ptr(), 0o777);
        libc::chmod(path.as_ptr(), 0o777);
    }
    path
}

fn inside(cx: &Context, dir: &CStr, name: &str) -> CString {
    let end = if cx.variant() == Variant::Bypass { "plain" } else { "wal" };
    c_string([dir.to_bytes(), b"/", name.as_bytes(), b"-", end.as_bytes()].concat())
}

/// A file of 16 KiB, in the state that the variant asks for.
fn make(cx: &Context, path: &CStr, mode: mode_t) {
    // SAFETY: plain calls on a descriptor of our own, with a static page.
    unsafe {
        let fd = libc::open(path.as_ptr(), O_RDWR | O_CREAT, 0o600 as c_uint);
        (0..4).for_each(|i| {
            libc::pwrite(fd, page(), 4096, i * 4096);
        });
        if cx.variant() != Variant::Untracked {
            libc::fsync(fd);
            libc::pwrite(fd, page(), 4096, 0);
            libc::fsync(fd);
        }
        libc::fchmod(fd, mode);
        libc::close(fd);
    }
}

/// Who acts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Actor {
    Root,
    /// The same user without capabilities: what any owner is.
    Owner,
    /// Somebody else.
    Other,
    /// Somebody else who is of the file's group, by a supplementary one.
    Member,
}

impl Actor {
    /// Becomes the actor.
    fn take_over(self, cx: &Context) {
        // The kernel's `cap_user_header_t` of version 3, and two of its data structures.
        let (header, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
        // SAFETY: plain calls, with structures that outlive them.
        let done = unsafe {
            match self {
                Actor::Root => true,
                Actor::Owner => libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) == 0,
                Actor::Other | Actor::Member => {
                    let groups = if self == Actor::Member { &GROUPS[..] } else { &[] };
                    libc::setgroups(groups.len(), groups.as_ptr()) == 0
                        && libc::setgid(NOBODY) == 0
                        && libc::setuid(NOBODY) == 0
                }
            }
        };
        cx.note(if done { "takes over" } else { "may not take over" });
    }
}

/// `body` by `actor`, in a child of its own.
fn acting_as(cx: &Context, actor: Actor, body: impl FnOnce()) {
    cx.in_child(|| {
        actor.take_over(cx);
        body();
        0
    });
}

fn every_call(cx: &Context, calls: &[Call], actor: Actor, modes: &[mode_t]) {
    let dir = directory(cx);
    let each = |act: &dyn Fn(&Call, &CStr, mode_t)| {
        for mode in modes {
            for (i, call) in calls.iter().enumerate() {
                act(call, &inside(cx, &dir, &format!("{mode:o}.{i}")), *mode);
            }
        }
    };
    each(&|_, path, mode| {
        make(cx, path, mode);
        if actor == Actor::Member {
            // SAFETY: the path is NUL-terminated.
            unsafe {
                libc::chown(path.as_ptr(), uid_t::MAX, GROUPS[0]);
                libc::chmod(path.as_ptr(), mode);
            }
        }
    });
    acting_as(cx, actor, || {
        each(&|(name, flags, call), path, mode| {
            // SAFETY: the path is NUL-terminated.
            let fd = unsafe { libc::open(path.as_ptr(), O_RDWR | flags) };
            let done = call(fd, path);
            cx.note(format_args!("{mode:o}, {name} ({done}): {:o}", mode_of(path) & 0o7777));
            // SAFETY: ours.
            unsafe { libc::close(fd) };
        });
    });
}

fn by_root(cx: &Context) {
    every_call(cx, CALLS, Actor::Root, &[0o6755]);
}

fn by_an_owner_without_privileges(cx: &Context) {
    every_call(cx, CALLS, Actor::Owner, &[0o6755, 0o2745, 0o4644]);
}

fn by_another_user(cx: &Context) {
    every_call(cx, CALLS, Actor::Other, &[0o6777, 0o2767, 0o4666]);
}

fn by_moving_a_range(cx: &Context) {
    every_call(cx, MOVING_CALLS, Actor::Root, &[0o6755]);
    every_call(cx, MOVING_CALLS, Actor::Owner, &[0o6755]);
}

/// Whoever is of a file's group may leave its set-group-id bit where that has no execute bit, by a supplementary group too.
fn by_supplementary_groups(cx: &Context) {
    every_call(cx, CALLS, Actor::Member, &[0o6766]);
}

/// A file that was overwritten for a while: its writes may have found a quicker way than the first ones had.
fn after_many_writes(cx: &Context) {
    if cx.variant() != Variant::Tracked {
        return;
    }
    const PAGES: i64 = 64;
    let path = inside(cx, &directory(cx), "many");
    make(cx, &path, 0o600);
    // SAFETY: plain calls on a static page.
    unsafe {
        let fd = libc::open(path.as_ptr(), O_RDWR);
        let write = |i: i64| libc::pwrite(fd, page(), 4096, i % PAGES * 4096);
        // Root's own writes take nothing away.
        let many = || {
            for i in 0..6_000 {
                write(i);
                if i % 100 == 0 {
                    libc::fdatasync(fd);
                }
                if i % 2_000 == 0 {
                    libc::usleep(300_000);
                }
            }
        };
        many();
        for actor in [Actor::Root, Actor::Owner, Actor::Other] {
            libc::fchmod(fd, 0o6777);
            many();
            acting_as(cx, actor, || {
                write(7);
                cx.note(format_args!("{:o}", mode_of(&path) & 0o7777));
            });
        }
        // In this process, where there may be a mapping.
        libc::fchmod(fd, 0o6777);
        many();
        Actor::Owner.take_over(cx);
        write(7);
        cx.note(format_args!("{:o}", mode_of(&path) & 0o7777));
    }
}

/// A file that an open makes has the bits it is made with.
fn made_by_the_open(cx: &Context) {
    let dir = directory(cx);
    for (actor, who) in [(Actor::Root, "root"), (Actor::Owner, "owner"), (Actor::Other, "other")] {
        acting_as(cx, actor, || {
            // SAFETY: plain call.
            unsafe { libc::umask(0) };
            let flags =
                [O_CREAT, O_CREAT | O_TRUNC, O_CREAT | libc::O_EXCL | O_TRUNC, O_CREAT | O_TRUNC | O_DSYNC];
            for (i, flags) in flags.into_iter().enumerate() {
                let path = inside(cx, &dir, &format!("{who}.{i}"));
                call!(cx, Descriptor, open(path.as_ptr(), O_RDWR | flags, 0o6755 as c_uint));
                cx.note(format_args!("{:o}", mode_of(&path)));
                call!(cx, Descriptor, open(path.as_ptr(), O_RDWR | flags, 0o6755 as c_uint));
                cx.note(format_args!("{:o}", mode_of(&path)));
            }
            let path = inside(cx, &dir, &format!("{who}.creat"));
            call!(cx, Descriptor, creat(path.as_ptr(), 0o6755));
            cx.note(format_args!("{:o}", mode_of(&path)));
            let (to, link) =
                (inside(cx, &dir, &format!("{who}.to")), inside(cx, &dir, &format!("{who}.link")));
            call!(cx, symlink(to.as_ptr(), link.as_ptr()));
            call!(cx, Descriptor, open(link.as_ptr(), O_RDWR | O_CREAT | O_TRUNC, 0o6755 as c_uint));
            cx.note(format_args!("{:o}", mode_of(&to)));
            call!(cx, Descriptor, open(link.as_ptr(), O_RDWR | O_CREAT | O_TRUNC, 0o6755 as c_uint));
            cx.note(format_args!("{:o}", mode_of(&to)));
        });
    }
}

family!("set_id" => [
    by_root,
    by_an_owner_without_privileges,
    by_another_user,
    by_moving_a_range,
    by_supplementary_groups,
    after_many_writes,
    made_by_the_open,
]);
