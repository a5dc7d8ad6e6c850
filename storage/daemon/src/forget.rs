//! Forgetting: a slot of the table of files is free again.
//!
//! Only when its file has no live records any more: its last name is gone, its directory is given up, or the log is closed.

use seawall_core::file::{Flag, KeptOut, Slot};

use crate::parts::files::real_sync;
use crate::state::Daemon;

/// Frees a slot whose file has no live records: its last name is gone, or its root is being closed. The
/// caller has the turn of `registering`.
pub(crate) fn forget(daemon: &Daemon, slot: u32) {
    let Some(inode) = daemon.engine.slot(slot).map(Slot::inode) else { return };
    daemon.engine.forget(daemon.me(), slot);
    strike_out(daemon, slot, inode);
}

/// Takes a file that has lost its slot out of the daemon's own tables.
pub(crate) fn strike_out(daemon: &Daemon, slot: u32, inode: (u64, u64)) {
    daemon.held_out.forget(slot);
    daemon.guards.forget(slot);
    if let Some(managed) = daemon.files.remove(slot) {
        daemon.unwatch(&managed.file, inode);
    }
}

/// Forgets the files whose last name is gone, whoever removed it: as long as our descriptors of one are open it keeps its
/// blocks.
pub(crate) fn forget_unlinked(daemon: &Daemon) {
    mark_removed(daemon);
    let marked = daemon.engine.slots().filter(|slot| slot.state().has(Flag::UNLINKED));
    let found: Vec<u32> = marked.map(Slot::number).collect();
    if found.is_empty() {
        return;
    }
    let _alone = daemon.registering.turn();
    for slot in found {
        match daemon.files.get(slot) {
            // Another name was found, or made, after all.
            Some(managed) if !managed.is_unlinked() => {
                daemon.engine.let_back(managed.reference, KeptOut::Unlinked);
            }
            _ => forget(daemon, slot),
        }
    }
}

/// Marks the files that were removed by somebody without Seawall, as the preload marks those that its process removes.
/// What their records hold is on disk before: nobody has synced the directory, so a crash can bring the name back. After
/// a failed sync the records stay, and the file its slot.
fn mark_removed(daemon: &Daemon) {
    for managed in daemon.files.all().iter().filter(|managed| managed.is_unlinked()) {
        let has = |flag: Flag| daemon.engine.state(managed.reference).has(flag);
        if has(Flag::UNLINKED | Flag::FAILED) {
            continue;
        }
        let out = daemon.engine.take_out(daemon.me(), managed.reference, || real_sync(managed));
        match has(Flag::FAILED) {
            false => out.unlinked(),
            true => out.finish(|| real_sync(managed)),
        }
    }
}
