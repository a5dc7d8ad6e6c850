//! Who may do what, and what a file's owner, group and mode are afterwards: sticky and setgid directories,
//! set-user-id bits, ACLs, umask. Run by root each act is a user's; by anybody else the refusals agree.

use crate::context::{Context, c_string, open_quietly};
use crate::trace;
use libc::{AT_FDCWD, O_CREAT, O_EXCL, O_RDWR, O_WRONLY, gid_t, uid_t};
use std::ffi::{CStr, CString, c_int};

const NOBODY: uid_t = 65534;
const SOMEBODY: uid_t = 12345;
const GROUP: gid_t = 23456;

/// `body` as user `uid`, in a child of its own.
fn acting_as(cx: &Context, uid: uid_t, groups: &[gid_t], body: impl FnOnce()) {
    cx.in_child(|| {
        call!(cx, setgroups(groups.len(), groups.as_ptr()));
        call!(cx, setgid(uid));
        call!(cx, setuid(uid));
        body();
        0
    });
}

/// A directory of this case's own.
fn directory(cx: &Context, tag: &str, mode: libc::mode_t) -> CString {
    let path = cx.plain_path(tag);
    call!(cx, mkdir(path.as_ptr(), 0o700));
    call!(cx, chmod(path.as_ptr(), mode));
    path
}

fn inside(dir: &CStr, name: &str) -> CString {
    c_string([dir.to_bytes(), b"/", name.as_bytes()].concat())
}

/// A file with something in it.
fn file(cx: &Context, path: &CStr, mode: libc::mode_t) {
    let fd = open_quietly(path, O_RDWR | O_CREAT | O_EXCL);
    cx.pwrite(fd, b'P', 100, 0);
    cx.fsync(fd);
    call!(cx, fchmod(fd, mode));
    cx.close(fd);
}

fn opened(cx: &Context, path: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    call!(cx, Descriptor, open(path.as_ptr(), flags, mode)) as c_int
}

fn attributes(cx: &Context, path: &CStr) {
    // SAFETY: a zeroed stat is a valid out parameter.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, the stat ours.
    if unsafe { libc::lstat(path.as_ptr(), &mut stat) } != 0 {
        return cx.note(format_args!("lstat: {}", trace::errno_name(crate::call::errno())));
    }
    let size = if stat.st_mode & libc::S_IFMT == libc::S_IFDIR { 0 } else { stat.st_size };
    cx.note(format_args!(
        "mode {:o} owner {} group {} links {} device {:x} size {size}",
        stat.st_mode, stat.st_uid, stat.st_gid, stat.st_nlink, stat.st_rdev
    ));
}

fn opening(cx: &Context) {
    let dir = directory(cx, "d", 0o755);
    for (name, mode) in [("private", 0o600), ("group", 0o640), ("all", 0o666), ("none", 0o000)] {
        file(cx, &inside(&dir, name), mode);
        call!(cx, chown(inside(&dir, name).as_ptr(), 0, GROUP));
    }
    acting_as(cx, NOBODY, &[GROUP], || {
        for name in ["private", "group", "all", "none"] {
            call!(cx, Descriptor, open(inside(&dir, name).as_ptr(), libc::O_RDONLY));
            call!(cx, Descriptor, open(inside(&dir, name).as_ptr(), O_WRONLY));
            call!(cx, access(inside(&dir, name).as_ptr(), libc::R_OK | libc::W_OK));
        }
        call!(cx, Descriptor, open(inside(&dir, "new").as_ptr(), O_RDWR | O_CREAT, 0o644));
        call!(cx, truncate(inside(&dir, "group").as_ptr(), 0));
        call!(cx, truncate(inside(&dir, "all").as_ptr(), 10));
    });
    call!(cx, chmod(dir.as_ptr(), 0o700));
    acting_as(cx, NOBODY, &[], || {
        call!(cx, Descriptor, open(inside(&dir, "all").as_ptr(), libc::O_RDONLY));
        attributes(cx, &inside(&dir, "all"));
    });
}

