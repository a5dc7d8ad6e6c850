//! Persist: what was appended becomes durable; what is on disk is remembered.
//!
//! After [`records`] returns, every record this thread appended survives what the medium survives. After
//! [`watermark`] returns, recovery will not replay the file's records up to that LSN.

use core::sync::atomic::Ordering::Release;

use seawall_media::{Region, fence};
use seawall_wire::shm::File;

use crate::format;

/// Waits for the records this thread appended.
#[inline]
pub fn records() {
    fence();
}

/// Raises a file's watermark: every record of it at or below `lsn` is on disk. The caller holds the file's
/// lock and has seen a real sync succeed that began after those records were published.
pub fn watermark(pool: &Region, slot: u32, file: File<'_>, lsn: u64) {
    format::watermark(slot).raise(pool, lsn);
    file.watermark().store(lsn, Release);
}
