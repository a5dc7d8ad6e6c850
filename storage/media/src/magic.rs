//! What `f_type` says of a file system (statfs(2)).

/// ext4; ext2 and ext3, which one driver serves, share it.
pub const EXT4: u64 = 0xef53;
/// XFS.
pub const XFS: u64 = 0x5846_5342;
/// Btrfs.
pub const BTRFS: u64 = 0x9123_683e;
/// tmpfs.
pub const TMPFS: u64 = 0x0102_1994;
/// ramfs.
pub const RAMFS: u64 = 0x8584_58f6;
/// overlayfs.
pub const OVERLAYFS: u64 = 0x794c_7630;

/// True for ext4 and XFS: a sync of a directory covers every change of names in it, and each such change sets its
/// change time.
pub const fn has_believed_directories(f_type: u64) -> bool {
    matches!(f_type, EXT4 | XFS)
}