fn sticky_directory(cx: &Context) {
    let dir = directory(cx, "d", 0o1777);
    file(cx, &inside(&dir, "roots"), 0o666);
    acting_as(cx, NOBODY, &[], || {
        file(cx, &inside(&dir, "mine"), 0o600);
        call!(cx, unlink(inside(&dir, "roots").as_ptr()));
        call!(cx, rename(inside(&dir, "roots").as_ptr(), inside(&dir, "x").as_ptr()));
        call!(cx, rename(inside(&dir, "mine").as_ptr(), inside(&dir, "roots").as_ptr()));
        call!(cx, rename(inside(&dir, "mine").as_ptr(), inside(&dir, "mine2").as_ptr()));
    });
    acting_as(cx, SOMEBODY, &[], || {
        call!(cx, unlink(inside(&dir, "mine2").as_ptr()));
    });
    acting_as(cx, NOBODY, &[], || {
        call!(cx, unlink(inside(&dir, "mine2").as_ptr()));
    });
    attributes(cx, &inside(&dir, "roots"));
}

/// What is made in a setgid directory has its group; directories have the bit too.
fn setgid_directory(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    call!(cx, chown(dir.as_ptr(), 0, GROUP));
    call!(cx, chmod(dir.as_ptr(), 0o2777));
    for (user, groups) in [(NOBODY, &[][..]), (SOMEBODY, &[GROUP][..])] {
        acting_as(cx, user, groups, || {
            call!(cx, Number, umask(0));
            let name = |what: &str| inside(&dir, &format!("{what}{user}"));
            let fd = opened(cx, &name("file"), O_RDWR | O_CREAT | O_EXCL, 0o2775);
            cx.write(fd, b'x', 10);
            call!(cx, mkdir(name("dir").as_ptr(), 0o775));
            call!(cx, mkfifo(name("fifo").as_ptr(), 0o664));
            call!(cx, symlink(c"target".as_ptr(), name("link").as_ptr()));
            for what in ["file", "dir", "fifo", "link"] {
                attributes(cx, &name(what));
            }
            // Not a member of the group: the bit goes.
            call!(cx, chmod(name("file").as_ptr(), 0o2755));
            attributes(cx, &name("file"));
        });
    }
}

fn changing_owners_and_modes(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    file(cx, &inside(&dir, "roots"), 0o6755);
    acting_as(cx, NOBODY, &[GROUP], || {
        file(cx, &inside(&dir, "mine"), 0o6755);
        for name in ["roots", "mine"] {
            let path = inside(&dir, name);
            call!(cx, chmod(path.as_ptr(), 0o6711));
            call!(cx, chown(path.as_ptr(), SOMEBODY, u32::MAX));
            call!(cx, chown(path.as_ptr(), u32::MAX, GROUP));
            call!(cx, chown(path.as_ptr(), u32::MAX, GROUP + 1));
            attributes(cx, &path);
            call!(cx, utimensat(AT_FDCWD, path.as_ptr(), std::ptr::null(), 0));
            let times = [libc::timespec { tv_sec: 5, tv_nsec: 6 }; 2];
            call!(cx, utimensat(AT_FDCWD, path.as_ptr(), times.as_ptr(), 0));
        }
    });
    call!(cx, chown(inside(&dir, "mine").as_ptr(), SOMEBODY, 0));
    attributes(cx, &inside(&dir, "mine"));
    call!(cx, symlink(c"mine".as_ptr(), inside(&dir, "link").as_ptr()));
    call!(cx, lchown(inside(&dir, "link").as_ptr(), NOBODY, GROUP));
    attributes(cx, &inside(&dir, "link"));
}

/// A write or truncate by somebody else takes set-user-id bits away; root's own does not.
fn set_user_id_and_writes(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    for (name, mode) in [("w", 0o6777), ("t", 0o6777), ("m", 0o2767)] {
        file(cx, &inside(&dir, name), mode);
        attributes(cx, &inside(&dir, name));
    }
    acting_as(cx, NOBODY, &[], || {
        for name in ["w", "m"] {
            let fd = opened(cx, &inside(&dir, name), O_WRONLY, 0);
            cx.pwrite(fd, b'w', 10, 5);
            attributes(cx, &inside(&dir, name));
        }
        call!(cx, truncate(inside(&dir, "t").as_ptr(), 50));
        attributes(cx, &inside(&dir, "t"));
    });
    file(cx, &inside(&dir, "r"), 0o6777);
    let fd = opened(cx, &inside(&dir, "r"), O_WRONLY, 0);
    cx.pwrite(fd, b'w', 10, 5);
    attributes(cx, &inside(&dir, "r"));
}

