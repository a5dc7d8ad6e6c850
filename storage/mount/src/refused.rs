//! Directories for which the daemon was asked in vain: their names are not in the log, and it is not asked again.

use std::collections::HashSet;
use std::sync::Mutex;

use seawall_media::locks::lock;

/// By st_dev and st_ino.
#[derive(Default)]
pub struct Refused(Mutex<HashSet<(u64, u64)>>);

impl Refused {
    /// True for one of them.
    pub fn has(&self, inode: (u64, u64)) -> bool {
        lock(&self.0).contains(&inode)
    }

    /// Notes one.
    pub fn note(&self, inode: (u64, u64)) {
        lock(&self.0).insert(inode);
    }
}
