//! Brings back what memory held of a database's files before the machine restarted.
//!
//! ```text
//! every minute: the page cache's share of each piece ─▶ a note
//! at a start:   the note is of an earlier boot ─▶ its pieces are read ahead, beside the server's own recovery
//! ```
//!
//! PostgreSQL itself can bring its shared buffers back (`pg_prewarm`'s autoprewarm); most of what a server reads is in the
//! kernel's cache. A note is a hint: one that is missing, old or damaged costs time and nothing else. It is for servers that
//! read through the page cache; MariaDB reads past it.
//!
//! Not handled here: after a crash of the server alone nothing was lost, and nothing is read.

mod note;
mod pieces;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seawall_media::{in_parallel, resident};

use crate::postmaster::Running;
use crate::size;
use note::Note;
use pieces::{PIECE, Pieces};

/// The first note comes so soon, for a machine that crashes within the first minute.
const FIRST: Duration = Duration::from_secs(10);
/// Between two notes.
const EVERY: Duration = Duration::from_secs(60);
/// Of the memory that is free or could be, so much is filled at most.
const SHARE: f64 = 0.75;
/// What the kernel reads ahead at a time, bytes, whatever it is asked for.
const AHEAD: u64 = 128 << 10;
/// Pieces that are asked for at once: a disk's queue is longer, but the server reads as well.
const THREADS: usize = 4;

/// The files of one data directory.
pub struct Warm {
    data: PathBuf,
}

impl Warm {
    /// Those of PostgreSQL in `data`.
    pub fn new(data: PathBuf) -> Self {
        Self { data }
    }

    /// Brings back what there was, then takes notes for as long as this process lives. In a thread of its own.
    pub fn keep(self) {
        std::thread::spawn(move || {
            if let Some(before) = Note::load(&self.data).filter(|note| !note.is_of_this_boot()) {
                self.bring_back(&before);
            }
            let mut pause = FIRST;
            loop {
                std::thread::sleep(pause);
                pause = EVERY;
                if Running::ready(&self.data).is_some() {
                    self.look().keep(&self.data);
                }
            }
        });
    }

    /// What the page cache holds now.
    fn look(&self) -> Note {
        let mut note = Note::of_now();
        for path in files(&self.data) {
            let Ok(file) = File::open(self.data.join(&path)) else { continue };
            let pieces = held(&file);
            if !pieces.is_empty() {
                note.files.push((path, pieces));
            }
        }
        note
    }

    fn bring_back(&self, before: &Note) {
        // What is free, or what the kernel would give up.
        let free_memory = seawall_awr::memory("MemAvailable").unwrap_or(0);
        let (most, begin) = ((free_memory as f64 * SHARE) as u64, Instant::now());
        let pieces: Vec<_> = before.pieces().take((most / PIECE) as usize).collect();
        let read =
            in_parallel((THREADS, pieces.len()), || (), |(), i| self.read_ahead(pieces[i].0, pieces[i].1));
        let bytes: u64 = read.into_iter().sum();
        if bytes > 0 {
            errln!(
                "seawall: the machine was restarted: requested {} of what memory had held of {}, in {:.1} s",
                size::human(bytes),
                self.data.display(),
                begin.elapsed().as_secs_f64()
            );
        }
    }

    /// Asks the kernel for a piece of a file; how many bytes of it there are.
    fn read_ahead(&self, path: &Path, piece: u64) -> u64 {
        let Ok(file) = File::open(self.data.join(path)) else { return 0 };
        let end = file.metadata().map_or(0, |found| found.len()).min((piece + 1) * PIECE);
        let mut at = piece * PIECE;
        while at < end {
            let len = std::num::NonZeroU64::new(AHEAD.min(end - at));
            if rustix::fs::fadvise(&file, at, len, rustix::fs::Advice::WillNeed).is_err() {
                break;
            }
            at += AHEAD;
        }
        end.saturating_sub(piece * PIECE)
    }
}

/// The pieces of a file of which the page cache holds at least half.
fn held(file: &File) -> Pieces {
    let len = file.metadata().map_or(0, |found| found.len());
    let is_held = |piece: &u64| {
        let here = PIECE.min(len - piece * PIECE);
        resident(file, piece * PIECE, PIECE).is_ok_and(|bytes| bytes * 2 >= here)
    };
    Pieces::of((0..len.div_ceil(PIECE)).filter(is_held))
}

/// The files of tables and indexes, from the data directory; tablespaces too.
fn files(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for top in ["base", "global", "pg_tblspc"] {
        below(data, Path::new(top), &mut found);
    }
    found.sort();
    found
}

fn below(data: &Path, dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(data.join(dir)).into_iter().flatten().flatten() {
        let path = dir.join(entry.file_name());
        // A tablespace is a link.
        match fs::metadata(data.join(&path)) {
            Ok(at) if at.is_dir() => below(data, &path, found),
            Ok(at) if at.is_file() && at.len() > 0 => found.push(path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page cache is real: the files must lie on a disk.
    #[test]
    fn what_was_held_is_noted_and_asked_for_again() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        fs::create_dir_all(dir.path().join("base/5")).expect("made");
        let (hot, cold) = (dir.path().join("base/5/1"), dir.path().join("base/5/2"));
        for path in [&hot, &cold] {
            fs::write(path, vec![7; (3 * PIECE + 4096) as usize]).expect("written");
            File::open(path).expect("there").sync_all().expect("on the disk");
        }
        let drop_pages = |path: &Path| {
            let file = File::open(path).expect("there");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
            held(&file)
        };
        if !drop_pages(&cold).is_empty() {
            return eprintln!("skipped: this file system is memory");
        }
        let warm = Warm::new(dir.path().to_owned());
        let note = warm.look();
        let names: Vec<_> = note.files.iter().map(|(path, pieces)| (path.to_str(), pieces.len())).collect();
        assert_eq!(names, [(Some("base/5/1"), 4)], "what is not in memory is not noted");
        drop_pages(&hot);
        warm.bring_back(&note);
        // The kernel reads on by itself.
        let end = Instant::now() + Duration::from_secs(10);
        while held(&File::open(&hot).expect("there")).len() < 4 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(held(&File::open(&hot).expect("there")).len(), 4);
        assert!(held(&File::open(&cold).expect("there")).is_empty(), "nobody asked for it");
    }
}
