//! What is at a path, or behind a descriptor.

use core::ffi::{CStr, c_int, c_uint};
use core::mem::MaybeUninit;

use seawall_core::Errno;

use super::call::unsafe_call;

/// What a look at a file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// st_dev.
    pub dev: u64,
    /// st_ino.
    pub ino: u64,
    /// st_nlink.
    pub links: u64,
    /// st_size.
    pub size: u64,
    /// st_uid.
    pub uid: libc::uid_t,
    /// st_gid.
    pub gid: libc::gid_t,
    /// True without set-user-id, set-group-id and execute bits.
    pub plain: bool,
    /// What its user, its group and others may do.
    pub permissions: libc::mode_t,
    /// True for a regular file.
    pub regular: bool,
    /// True for a directory.
    pub directory: bool,
    /// True for a symbolic link.
    pub symlink: bool,
    /// st_mode.
    pub mode: libc::mode_t,
    /// st_mtime and its nanoseconds.
    pub modified: (i64, u32),
    /// st_ctime, in nanoseconds.
    pub changed: u64,
}

impl Stat {
    /// True if chown(2) to this user and group changes the time alone: not even a privilege is taken away.
    pub fn is_owned_already(&self, uid: libc::uid_t, gid: libc::gid_t) -> bool {
        uid == self.uid && gid == self.gid && self.plain
    }

    /// True if chown(2) with this user, where -1 is no change, would give the file to somebody else.
    pub fn is_given_away_to(&self, uid: libc::uid_t) -> bool {
        uid != libc::uid_t::MAX && uid != self.uid
    }
}

impl From<libc::stat> for Stat {
    #[allow(clippy::unnecessary_cast)]
    fn from(s: libc::stat) -> Self {
        Self {
            dev: s.st_dev as u64,
            ino: s.st_ino as u64,
            links: s.st_nlink as u64,
            size: s.st_size as u64,
            uid: s.st_uid,
            gid: s.st_gid,
            plain: s.st_mode & 0o7111 == 0,
            permissions: s.st_mode & 0o777,
            regular: s.st_mode & libc::S_IFMT == libc::S_IFREG,
            directory: s.st_mode & libc::S_IFMT == libc::S_IFDIR,
            symlink: s.st_mode & libc::S_IFMT == libc::S_IFLNK,
            mode: s.st_mode,
            modified: (s.st_mtime, s.st_mtime_nsec as u32),
            changed: (s.st_ctime as u64).wrapping_mul(1_000_000_000).wrapping_add(s.st_ctime_nsec as u64),
        }
    }
}

/// fstat(2).
pub fn fstat(fd: c_int) -> Result<Stat, Errno> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    unsafe_call!(SYS_fstat, fd, stat.as_mut_ptr())?;
    // SAFETY: the kernel filled it.
    Ok(unsafe { stat.assume_init() }.into())
}

/// Device and inode of a file, and not its times: whoever asks for these makes the kernel write the inode with the next
/// change, which then shows a finer time (Linux 6.13).
pub fn identity(fd: c_int) -> Result<(u64, u64), Errno> {
    match statx(fd, libc::STATX_INO) {
        Ok(found) => Ok((libc::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino)),
        // Filters of system calls know the older one.
        Err(_) => fstat(fd).map(|stat| (stat.dev, stat.ino)),
    }
}

/// statx(2) of an open file.
fn statx(fd: c_int, mask: c_uint) -> Result<libc::statx, Errno> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    unsafe_call!(SYS_statx, fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, found.as_mut_ptr())?;
    // SAFETY: the kernel filled it.
    Ok(unsafe { found.assume_init() })
}

/// When the file was made, in nanoseconds; 0 where the file system does not say.
pub fn born(fd: c_int) -> u64 {
    statx(fd, libc::STATX_BTIME).map_or(0, |found| {
        let time = found.stx_btime;
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(u64::from(time.tv_nsec))
    })
}

/// fstatat(2).
pub fn fstatat(dir: c_int, path: &CStr, flags: c_int) -> Result<Stat, Errno> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    unsafe_call!(SYS_newfstatat, dir, path.as_ptr(), stat.as_mut_ptr(), flags)?;
    // SAFETY: the kernel filled it.
    Ok(unsafe { stat.assume_init() }.into())
}

/// True if the path leads to something.
pub fn exists(dir: c_int, path: &CStr) -> bool {
    fstatat(dir, path, libc::AT_SYMLINK_NOFOLLOW).is_ok()
}

/// True if there is a directory at the path.
pub fn is_directory(dir: c_int, path: &CStr) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    let found =
        unsafe_call!(SYS_newfstatat, dir, path.as_ptr(), stat.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: the kernel filled it.
    found.is_ok() && unsafe { stat.assume_init() }.st_mode & libc::S_IFMT == libc::S_IFDIR
}
