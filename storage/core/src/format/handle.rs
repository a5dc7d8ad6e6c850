//! A file as records name it: its handle, and the attributes of a copy that is made again.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Longest handle that a record can hold: ext4's have 8 bytes, XFS's 12.
pub const NAMED_HANDLE_MAX: usize = 24;

/// The identity of a file on its file system: inode number and generation, as the kernel packs them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Handle {
    kind: i32,
    len: u32,
    bytes: [u8; NAMED_HANDLE_MAX],
}

impl Handle {
    /// A handle of this kind. `None`: it is too long.
    pub fn new(kind: i32, handle: &[u8]) -> Option<Self> {
        let mut made = Self { kind, len: handle.len() as u32, bytes: [0; NAMED_HANDLE_MAX] };
        made.bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(made)
    }

    /// Its type, as name_to_handle_at(2) gives it.
    pub fn kind(&self) -> i32 {
        self.kind
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(NAMED_HANDLE_MAX)]
    }

    /// The handle, as a record has it. `None`: there is none, or a record cannot have it.
    pub(super) fn known(self) -> Option<Self> {
        (self.len != 0 && self.len as usize <= NAMED_HANDLE_MAX).then_some(self)
    }
}

/// The attributes of a file that is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// st_mode's lower twelve bits, and [`DIRECTORY`](Self::DIRECTORY).
    pub mode: u32,
    /// st_uid.
    pub uid: u32,
    /// st_gid.
    pub gid: u32,
    /// st_mtime and its nanoseconds.
    pub modified: (i64, u32),
}

impl Attributes {
    /// What the kernel says of a file.
    pub fn of(stat: &rustix::fs::Stat) -> Self {
        let modified = (stat.st_mtime, stat.st_mtime_nsec as u32);
        Self { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, modified }
    }

    /// The bit of st_mode that marks a directory.
    pub const DIRECTORY: u32 = 0o40000;

    /// The same, of a directory.
    pub fn as_directory(self) -> Self {
        Self { mode: self.mode | Self::DIRECTORY, ..self }
    }

    /// True for a directory's attributes.
    pub fn is_directory(&self) -> bool {
        self.mode & Self::DIRECTORY != 0
    }
}
