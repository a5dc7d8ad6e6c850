//! What every step of a recovery works with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::report::Options;
use super::scan::Scan;
use crate::pool::Pool;
use crate::table::{FileEntry, RootEntry};

/// What a recovery works with.
pub(super) struct Ground<'a, L> {
    pub pool: &'a Pool,
    pub locate: &'a L,
    pub scan: &'a Scan,
    pub roots: &'a BTreeMap<u32, RootEntry>,
    pub files: &'a BTreeMap<u32, FileEntry>,
    pub options: Options,
}

impl<L> Ground<'_, L> {
    /// Where a file was registered, as shown to people.
    pub(super) fn path(&self, entry: &FileEntry) -> PathBuf {
        let root = self.roots.get(&entry.root).map(|root| root.path.clone());
        root.unwrap_or_default().join(&entry.path)
    }
}
