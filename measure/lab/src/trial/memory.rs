//! Less memory than data: what is in the page cache already, read on somebody else's account, would answer for the disk.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use seawall_load::sys::{Fd, OpenMode};

/// Drops the pages of all files below `dir`. They were synced before.
pub fn forget(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            forget(&path)?;
        } else if kind.is_file() {
            let file =
                Fd::open(&path, OpenMode::Read).with_context(|| format!("cannot open {}", path.display()))?;
            file.forget_pages().with_context(|| format!("cannot drop the pages of {}", path.display()))?;
        }
    }
    Ok(())
}
