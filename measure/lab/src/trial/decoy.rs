//! What directories lie on, and mounts that pretend.

use std::path::PathBuf;

use anyhow::{Context, Result};
use seawall_awr::placement::Placement;

/// A mount that pretends to be on a device.
#[derive(Debug, thiserror::Error)]
#[error("refused: {0}")]
pub struct Refused(String);

/// An error that names it, if it is one.
pub fn refuse_decoy(found: &Placement) -> Result<(), Refused> {
    found.decoy().map_or(Ok(()), |why| Err(Refused(why)))
}

/// `where`: says what directories lie on; one that pretends is an error.
pub fn show_places(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let found =
            Placement::of(path).with_context(|| format!("cannot tell what {} lies on", path.display()))?;
        refuse_decoy(&found)?;
        outln!("{}: {}, mounted at {}", path.display(), found.in_words(), found.mounted_at.display());
    }
    Ok(())
}
