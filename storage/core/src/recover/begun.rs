//! The mark of a replay that began in this boot and has not ended.
//!
//! After a power cut a file that was changed since the machine started is refused, because a replay would undo that
//! change. But a replay that was killed, or that met a full disk, has changed files itself and has to be made again. So
//! it leaves a mark before its first write and removes it when the log is closed. The mark lies in memory: it does not
//! outlive the boot whose changes it excuses.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::pool::{MEMORY, Pool, boot};

/// The mark of one pool.
pub(super) struct Begun {
    path: PathBuf,
    /// The pool's owner; a mark of any other user except root does not count.
    owner: u32,
}

impl Begun {
    pub(super) fn of(pool: &Pool) -> Self {
        let path = Path::new(MEMORY).join(format!("seawall-{:032x}.replay", pool.uuid()));
        Self { path, owner: pool.superblock.owner }
    }

    /// True if a replay of this pool was cut short in this boot.
    pub(super) fn is_set(&self) -> bool {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.is_file() && (found.uid() == 0 || found.uid() == self.owner));
        ours && std::fs::read(&self.path).is_ok_and(|mark| mark == boot())
    }

    /// Files are about to be changed.
    pub(super) fn set(&self) -> io::Result<()> {
        if self.is_set() {
            return Ok(());
        }
        // Any mark there is not ours: it is from another boot, or somebody else's.
        self.clear();
        let mut options = OpenOptions::new();
        let mut mark = options.write(true).create_new(true).mode(0o600).open(&self.path)?;
        mark.write_all(&boot())
    }

    /// The log is closed.
    pub(super) fn clear(&self) {
        // A mark that stays excuses changes of this boot to files with live records; there are none now.
        let _ = std::fs::remove_file(&self.path);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
