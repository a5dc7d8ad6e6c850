//! The mark of a takeover that has begun, and not ended, in this boot.
//!
//! What it fetched may say that it is of this boot: the log was here before. But the data was elsewhere meanwhile, and this
//! host's page cache proves nothing; so the log is replayed, and nobody goes on with it before. The mark lies in memory:
//! after the next boot nothing says that it is of this one.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use seawall_core::pool::MEMORY;
use seawall_keeper::uuid::uuid_text;
use seawall_media::durable;

/// The mark of one log.
pub(crate) struct Mark(PathBuf);

impl Mark {
    pub fn of(log: [u8; 16]) -> Self {
        Self(Path::new(MEMORY).join(format!("seawall-{}.takeover", uuid_text(log))))
    }

    /// True if a takeover of this user's was cut short.
    pub fn is_set(&self) -> bool {
        let me = rustix::process::geteuid().as_raw();
        std::fs::symlink_metadata(&self.0)
            .is_ok_and(|found| found.is_file() && [0, me].contains(&found.uid()))
    }

    /// A takeover begins.
    pub fn set(&self) -> io::Result<()> {
        if self.is_set() {
            return Ok(());
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0).map(drop)
    }

    /// The log was recovered.
    pub fn clear(&self) -> io::Result<()> {
        durable::remove(&self.0).map(drop)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}
