//! The journal of a pool on a block device, lent to fronts: each of them writes it. One that lost the descriptor has
//! the daemon do it.

use std::os::fd::BorrowedFd;

use seawall_core::{Engine, Errno, FileRef};
use seawall_wire::message::Retire;

/// The journal's descriptor, if the pool has a journal; of a mirrored one those of both copies. With the number that says
/// which ones these are.
pub(crate) fn journal(engine: &Engine) -> (u32, Vec<BorrowedFd<'_>>) {
    engine.pool().journal().map_or((0, Vec::new()), |journal| journal.way().lend())
}

/// Raises a file's watermark for a front that holds the file's lock and saw a real sync of it succeed.
///
/// # Errors
/// What the device said; EBADF if the file is not managed, EINVAL for an LSN that was never drawn.
pub(crate) fn retire(engine: &Engine, wanted: Retire) -> Result<(), Errno> {
    let Retire { slot, generation, lsn } = wanted;
    engine.retire_for(FileRef { slot, generation }, lsn)
}