fn umask_applies(cx: &Context) {
    let dir = directory(cx, "d", 0o755);
    for mask in [0o000, 0o022, 0o077, 0o777] {
        call!(cx, Number, umask(mask));
        let name = |what: &str| inside(&dir, &format!("{what}{mask:o}"));
        opened(cx, &name("file"), O_RDWR | O_CREAT, 0o666);
        call!(cx, mkdir(name("dir").as_ptr(), 0o777));
        call!(cx, mkfifo(name("fifo").as_ptr(), 0o666));
        for what in ["file", "dir", "fifo"] {
            attributes(cx, &name(what));
        }
    }
}

/// The kernel's form of an ACL: version 2, then tag, permissions and id of each entry.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn access_control_lists(cx: &Context) {
    const NONE: u32 = u32::MAX;
    let (owner, user, group, mask, other) = (1, 2, 4, 16, 32);
    let list =
        acl(&[(owner, 6, NONE), (user, 4, NOBODY), (group, 0, NONE), (mask, 4, NONE), (other, 0, NONE)]);
    let dir = directory(cx, "d", 0o755);
    let path = inside(&dir, "file");
    file(cx, &path, 0o600);
    let set = |path: &CStr, name: &CStr| {
        call!(cx, setxattr(path.as_ptr(), name.as_ptr(), list.as_ptr().cast(), list.len(), 0));
    };
    set(&path, c"system.posix_acl_access");
    attributes(cx, &path);
    for user in [NOBODY, SOMEBODY] {
        acting_as(cx, user, &[], || {
            call!(cx, Descriptor, open(path.as_ptr(), libc::O_RDONLY));
            call!(cx, Descriptor, open(path.as_ptr(), O_WRONLY));
        });
    }
    set(&dir, c"system.posix_acl_default");
    call!(cx, Number, umask(0o022));
    let heir = inside(&dir, "heir");
    opened(cx, &heir, O_RDWR | O_CREAT, 0o666);
    attributes(cx, &heir);
    let mut room = [0_u8; 256];
    let name = c"system.posix_acl_access";
    call!(cx, getxattr(heir.as_ptr(), name.as_ptr(), room.as_mut_ptr().cast(), room.len()));
    call!(cx, mkdir(inside(&dir, "sub").as_ptr(), 0o777));
    attributes(cx, &inside(&dir, "sub"));
}

fn extended_attributes(cx: &Context) {
    let path = cx.path("a");
    let fd = cx.file("a");
    let mut room = [0_u8; 300];
    let set = |name: &CStr, value: &[u8], flags: c_int| {
        call!(cx, setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags))
    };
    set(c"user.one", b"1", 0);
    set(c"user.one", b"2", libc::XATTR_CREATE);
    set(c"user.two", b"2", libc::XATTR_REPLACE);
    set(c"user.long", &[7; 290], 0);
    set(c"user.empty", b"", 0);
    set(c"nonsense", b"x", 0);
    for (name, len) in
        [(c"user.one", 300), (c"user.long", 300), (c"user.long", 10), (c"user.long", 0), (c"user.no", 300)]
    {
        call!(cx, getxattr(path.as_ptr(), name.as_ptr(), room.as_mut_ptr().cast(), len));
        call!(cx, fgetxattr(fd, name.as_ptr(), room.as_mut_ptr().cast(), len));
    }
    call!(cx, listxattr(path.as_ptr(), room.as_mut_ptr().cast(), room.len()));
    call!(cx, removexattr(path.as_ptr(), c"user.one".as_ptr()));
    call!(cx, removexattr(path.as_ptr(), c"user.one".as_ptr()));
    cx.write_sync_show(fd);
}

fn nodes(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    let kinds = [
        ("fifo", libc::S_IFIFO),
        ("socket", libc::S_IFSOCK),
        ("file", libc::S_IFREG),
        ("device", libc::S_IFCHR),
    ];
    for (user, tag) in [(0, "root"), (NOBODY, "user")] {
        acting_as(cx, user, &[], || {
            for (name, kind) in kinds {
                let path = inside(&dir, &format!("{name}{tag}"));
                call!(cx, mknod(path.as_ptr(), kind | 0o640, libc::makedev(1, 3)));
                attributes(cx, &path);
            }
        });
    }
    let device = inside(&dir, "deviceroot");
    let fd = opened(cx, &device, O_RDWR, 0);
    cx.write(fd, b'n', 10);
}

