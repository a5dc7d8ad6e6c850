//! The rule of the watermark: a file that is out of the log has no live records, and what a watermark says is
//! persisted before anybody relies on it.
//!
//! That a watermark is never too *high* needs no checker of its own: a record that is skipped and not on disk
//! is missing from the content (`model`).
//!
//! Not verified: files that somebody is inside of at this moment; files whose sync failed, which keep their
//! records by design.

use std::sync::atomic::Ordering::SeqCst;

use seawall_core::Engine;
use seawall_core::table::FileEntry;
use seawall_wire::shm::Flag;

/// Checks the run-time memory against what the pool would say after a power cut now.
///
/// # Errors
/// Which file breaks the rule.
pub fn holds(engine: &Engine, files: &[FileEntry]) -> Result<(), String> {
    for entry in files {
        let Some(f) = engine.shm().file(entry.slot) else { continue };
        let (flags, last, mirror) =
            (f.flags().load(SeqCst), f.last_lsn().load(SeqCst), f.watermark().load(SeqCst));
        let same = f.generation().load(SeqCst) == entry.generation && Flag::USED.any_in(flags);
        if !same || f.lock().load(SeqCst) != 0 || Flag::FAILED.any_in(flags) {
            continue;
        }
        // A file starts one behind: its watermark is below the first LSN it can get.
        if entry.watermark + 1 < mirror {
            return Err(format!(
                "slot {} is taken to be on disk up to {mirror}, the pool says {}",
                entry.slot, entry.watermark
            ));
        }
        // Whoever lost its lock may have drawn an LSN since. Its write is not over yet, and the next sync is real.
        let is_late = Flag::STUCK.any_in(flags);
        if !Flag::TRACKED.any_in(flags) && last > mirror && !is_late {
            return Err(format!("slot {} is out of the log and has records {mirror}..={last}", entry.slot));
        }
    }
    Ok(())
}
