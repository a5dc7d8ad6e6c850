//! Files that their database removed and that stayed, empty, to be made again (`absent` in seawall-core's engine): programs
//! under Seawall do not see them. Where their guard goes everybody would, so they go first.

use std::fs;
use std::os::fd::AsFd;

use nix::libc::{F_RDLCK, F_UNLCK};

use crate::parts::files::{Managed, real_sync};
use crate::state::Daemon;
use crate::sys;

/// Removes it from its directory, if it is absent and nobody has it open for writing: a process that came to it another way,
/// through a mount for one, may be about to make it a journal that a database needs. True: it was removed.
pub(crate) fn remove(daemon: &Daemon, file: &Managed) -> bool {
    if !daemon.engine.is_absent(file.reference) || !sys::lease(file.file.as_fd(), F_RDLCK) {
        return false;
    }
    let out = daemon.engine.take_out(daemon.me(), file.reference, || real_sync(file));
    // Its database may have made it again, and closed it.
    let is_empty = file.file.metadata().is_ok_and(|now| now.len() == 0);
    let is_absent = is_empty && daemon.engine.is_absent(file.reference);
    let is_gone = is_absent && fs::remove_file(file.current_path()).is_ok();
    match is_gone {
        true => out.unlinked(),
        false => out.finish(|| real_sync(file)),
    }
    sys::lease(file.file.as_fd(), F_UNLCK);
    is_gone
}
