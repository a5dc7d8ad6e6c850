//! What the backing file system says of a file, in FUSE's words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use rustix::fs::{FileType as Kind, Stat, Timespec};

/// How long the kernel believes names and attributes. Everything passes through the mount, so this bounds only
/// for how long somebody else's change of the backing directory may go unnoticed.
pub const TTL: Duration = Duration::from_secs(1);

/// The kernel's encoding of a device number in FUSE: 12 bits of major, 20 of minor.
pub fn encode_device(dev: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// The reverse.
pub fn decode_device(dev: u32) -> u64 {
    rustix::fs::makedev((dev & 0xf_ff00) >> 8, dev & 0xff | (dev >> 12) & 0xf_ff00)
}

/// FUSE's name of a type.
pub fn kind(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::RegularFile | Kind::Unknown => FileType::RegularFile,
    }
}

/// Attributes as replied under the node's number.
#[allow(clippy::unnecessary_cast)] // Widths differ between architectures.
pub fn of(stat: &Stat, node: INodeNo) -> FileAttr {
    FileAttr {
        ino: node,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec as u32),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec as u32),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        crtime: UNIX_EPOCH,
        kind: kind(Kind::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: encode_device(stat.st_rdev),
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// Seconds may be negative, nanoseconds never are.
fn time(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.unwrap_or(UNIX_EPOCH) + Duration::from_nanos(nanoseconds.into())
}

/// A time as utimensat(2) wants it, from what fuser made of it: before 1970 it takes the nanoseconds away from the
/// seconds too, so they are given back here.
pub fn timespec(time: SystemTime) -> Timespec {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() },
        Err(before) => {
            let before = before.duration();
            Timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fuser does it.
    fn system_time(seconds: i64, nanoseconds: u32) -> SystemTime {
        let whole = Duration::new(seconds.unsigned_abs(), nanoseconds);
        if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole }
    }

    #[test]
    fn times_arrive_as_they_were_sent() {
        for (seconds, nanoseconds) in [(0, 0), (1, 999_999_999), (-1, 0), (-2, 1), (1 << 33, 5)] {
            let there = timespec(system_time(seconds, nanoseconds));
            assert_eq!((there.tv_sec, there.tv_nsec), (seconds, i64::from(nanoseconds)));
        }
    }

    #[test]
    fn times_are_told_as_they_are() {
        assert_eq!(time(-5, 7), UNIX_EPOCH - Duration::from_secs(5) + Duration::from_nanos(7));
        assert_eq!(time(5, 7), UNIX_EPOCH + Duration::new(5, 7));
    }

    #[test]
    fn device_numbers_survive_too() {
        for (major, minor) in [(1, 3), (8, 300), (4095, 0xf_ffff)] {
            let dev = rustix::fs::makedev(major, minor);
            assert_eq!(decode_device(encode_device(dev)), dev);
        }
    }
}
