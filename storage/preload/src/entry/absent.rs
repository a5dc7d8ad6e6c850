//! A rollback journal that SQLite removes after each transaction (mode `delete`) stays beside the guard, empty, and is shown
//! to nobody until it is made again (`absent` in seawall-core's engine).
//!
//! | call | what is done |
//! |---|---|
//! | unlink of a journal, from the third one on | its bytes go by a record, the file is absent |
//! | stat, access, open | ENOENT |
//! | open with O_CREAT | the same file again, empty |
//! | anything else of that name | the file is removed for good first ([`guard::with`]) |
//!
//! Only where its guard is up: whoever opens the database without Seawall does not meet an empty journal.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libc::{
    AT_SYMLINK_NOFOLLOW, O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_EXCL, O_LARGEFILE, O_NOFOLLOW, O_TRUNC,
};
use seawall_core::{Errno, Scope, stand_in};

use super::truncate_fallocate::file as truncate;
use crate::classify::{self, Intent, Kind};
use crate::look::{self, Seen};
use crate::sys::{self, Stat};
use crate::{fdtable, guard};

/// Flags of an open that make no difference to a file that was there before.
const PLAIN: c_int = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_APPEND | O_LARGEFILE;

/// A journal that is removed once or twice would only pay for its place in the log.
const REMOVALS: u64 = 3;
const PLACES: usize = 64;
/// How often a journal was removed: a hash of its name, and the number in the lowest bits. Its inode is another one each
/// time. Names that meet at one place are counted anew, which costs time only.
static REMOVED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
const COUNT: u64 = 0xf;

/// open(2) of an absent journal. `None`: there is none, or none any more.
pub fn opened(dir: c_int, path: &CStr, flags: c_int, mode: libc::mode_t) -> Option<Result<c_int, Errno>> {
    let mut room = guard::room();
    let (aside, absent) = guard::absent_journal(dir, path, &mut room)?;
    match flags & O_CREAT {
        0 => Some(Err(Errno::NOENT)),
        _ => made_again(&absent, dir, aside, (flags, mode)).map(Ok),
    }
}

fn made_again(
    absent: &Seen,
    dir: c_int,
    aside: &CStr,
    (flags, mode): (c_int, libc::mode_t),
) -> Option<c_int> {
    let stat = &absent.stat;
    let is_plain = flags & !PLAIN == 0 && flags & O_ACCMODE != libc::O_RDONLY;
    let is_alike = stat.permissions == mode & 0o777 && sys::would_own(stat.uid);
    if !is_plain || !is_alike || stat.links != 1 {
        return None;
    }
    let fd = sys::openat(dir, aside, flags & !(O_CREAT | O_EXCL | O_TRUNC) | O_NOFOLLOW, 0).ok()?;
    let is_it = sys::fstat(fd).is_ok_and(|found| (found.dev, found.ino) == (stat.dev, stat.ino));
    if is_it && absent.engine.appear(absent.who, absent.file) {
        return Some(fd);
    }
    sys::close(fd);
    None
}

/// unlink(2) of a journal that will be made again. `None`: it is to be removed from its directory.
pub fn removed(dir: c_int, path: &CStr) -> Option<Result<usize, Errno>> {
    let mut room = guard::room();
    let aside = guard::journal_aside(dir, path, &mut room)?;
    let seen = look::at(dir, aside, AT_SYMLINK_NOFOLLOW);
    let is_next = match &seen {
        Some(seen) if seen.stat.links != 1 => false,
        Some(seen) if guard::is_absent(seen) => return Some(Err(Errno::NOENT)),
        Some(_) => true,
        None => {
            let stat = sys::fstatat(dir, aside, AT_SYMLINK_NOFOLLOW).ok()?;
            stat.regular && stat.links == 1 && is_removed_often(&stat, path)
        }
    };
    if !is_next {
        return None;
    }
    let fd = sys::openat(dir, aside, libc::O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0).ok()?;
    let has_vanished = vanishes(fd);
    fdtable::reset(fd);
    sys::close(fd);
    has_vanished.then_some(Ok(0))
}

/// Empties it in the log. False: it is not in the log.
fn vanishes(fd: c_int) -> bool {
    let Kind::Managed(target) = classify::look_up_or_register(fd, Intent::Hold) else { return false };
    let is_in_log = || target.engine.state(target.file).is_absorbed();
    // What it has so far is synced once.
    let is_ready = is_in_log() || target.sync(fd, Scope::Data).is_ok() && is_in_log();
    let is_empty = || sys::fstat(fd).is_ok_and(|stat| stat.size == 0 && stat.links == 1);
    is_ready && truncate(fd, 0).is_ok() && target.engine.vanish(target.who, target.file, is_empty)
}

fn is_removed_often(stat: &Stat, path: &CStr) -> bool {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let name = stand_in::base(path.to_bytes()).iter().fold(0xcbf2_9ce4_8422_2325 ^ stat.dev, add) & !COUNT;
    let place = &REMOVED[(name >> 32) as usize % PLACES];
    let was = place.load(Relaxed);
    let count = if was & !COUNT == name { (was & COUNT) + 1 } else { 1 };
    place.store(name | count.min(COUNT), Relaxed);
    count >= REMOVALS
}
