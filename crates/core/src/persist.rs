//! Persist: what was appended becomes durable; what is on disk is remembered.
//!
//! After [`records`] returns, every record this thread appended survives what the medium survives. After
//! [`watermark`] returns, recovery will not replay the file's records up to that LSN.

use core::sync::atomic::Ordering::{Acquire, Release};

use seawall_media::fence;
use seawall_wire::shm::File;

use crate::store::Store;
use crate::{Errno, format};

/// Waits for the records this thread appended.
#[inline]
pub fn records() {
    fence();
}

/// Raises a file's watermark: every record of it at or below `lsn` is on disk. The caller holds the file's
/// lock and has seen a real sync succeed that began after those records were published.
///
/// # Errors
/// The medium failed: recovery may replay these records, so nothing that relies on their not being live may be
/// acknowledged.
pub fn watermark(pool: &Store, slot: u32, file: File<'_>, lsn: u64) -> Result<(), Errno> {
    let cell = format::watermark(slot);
    match (pool.change(&[cell.range()], |pool| cell.raise(pool, lsn)), pool.journal()) {
        (Err(Errno::BADF), Some(journal)) => journal.retire(slot, file.generation().load(Acquire), lsn)?,
        (done, _) => done?,
    }
    file.watermark().store(lsn, Release);
    Ok(())
}
