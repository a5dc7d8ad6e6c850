//! Files that are synced without the log: one is noted, so that `seawall run` can say why nothing was gained.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seawall_core::policy::{self, Manage};
use seawall_wire::shm::Stray;

use crate::sys::Stat;
use crate::{classify, session, sys};

/// Files that were looked at: what tells one from another, mixed. Two that meet at one place forget each other.
static LOOKED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
const PLACES: usize = 256;

/// To be called for every real sync of a file that is not managed.
pub fn note(fd: c_int, stat: &Stat) {
    let Some(engine) = session::joined() else { return };
    let header = engine.shm().header();
    let wants = Stray::ALL.map(|kind| header.wants_stray(kind));
    if wants == [false; 2] || !(stat.regular && stat.links > 0) || was_looked_at(stat) {
        return;
    }
    let mut room = [0; libc::PATH_MAX as usize];
    let Some(path) = sys::name_of(fd, &mut room) else { return };
    match policy::decide(engine.shm(), path) {
        Some((_, Manage::IfSqlite)) if !classify::has_magic(fd) => header.note_stray(Stray::Unknown, path),
        // Once, so far.
        Some((_, Manage::Again)) => header.note_stray(Stray::Unknown, path),
        // It will be managed, or the daemon said why not.
        Some((_, manage)) if manage != Manage::Bypass => {}
        None if policy::is_elsewhere(engine.shm(), path, || classify::has_magic(fd)) => {
            header.note_stray(Stray::Elsewhere, path);
        }
        _ => header.note_stray(Stray::Unknown, path),
    }
}

/// True if the file's inode was looked at a while ago: a program that writes new files again and again uses few of them.
fn was_looked_at(stat: &Stat) -> bool {
    let mixed = (stat.ino ^ stat.dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    LOOKED[(mixed >> 32) as usize % PLACES].swap(mixed, Relaxed) == mixed
}
