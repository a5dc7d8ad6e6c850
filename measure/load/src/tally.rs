//! A ledger's file: what it belongs to, then one line after another.
//!
//! A line is one `write` to a file opened with `O_APPEND`: in the page cache it survives kill -9 of every process
//! involved. A last line without its end was never reported, and does not count.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sys::{Fd, OpenMode};

/// A ledger that is written.
pub struct Tally(Fd);

impl Tally {
    /// Begins a new one, in place of an old one, for what was loaded as number `setup` by `load`.
    pub fn create(path: &Path, load: &str, setup: u64) -> Result<()> {
        std::fs::write(path, format!("{load} {setup:016x}\n"))
            .with_context(|| format!("cannot begin the ledger {}", path.display()))
    }

    /// Goes on with the one of the tables that were loaded as number `setup`.
    pub fn open(path: &Path, load: &str, setup: u64) -> Result<Self> {
        Lines::open(path, load, setup)?;
        let fd = Fd::open(path, OpenMode::Append)
            .with_context(|| format!("cannot open the ledger {}", path.display()))?;
        Ok(Tally(fd))
    }

    /// Appends whole lines; when this returns, they outlive this process.
    pub fn append(&self, lines: &str) -> Result<()> {
        self.0.write_all(lines.as_bytes()).context("cannot append to the ledger")
    }
}

/// A ledger that is read.
pub struct Lines {
    rest: BufReader<std::fs::File>,
    number: u64,
}

impl Lines {
    /// Opens the ledger of the tables that were loaded as number `setup`.
    pub fn open(path: &Path, load: &str, setup: u64) -> Result<Self> {
        let name = || format!("the ledger {}", path.display());
        let mut rest =
            BufReader::new(std::fs::File::open(path).with_context(|| format!("cannot open {}", name()))?);
        let mut first = String::new();
        rest.read_line(&mut first).with_context(|| format!("cannot read {}", name()))?;
        let found =
            first.trim_end().strip_prefix(load).and_then(|id| u64::from_str_radix(id.trim(), 16).ok());
        let found = found.with_context(|| format!("{} is not a ledger of {load}: {first:?}", name()))?;
        ensure!(
            found == setup,
            "{} belongs to another load of the tables ({found:016x}, not {setup:016x}): name the right one with \
             --ledger, or run `setup` again",
            name()
        );
        Ok(Lines { rest, number: 1 })
    }

    /// Shows every line to `see`; its errors get the line's number.
    pub fn each(mut self, mut see: impl FnMut(&[&str]) -> Result<()>) -> Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            self.number += 1;
            if self.rest.read_line(&mut line).context("cannot read the ledger")? == 0 || !line.ends_with('\n')
            {
                return Ok(());
            }
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            see(&words).with_context(|| format!("ledger line {}: {line:?}", self.number))?;
        }
    }
}
