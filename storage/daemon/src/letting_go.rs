//! A front gives a managed file up, because another machine is about to write it: all of it is in the file, the log knows it no more,
//! and its guard is down.
//!
//! Whoever asks promises that nothing of this machine writes the file meanwhile, and asks for it anew when it is to be written here
//! again.

use seawall_core::FileRef;

use crate::errors::DaemonError;
use crate::parts::files::real_sync;
use crate::state::Daemon;
use crate::{aside, destaging, forget};

/// Gives it up. One that is not managed is given up already.
///
/// # Errors
/// The disk did not take it, or its guard stays up: then all is as before.
pub(crate) fn let_go(daemon: &Daemon, file: FileRef) -> Result<(), DaemonError> {
    // What can be done before anybody is kept waiting.
    destaging::round(daemon);
    let _alone = daemon.registering.turn();
    let known = daemon.files.get(file.slot).filter(|managed| managed.reference == file);
    if let Some(managed) = known {
        if !daemon.engine.evict(daemon.me(), file, || real_sync(&managed)) {
            return Err(DaemonError::Undrained { files: vec![managed.current_path().display().to_string()] });
        }
        forget::strike_out(daemon, file.slot, (managed.dev, managed.ino));
    }
    if !daemon.has_its_log() {
        return Err(DaemonError::TakenOver);
    }
    aside::lower_quiet(daemon, Vec::new())
}
