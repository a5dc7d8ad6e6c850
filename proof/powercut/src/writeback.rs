//! The kernel's write-back, made restless: any page may reach the disk at any moment, in any order.
//!
//! By itself the kernel waits for seconds before it writes, and a cut would meet a disk that has only seen
//! synced data. `POSIX_FADV_DONTNEED` on a random range of a random file starts write-back there, without a
//! flush, and drops what is clean, so that it has to be read again from the disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::outside::DATA;
use fastrand::Rng;

/// Directories below which a database keeps what matters.
const DEEPEST: usize = 3;

/// Picks files and ranges.
pub struct Writeback {
    rng: Rng,
    files: Vec<PathBuf>,
    turns: usize,
}

impl Writeback {
    /// One for this seed.
    pub fn new(seed: u64) -> Self {
        Writeback { rng: Rng::with_seed(seed ^ 0x0077_7269), files: Vec::new(), turns: 0 }
    }

    /// Writes a few ranges back. Files come and go: whatever fails is left.
    pub fn stir(&mut self) {
        if self.turns.is_multiple_of(20) {
            self.files.clear();
            find(Path::new(DATA), DEEPEST, &mut self.files);
        }
        self.turns += 1;
        for _ in 0..self.files.len().min(8) {
            let path = self.files[self.rng.usize(..self.files.len())].clone();
            // For reading: a writer that Seawall does not know would take the file out of the log.
            let Ok(file) = File::open(path) else { continue };
            let length = file.metadata().map_or(0, |found| found.len());
            let start = self.rng.u64(..length.max(1));
            let some = self.rng.u64(..length - start.min(length) + 1);
            let _ = posix_fadvise(&file, start as i64, some as i64, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
    }
}

/// Files that are written often: the logs first of all. PostgreSQL's hundreds of catalogue files are not.
fn find(directory: &Path, deeper: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && deeper > 0 {
            find(&entry.path(), deeper - 1, found);
        } else if kind.is_file() && entry.metadata().is_ok_and(|found| is_recent(&found)) {
            found.push(entry.path());
        }
    }
}

/// Changed in the last seconds.
fn is_recent(file: &fs::Metadata) -> bool {
    let age = file.modified().ok().and_then(|time| time.elapsed().ok());
    age.is_none_or(|age| age.as_secs() < 5)
}
