//! Files that are synced without the log: one is noted, so that `seawall run` can say why nothing was gained.

use core::ffi::c_int;

use seawall_core::policy::{self, Manage};
use seawall_wire::shm::Stray;

use crate::again::{Few, fingerprint};
use crate::sys::Stat;
use crate::{classify, session, sys};

/// Inodes that were looked at: a program that writes new files again and again uses few of them.
static LOOKED: Few = Few::new();

/// To be called for every real sync of a file that is not managed.
pub fn note(fd: c_int, stat: &Stat) {
    let Some(engine) = session::joined() else { return };
    let header = engine.shm().header();
    let wants = Stray::ALL.map(|kind| header.wants_stray(kind));
    if wants == [false; 2] || !(stat.regular && stat.links > 0) {
        return;
    }
    if LOOKED.put(fingerprint([stat.dev, stat.ino, 0])) {
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
