//! Following an append-only file while its server writes it, and to its end when the server is dead.
//!
//! Every increment is opened as soon as the manifest names it, and kept open: a rewrite removes files, and what was not read
//! yet of them stays readable. Redis writes to one increment at a time, and names the next one in the manifest before it
//! writes to it. So an increment is over when the manifest names a later one and its end has been read *after* that.
//!
//! What does not fit (a gap in the numbers, half a command at the end of an increment that is over, a file that became
//! shorter) is an error: the twin is given everything anew.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::manifest::{Manifest, Part};
use crate::scan::Scan;

/// What is read in one go.
const PIECE: usize = 1 << 20;
/// A rewrite may remove files between the reading of the manifest and their opening.
const TRIES: usize = 20;

/// Where a server has its append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory of its parts.
    pub directory: PathBuf,
    /// `appendfilename`.
    pub name: String,
}

impl Place {
    /// The manifest's path.
    pub fn manifest(&self) -> PathBuf {
        self.directory.join(format!("{}.manifest", self.name))
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// If it is not there or none.
    pub fn read(&self) -> Result<Manifest> {
        let path = self.manifest();
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Manifest::parse(&text).with_context(|| path.display().to_string())
    }
}

/// What the increments go on from.
pub enum Base {
    /// A snapshot.
    Rdb(File),
    /// Commands, or nothing: they are the first of the log.
    Commands,
}

/// A part that is open.
struct Open {
    file: File,
    at: u64,
}

/// An append-only file that is being followed.
pub struct Log {
    place: Place,
    /// The first one is being read.
    parts: VecDeque<Open>,
    /// The number of the last increment.
    last: u64,
    /// Which manifest was read last: a new one is another file.
    seen: (u64, i64, i64),
    piece: Vec<u8>,
    /// Where commands end in what was read.
    pub scan: Scan,
}

impl Log {
    /// Opens all parts as the manifest names them.
    ///
    /// # Errors
    /// If they are not there, or the base is one that cannot be followed.
    pub fn open(place: &Place) -> Result<(Base, Self)> {
        for _ in 0..TRIES {
            let seen = identity(&place.manifest())?;
            let manifest = place.read()?;
            match Self::open_parts(place, &manifest, seen) {
                Err(e) if is_absent(&e) => std::thread::sleep(std::time::Duration::from_millis(5)),
                done => return done,
            }
        }
        bail!("{}: the manifest names files that do not exist", place.manifest().display())
    }

    fn open_parts(place: &Place, manifest: &Manifest, seen: (u64, i64, i64)) -> Result<(Base, Self)> {
        ensure!(!manifest.increments.is_empty(), "the append-only file has no increment yet");
        let mut parts = VecDeque::new();
        let base = match &manifest.base {
            Some(part) => {
                let file = open(place, part)?;
                let mut magic = [0; 5];
                let is_rdb = file.read_exact_at(&mut magic, 0).is_ok() && &magic == b"REDIS";
                match (is_rdb, part.name.ends_with(".rdb")) {
                    (true, true) => Base::Rdb(file),
                    (true, false) => bail!(
                        "{} is from an earlier Redis: a snapshot with commands behind it. BGREWRITEAOF makes \
                         it one of Redis 7",
                        part.name
                    ),
                    (false, _) => {
                        parts.push_back(Open { file, at: 0 });
                        Base::Commands
                    }
                }
            }
            None => Base::Commands,
        };
        for part in &manifest.increments {
            parts.push_back(Open { file: open(place, part)?, at: 0 });
        }
        let last = manifest.increments.last().map_or(0, |part| part.sequence);
        let (place, piece) = (place.clone(), vec![0; PIECE]);
        Ok((base, Self { place, parts, last, seen, piece, scan: Scan::default() }))
    }

    /// Appends to `out` what a replica is sent next. False: the end was reached.
    ///
    /// # Errors
    /// If the thread is lost.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        loop {
            if self.read_part(out)? {
                return Ok(true);
            }
            // Only what is read after the next part is known is this one's end.
            if self.parts.len() == 1 && !self.find_next()? {
                return Ok(false);
            }
            if self.read_part(out)? {
                return Ok(true);
            }
            ensure!(
                self.scan.is_whole(),
                "an increment ends in the middle of a command, and another increment follows"
            );
            self.parts.pop_front();
        }
    }

    fn read_part(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let part = self.parts.front_mut().context("there is no increment")?;
        let n = part.file.read_at(&mut self.piece, part.at).context("cannot read the append-only file")?;
        if n == 0 {
            let size = part.file.metadata().context("cannot read the append-only file")?.len();
            // On a full disk Redis cuts off what it could not write as a whole. The twin may have it already.
            ensure!(size >= part.at, "the append-only file became shorter");
            return Ok(false);
        }
        part.at += n as u64;
        self.scan.feed(&self.piece[..n], out)?;
        // An annotation alone gives nothing to send, but it is progress.
        Ok(true)
    }

    /// Opens the increments that the manifest names since it was read last. False if there are none.
    fn find_next(&mut self) -> Result<bool> {
        let seen = identity(&self.place.manifest())?;
        if seen == self.seen {
            return Ok(false);
        }
        let manifest = self.place.read()?;
        let newer: Vec<&Part> = manifest.increments.iter().filter(|part| part.sequence > self.last).collect();
        ensure!(
            manifest.increments.last().is_some_and(|part| part.sequence >= self.last),
            "the append-only file began anew"
        );
        for part in &newer {
            ensure!(
                part.sequence == self.last + 1,
                "increment {} of the append-only file was missed",
                self.last + 1
            );
            self.parts.push_back(Open { file: open(&self.place, part)?, at: 0 });
            self.last = part.sequence;
        }
        self.seen = seen;
        Ok(!newer.is_empty())
    }
}

fn open(place: &Place, part: &Part) -> Result<File> {
    File::open(place.directory.join(&part.name)).with_context(|| part.name.clone())
}

fn is_absent(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::NotFound)
}

fn identity(path: &Path) -> Result<(u64, i64, i64)> {
    let meta = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    Ok((meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

#[cfg(test)]
mod tests;
