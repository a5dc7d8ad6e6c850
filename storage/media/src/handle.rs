//! What a file *is*, whatever it is called: file-system UUID and file handle.
//!
//! A handle (name_to_handle_at(2)) holds inode number and generation, so an inode that was freed and used
//! again is another file. It needs no privilege to read; opening *by* handle would, so files are found by
//! name and proven by handle.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::magic;

/// Longest handle, in bytes (MAX_HANDLE_SZ is 128; ext4, XFS and btrfs use at most 40).
pub const HANDLE_MAX: usize = 64;

/// The stable identity of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// UUID of the file system.
    pub fs: [u8; 16],
    /// Handle type, meaningful to that file system only.
    pub kind: i32,
    /// The handle, at most [`HANDLE_MAX`] bytes.
    pub handle: Vec<u8>,
}

/// Why a file has no usable identity.
#[derive(Debug)]
pub enum IdentityError {
    /// The file system gives no file handles (overlayfs, some FUSE and network file systems).
    NoHandle(io::Error),
    /// The file system has no UUID that survives a reboot.
    NoUuid,
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoHandle(e) => write!(f, "its file system gives no stable file handles ({e})"),
            Self::NoUuid => write!(f, "its file system has no UUID that survives a reboot"),
        }
    }
}

impl std::error::Error for IdentityError {}

/// The identity of an open file or directory.
///
/// # Errors
/// [`IdentityError`]: such a file cannot be managed.
pub fn identity(fd: impl AsFd) -> Result<Identity, IdentityError> {
    let fd = fd.as_fd();
    let (kind, handle) = handle_of(fd.as_raw_fd()).map_err(IdentityError::NoHandle)?;
    let fs = uuid_of(fd.as_raw_fd()).ok_or(IdentityError::NoUuid)?;
    Ok(Identity { fs, kind, handle })
}

/// Type and bytes of a file's handle: which one it is among the files of its file system. An O_PATH descriptor does.
///
/// # Errors
/// The file system gives none.
pub fn handle(fd: impl AsFd) -> io::Result<(i32, Vec<u8>)> {
    handle_of(fd.as_fd().as_raw_fd())
}

/// The ways that old kernels know come first: after a crash the machine may start with another kernel, and
/// must come to the same answer.
fn uuid_of(fd: i32) -> Option<[u8; 16]> {
    uuid_by_fsid(fd).or_else(|| uuid_of_xfs(fd)).or_else(|| uuid_by_ioctl(fd))
}

#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE_MAX],
}

fn handle_of(fd: i32) -> io::Result<(i32, Vec<u8>)> {
    let mut raw = RawHandle { bytes: HANDLE_MAX as u32, kind: 0, handle: [0; HANDLE_MAX] };
    let mut mount_id = 0;
    // SAFETY: `raw` has the layout of struct file_handle with HANDLE_MAX bytes of room, as it says itself;
    // the empty path is a C string; the kernel writes inside both outputs only.
    let result = unsafe {
        libc::name_to_handle_at(
            fd,
            c"".as_ptr(),
            (&raw mut raw).cast::<libc::file_handle>(),
            &raw mut mount_id,
            libc::AT_EMPTY_PATH,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((raw.kind, raw.handle[..(raw.bytes as usize).min(HANDLE_MAX)].to_vec()))
}

/// XFS_IOC_FSGEOMETRY_V1, which every XFS knows. (Its f_fsid is the device number.)
fn uuid_of_xfs(fd: i32) -> Option<[u8; 16]> {
    /// struct xfs_fsop_geom_v1
    #[repr(C, align(8))]
    struct Geometry {
        before: [u8; 64],
        uuid: [u8; 16],
        behind: [u8; 32],
    }
    const _: () = assert!(size_of::<Geometry>() == 112);
    /// _IOR('X', 100, struct xfs_fsop_geom_v1)
    const XFS_IOC_FSGEOMETRY_V1: libc::c_ulong = 0x8070_5864;
    if statfs(fd)?.f_type as u64 != magic::XFS {
        return None;
    }
    let mut answer = Geometry { before: [0; 64], uuid: [0; 16], behind: [0; 32] };
    // SAFETY: the ioctl writes one struct xfs_fsop_geom_v1, which is as large and as aligned.
    let result = unsafe { libc::ioctl(fd, XFS_IOC_FSGEOMETRY_V1 as _, &raw mut answer) };
    (result == 0 && answer.uuid != [0; 16]).then_some(answer.uuid)
}

fn statfs(fd: i32) -> Option<libc::statfs> {
    // SAFETY: all-zero is a valid `statfs`: it is plain numbers.
    let mut fs: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `statfs`.
    (unsafe { libc::fstatfs(fd, &raw mut fs) } == 0).then_some(fs)
}

/// FS_IOC_GETFSUUID, Linux 6.9: for file systems that are not known here.
fn uuid_by_ioctl(fd: i32) -> Option<[u8; 16]> {
    #[repr(C)]
    struct FsUuid {
        len: u8,
        uuid: [u8; 16],
    }
    /// _IOR(0x15, 0, struct fsuuid2)
    const FS_IOC_GETFSUUID: libc::c_ulong = 0x8011_1500;
    let mut answer = FsUuid { len: 0, uuid: [0; 16] };
    // SAFETY: the ioctl writes one struct fsuuid2, which has this layout.
    let result = unsafe { libc::ioctl(fd, FS_IOC_GETFSUUID as _, &raw mut answer) };
    (result == 0 && answer.len == 16 && answer.uuid != [0; 16]).then_some(answer.uuid)
}

/// statfs's f_fsid, where the file system derives it from its UUID and not from the device number.
fn uuid_by_fsid(fd: i32) -> Option<[u8; 16]> {
    let fs = statfs(fd)?;
    // SAFETY: `fsid_t` is two 32-bit integers in every libc on Linux.
    let fsid: [u8; 8] = unsafe { std::mem::transmute(fs.f_fsid) };
    (matches!(fs.f_type as u64, magic::EXT4 | magic::BTRFS) && fsid != [0; 8]).then(|| {
        let mut uuid = *b"f_fsid\0\0\0\0\0\0\0\0\0\0";
        uuid[8..].copy_from_slice(&fsid);
        uuid
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, rename};

    #[test]
    fn a_file_keeps_its_identity_through_renames_and_not_through_replacement() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let of = |path| identity(File::open(path).expect("open")).expect("an identity");
        File::create(&a).expect("create");
        let first = of(&a);
        rename(&a, &b).expect("rename");
        assert_eq!(of(&b), first);
        std::fs::remove_file(&b).expect("unlink");
        File::create(&a).expect("create");
        assert_ne!(of(&a), first, "a reused inode is another file");
    }
}
