//! Reads everything back and compares it with what the writers know they wrote.
//!
//! Finds: lost writes (an older sequence), torn or garbled blocks, misplaced blocks, missing or
//! foreign appended blocks, blocks out of their writer's order. Does *not* show durability: it reads
//! through the page cache. The expectation can be saved and checked after a crash instead.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::options::Pattern;
use super::plan::Plan;
use crate::block;
use crate::sys::{Fd, OpenMode};

/// What must be in the files after a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Expectation {
    /// Block size.
    pub bs: usize,
    /// Where the writes went.
    pub pattern: Pattern,
    /// Sequences of the run are above this.
    pub base: u64,
    /// One entry for each worker.
    pub writers: Vec<Written>,
}

/// What one worker wrote.
#[derive(Debug, Serialize, Deserialize)]
pub struct Written {
    /// File name in the data directory.
    pub file: String,
    /// The worker's number, as in its blocks.
    pub writer: u32,
    /// Its blocks.
    pub content: Content,
}

/// The blocks of one worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Content {
    /// The latest sequence of each block of its region; 0: not written in this run.
    Overwritten {
        /// Where the region starts.
        first_block: u64,
        /// One sequence a block.
        seqs: Vec<u64>,
    },
    /// Appended this many blocks.
    Appended {
        /// Warm-up included.
        count: u64,
    },
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Blocks read.
    pub blocks: u64,
    /// Blocks that are not what they must be.
    pub errors: u64,
    /// The first few of them.
    pub examples: Vec<String>,
}

impl Checked {
    fn fault(&mut self, what: String) {
        self.errors += 1;
        if self.examples.len() < 10 {
            self.examples.push(what);
        }
    }
}

impl Expectation {
    /// An expectation without writers yet.
    pub fn new(plan: &Plan) -> Self {
        let options = &plan.options;
        Expectation { bs: options.bs, pattern: options.pattern, base: plan.base, writers: Vec::new() }
    }

    /// Saves it for a check by another process.
    pub fn save(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_vec(self)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads a saved one.
    pub fn load(path: &Path) -> Result<Self> {
        let json = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&json)
            .with_context(|| format!("{} does not hold an expectation", path.display()))
    }
}

/// Checks every worker's blocks in `dir`.
pub fn check(dir: &Path, expectation: &Expectation) -> Result<Checked> {
    let mut checked = Checked::default();
    let mut appended: HashMap<&str, HashMap<u32, u64>> = HashMap::new();
    for written in &expectation.writers {
        match &written.content {
            Content::Overwritten { first_block, seqs } => {
                check_region(dir, expectation.bs, written, *first_block, seqs, &mut checked)?;
            }
            Content::Appended { count } => {
                appended.entry(&written.file).or_default().insert(written.writer, *count);
            }
        }
    }
    for (file, counts) in appended {
        check_appended(dir, file, expectation, &counts, &mut checked)?;
    }
    Ok(checked)
}

fn check_region(
    dir: &Path,
    bs: usize,
    written: &Written,
    first_block: u64,
    seqs: &[u64],
    checked: &mut Checked,
) -> Result<()> {
    let path = dir.join(&written.file);
    let fd = Fd::open(&path, OpenMode::Read).with_context(|| format!("cannot open {}", path.display()))?;
    let mut block = vec![0; bs];
    for (i, &seq) in seqs.iter().enumerate() {
        let number = first_block + i as u64;
        block.fill(0);
        fd.pread_full(&mut block, number * bs as u64)?;
        checked.blocks += 1;
        let place = || format!("{} block {number}", written.file);
        match block::read(&block) {
            Err(damage) => checked.fault(format!("{}: {damage}", place())),
            Ok(tag) if tag.number != number => {
                checked.fault(format!("{}: holds block {}", place(), tag.number));
            }
            // Not written in this run: any earlier run's content will do.
            Ok(_) if seq == 0 => {}
            Ok(tag) if tag.seq != seq || tag.writer != written.writer => checked.fault(format!(
                "{}: holds sequence {} of writer {}, expected {seq} of writer {}",
                place(),
                tag.seq,
                tag.writer,
                written.writer
            )),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn check_appended(
    dir: &Path,
    file: &str,
    expectation: &Expectation,
    counts: &HashMap<u32, u64>,
    checked: &mut Checked,
) -> Result<()> {
    let mut seen = check_order(dir, file, expectation, checked)?;
    for (writer, &count) in counts {
        let found = seen.remove(writer).unwrap_or(0);
        if found != count {
            checked.fault(format!("{file}: writer {writer} appended {count} blocks, {found} are there"));
        }
    }
    for writer in seen.into_keys() {
        checked.fault(format!("{file}: blocks of an unknown writer {writer}"));
    }
    Ok(())
}

/// Each writer's blocks must come in its order. Returns how many each has in the file.
fn check_order(
    dir: &Path,
    file: &str,
    expectation: &Expectation,
    checked: &mut Checked,
) -> Result<HashMap<u32, u64>> {
    let path = dir.join(file);
    let fd = Fd::open(&path, OpenMode::Read).with_context(|| format!("cannot open {}", path.display()))?;
    let bs = expectation.bs;
    let mut seen: HashMap<u32, u64> = HashMap::new();
    let mut block = vec![0; bs];
    let len = fd.size()?;
    if !len.is_multiple_of(bs as u64) {
        checked.fault(format!("{file}: size {len} is not a multiple of the block size {bs}"));
    }
    for at in 0..len / bs as u64 {
        fd.pread_full(&mut block, at * bs as u64)?;
        checked.blocks += 1;
        let tag = match block::read(&block) {
            Ok(tag) => tag,
            Err(damage) => {
                checked.fault(format!("{file} block {at}: {damage}"));
                continue;
            }
        };
        // 0, 1, 2, … with sequences base+1, base+2, …
        let next = seen.entry(tag.writer).or_default();
        if tag.number != *next || tag.seq != expectation.base + *next + 1 {
            checked.fault(format!(
                "{file} block {at}: writer {} wrote {} where {next} is due",
                tag.writer, tag.number
            ));
        }
        *next = tag.number + 1;
    }
    Ok(seen)
}
