//! The description of a pool that people read.

use std::path::Path;

use anyhow::{Context, Result};
use seawall_core::pool::block;
use seawall_daemon::kept;
use seawall_media::{Medium, probe};

use crate::size;

/// The pool's medium, probed, and why we say so. Needs no lock.
///
/// # Errors
/// If the file cannot be opened or mapped.
pub fn medium(path: &Path) -> Result<(Medium, String)> {
    if let Some(because) = kept::describe(path)? {
        return Ok((Medium::Replicated, because));
    }
    if block::is_journal(path)? {
        return Ok((Medium::Block, block::describe(path)?));
    }
    let open = std::fs::OpenOptions::new().read(true).write(true).open(path);
    let file = open.with_context(|| format!("cannot open {}", path.display()))?;
    let probed = probe(&file).with_context(|| path.display().to_string())?;
    Ok((probed.medium, probed.because))
}

/// The size of a pool, for people.
///
/// # Errors
/// If it cannot be read.
pub fn how_large(path: &Path) -> Result<String> {
    if let Some(image) = kept::size(path)? {
        return Ok(format!("{} in memory", size::human(image)));
    }
    match block::sizes(path)? {
        Some(sizes) => {
            let (image, journal) = (size::human(sizes.image), size::human(sizes.journal));
            Ok(format!("{image} in memory, {journal} on the device"))
        }
        None => Ok(size::human(std::fs::metadata(path).with_context(|| path.display().to_string())?.len())),
    }
}
