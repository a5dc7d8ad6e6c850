//! Embedded stores: a small C program around each library, built where it is needed.
//!
//! `PROGRAM DIRECTORY run sync|nosync SECONDS [LEDGER]` commits and notes what was acknowledged; `PROGRAM
//! DIRECTORY check` says what the store holds. [`Store::verdict`] compares the two. C, because the libraries'
//! calls have to be their own; built late, because not everybody who builds Seawall has them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::ledger::{self, Entry, Verdict};

/// Words for how a program is to open its store, in an environment variable: see each `.c`.
pub const SETTINGS: &str = "STORE";

const SHARED: [(&str, &str); 2] = [("main.c", include_str!("main.c")), ("store.h", include_str!("store.h"))];

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// RocksDB.
    Rocksdb,
    /// LMDB.
    Lmdb,
}

impl Store {
    /// Its name, and its library's.
    pub fn name(self) -> &'static str {
        match self {
            Store::Rocksdb => "rocksdb",
            Store::Lmdb => "lmdb",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Store::Rocksdb => include_str!("rocksdb.c"),
            Store::Lmdb => include_str!("lmdb.c"),
        }
    }

    /// What the distribution calls its library's headers.
    fn package(self) -> &'static str {
        match self {
            Store::Rocksdb => "librocksdb-dev",
            Store::Lmdb => "liblmdb-dev",
        }
    }

    /// Where its program is, once it is built in `dir`.
    pub fn program_in(self, dir: &Path) -> PathBuf {
        dir.join(format!("seawall-{}", self.name()))
    }

    /// Builds its program in `dir`, which is empty.
    ///
    /// # Errors
    /// If there is no C compiler, or no such library.
    pub fn build(self, dir: &Path) -> Result<PathBuf> {
        let path = self.program_in(dir);
        for (name, text) in SHARED.iter().chain(&[("store.c", self.source())]) {
            std::fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-pthread", "-o"]).arg(&path).args([dir.join("main.c"), dir.join("store.c")]);
        let built = cc.arg(format!("-l{}", self.name())).output().context("cannot run cc")?;
        let said = String::from_utf8_lossy(&built.stderr);
        ensure!(
            built.status.success(),
            "cannot build {} (is {} installed?)\n{said}",
            self.name(),
            self.package()
        );
        Ok(path)
    }

    /// Compares the ledger with what the program's `check` said.
    ///
    /// # Errors
    /// If either cannot be read.
    pub fn verdict(said: &str, ledger: &Path) -> Result<Verdict> {
        let found: HashSet<Entry> = said
            .lines()
            .map(entry)
            .collect::<Option<_>>()
            .context("a line that the store printed is not a commit")?;
        Ok(Verdict::compare(&ledger::read(ledger)?, &found))
    }
}

fn entry(line: &str) -> Option<Entry> {
    let (client, seq) = line.split_once(' ')?;
    Some(Entry { client: client.parse().ok()?, seq: seq.parse().ok()? })
}
