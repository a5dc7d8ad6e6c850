//! The rule of the watermark: a file that is out of the log has no live records, and what a watermark says is
//! persisted before anybody relies on it.
//!
//! That a watermark is never too *high* needs no checker of its own: a record that is skipped and not on disk
//! is missing from the content (`model`).
//!
//! Not verified: files that somebody is inside of at this moment; files whose sync failed, which keep their
//! records by design.

use seawall_core::file::Flag;
use seawall_core::table::FileEntry;
use seawall_core::{Engine, FileRef};

/// Checks the run-time memory against what the pool would say after a power cut now.
///
/// # Errors
/// Which file breaks the rule.
pub fn holds(engine: &Engine, files: &[FileEntry]) -> Result<(), String> {
    for entry in files {
        let file = FileRef { slot: entry.slot, generation: entry.generation };
        let Some(slot) = engine.file(file) else { continue };
        if slot.holder() != 0 || slot.state().has(Flag::FAILED) {
            continue;
        }
        let said = slot.watermark();
        if entry.watermark < said {
            return Err(format!(
                "{file:?} is taken to be on disk up to {said}, the pool says {}",
                entry.watermark
            ));
        }
        slot.check().map_err(|why| format!("{file:?}: {why}"))?;
    }
    Ok(())
}