fn renaming_directories(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    for name in ["a", "b", "full"] {
        call!(cx, mkdir(inside(&dir, name).as_ptr(), 0o755));
    }
    file(cx, &inside(&dir, "full/file"), 0o644);
    file(cx, &inside(&dir, "file"), 0o644);
    let pairs = [
        ("a", "full"),
        ("a", "file"),
        ("file", "a"),
        ("a", "a/inside"),
        ("full", "b"),
        ("b/file", "moved"),
        ("b", "missing/b"),
        ("missing", "x"),
        (".", "x"),
        ("a", "."),
        ("a", "c"),
        ("c", "c"),
    ];
    for (from, to) in pairs {
        cx.note(format_args!("{from} to {to}"));
        call!(cx, rename(inside(&dir, from).as_ptr(), inside(&dir, to).as_ptr()));
    }
    for flags in
        [libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE, libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE]
    {
        let (from, to) = (inside(&dir, "c"), inside(&dir, "moved"));
        call!(cx, renameat2(AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), flags));
        attributes(cx, &from);
    }
    // To move a directory to another parent one must be able to write to it: its `..` changes.
    call!(cx, mkdir(inside(&dir, "other").as_ptr(), 0o777));
    call!(cx, chmod(inside(&dir, "other").as_ptr(), 0o777));
    acting_as(cx, NOBODY, &[], || {
        call!(cx, rename(inside(&dir, "b").as_ptr(), inside(&dir, "other/b").as_ptr()));
        call!(cx, rename(inside(&dir, "moved").as_ptr(), inside(&dir, "other/moved").as_ptr()));
    });
    call!(cx, rmdir(inside(&dir, "b").as_ptr()));
    call!(cx, rmdir(inside(&dir, "file").as_ptr()));
    call!(cx, unlink(inside(&dir, "other").as_ptr()));
}

fn links(cx: &Context) {
    let dir = directory(cx, "d", 0o777);
    file(cx, &inside(&dir, "file"), 0o600);
    call!(cx, symlink(c"file".as_ptr(), inside(&dir, "soft").as_ptr()));
    call!(cx, link(inside(&dir, "file").as_ptr(), inside(&dir, "hard").as_ptr()));
    call!(cx, link(inside(&dir, "soft").as_ptr(), inside(&dir, "hardsoft").as_ptr()));
    call!(cx, link(dir.as_ptr(), inside(&dir, "dir").as_ptr()));
    call!(cx, link(inside(&dir, "file").as_ptr(), inside(&dir, "hard").as_ptr()));
    for name in ["file", "soft", "hardsoft"] {
        attributes(cx, &inside(&dir, name));
    }
    let mut room = [0_u8; 100];
    call!(cx, readlink(inside(&dir, "soft").as_ptr(), room.as_mut_ptr().cast(), 100));
    call!(cx, readlink(inside(&dir, "soft").as_ptr(), room.as_mut_ptr().cast(), 2));
    call!(cx, readlink(inside(&dir, "file").as_ptr(), room.as_mut_ptr().cast(), 100));
    let long = c_string(vec![b'n'; 256]);
    call!(cx, mkdir(inside(&dir, &long.to_string_lossy()).as_ptr(), 0o755));
    call!(cx, symlink(c"loop".as_ptr(), inside(&dir, "loop").as_ptr()));
    call!(cx, Descriptor, open(inside(&dir, "loop").as_ptr(), libc::O_RDONLY));
    call!(cx, Descriptor, open(inside(&dir, "soft").as_ptr(), libc::O_RDONLY | libc::O_NOFOLLOW));
    acting_as(cx, NOBODY, &[], || {
        call!(cx, link(inside(&dir, "file").as_ptr(), inside(&dir, "theirs").as_ptr()));
        call!(cx, symlink(c"file".as_ptr(), inside(&dir, "ours").as_ptr()));
        attributes(cx, &inside(&dir, "ours"));
    });
}

family!("permission" => [
    opening, sticky_directory, setgid_directory, changing_owners_and_modes, set_user_id_and_writes,
    umask_applies, access_control_lists, extended_attributes, nodes, renaming_directories, links,
]);
