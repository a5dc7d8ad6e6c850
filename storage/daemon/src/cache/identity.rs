//! Which file it is, and its size and times now.

use std::fs::File;
use std::hash::Hasher;
use std::os::fd::AsFd;

use rustix::fs::fstat;
use seawall_cache::shared::Identity;
use seawall_media::identity;

/// Which file it is, and its size and times now.
pub(super) fn now(fd: impl AsFd) -> Option<Identity> {
    let stat = fstat(&fd).ok()?;
    let who = identity(&fd).ok()?;
    let ns = |seconds: i64, ns: u64| seconds.saturating_mul(1_000_000_000).saturating_add(ns as i64);
    Some(Identity {
        fs: who.fs,
        inode: stat.st_ino,
        generation: generation(who.kind, &who.handle),
        size: stat.st_size as u64,
        mtime_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// The handle has it, with more, and in another place on every file system: all of it in one number.
fn generation(kind: i32, handle: &[u8]) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.write(&kind.to_le_bytes());
    hash.write(handle);
    hash.finish()
}

/// FNV-1a: the number must come out the same in every build.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// True if no name of the file is left.
pub(super) fn is_unlinked(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| stat.st_nlink == 0)
}
