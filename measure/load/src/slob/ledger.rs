//! The ledger: which updates were acknowledged, kept outside the database.
//!
//! ```text
//! slob SETUP                     which load of the tables it belongs to
//! start RUN
//! SCHEMA R UNIT RUN THREAD SEQ   one acknowledged update
//! end RUN                        every session ended in order
//! ```
//! A run that has no `end` was cut: each of its sessions may have committed an operation that nobody saw acknowledged.
//! A session notes its line before it goes on.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::stamp::Stamp;
use crate::tally::{Lines, Tally};

/// An acknowledged update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Where.
    pub schema: u32,
    /// What.
    pub stamp: Stamp,
}

/// The load's name in the ledger's first line.
const LOAD: &str = "slob";

/// Appends.
pub struct Writer(Tally);

impl Writer {
    /// Begins a new ledger in place of an old one.
    pub fn create(path: &Path, setup: u64) -> Result<()> {
        Tally::create(path, LOAD, setup)
    }

    /// Goes on with the ledger of the tables that were loaded as `setup`.
    pub fn open(path: &Path, setup: u64) -> Result<Self> {
        Tally::open(path, LOAD, setup).map(Writer)
    }

    /// A run starts.
    pub fn start(&self, run: u32) -> Result<()> {
        self.0.append(&format!("start {run}\n"))
    }

    /// Every session of the run has ended in order.
    pub fn end(&self, run: u32) -> Result<()> {
        self.0.append(&format!("end {run}\n"))
    }

    /// Notes acknowledged updates; when this returns, they outlive this process.
    pub fn acknowledge(&self, all: &[Acknowledged]) -> Result<()> {
        let mut lines = String::new();
        for Acknowledged { schema, stamp } in all {
            let Stamp { run, thread, seq, r, unit } = stamp;
            lines.push_str(&format!("{schema} {r} {unit} {run} {thread} {seq}\n"));
        }
        self.0.append(&lines)
    }
}

/// A ledger, added up.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Acknowledged updates.
    pub updates: u64,
    /// Runs that were cut.
    pub cut: HashSet<u32>,
    /// By schema: where a row's number of updates differs from that of the row before it.
    steps: HashMap<u32, Vec<i64>>,
    /// The last acknowledged `seq` by run and thread. A session's updates are acknowledged in their order.
    last: HashMap<(u32, u16), u64>,
}

impl Sums {
    /// Reads the ledger of the tables that were loaded as `setup` with `rows` rows.
    pub fn read(path: &Path, setup: u64, rows: u64) -> Result<Self> {
        let mut sums = Sums::default();
        Lines::open(path, LOAD, setup)?.each(|words| sums.take(words, rows))?;
        Ok(sums)
    }

    fn take(&mut self, words: &[&str], rows: u64) -> Result<()> {
        match *words {
            ["start", run] => {
                self.cut.insert(run.parse()?);
            }
            ["end", run] => {
                self.cut.remove(&run.parse()?);
            }
            [schema, r, unit, run, thread, seq] => {
                let stamp = Stamp {
                    run: run.parse()?,
                    thread: thread.parse()?,
                    seq: seq.parse()?,
                    r: r.parse()?,
                    unit: unit.parse()?,
                };
                let is_inside = stamp.r <= rows + 1 && stamp.r >= u64::from(stamp.unit);
                ensure!(is_inside, "it names rows that do not exist");
                self.updates += 1;
                self.last.insert((stamp.run, stamp.thread), stamp.seq);
                self.add(schema.parse()?, stamp, rows);
            }
            _ => bail!("this is not a line of SLOB's ledger"),
        }
        Ok(())
    }

    /// Counts an update: an acknowledged one, or another that was found to be there.
    pub fn add(&mut self, schema: u32, stamp: Stamp, rows: u64) {
        let steps = self.steps.entry(schema).or_insert_with(|| vec![0; rows as usize + 2]);
        steps[(stamp.r - u64::from(stamp.unit)) as usize + 1] += 1;
        steps[stamp.r as usize] -= 1;
    }

    /// How often each row from 1 on was updated.
    pub fn expected(&self, schema: u32, rows: u64) -> Vec<u64> {
        let Some(steps) = self.steps.get(&schema) else { return vec![0; rows as usize] };
        let running = steps[1..=rows as usize].iter().scan(0, |sum, step| {
            *sum += step;
            Some(*sum as u64)
        });
        running.collect()
    }

    /// Whether an operation that a row names was acknowledged (or is the load of the tables).
    pub fn is_acknowledged(&self, stamp: &Stamp) -> bool {
        stamp.run == 0 || self.last.get(&(stamp.run, stamp.thread)).is_some_and(|last| stamp.seq <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(seq: u64, r: u64) -> Acknowledged {
        Acknowledged { schema: 1, stamp: Stamp { run: 9, thread: 0, seq, r, unit: 4 } }
    }

    #[test]
    fn rows_are_counted_and_cut_runs_known() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("ledger");
        Writer::create(&path, 5)?;
        let writer = Writer::open(&path, 5)?;
        writer.start(9)?;
        writer.acknowledge(&[update(1, 5), update(2, 6), update(4, 11)])?;
        let sums = Sums::read(&path, 5, 10)?;
        assert_eq!(sums.expected(1, 10), [0, 1, 2, 2, 1, 0, 0, 1, 1, 1]);
        assert_eq!(sums.expected(2, 10), [0; 10]);
        assert!(sums.cut.contains(&9));
        assert!(sums.is_acknowledged(&update(4, 11).stamp) && !sums.is_acknowledged(&update(5, 11).stamp));
        writer.end(9)?;
        assert!(Sums::read(&path, 5, 10)?.cut.is_empty());
        Ok(())
    }

    #[test]
    fn a_ledger_of_other_tables_and_a_garbled_line_are_named() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("ledger");
        Writer::create(&path, 5)?;
        assert!(Writer::open(&path, 6).is_err());
        Writer::open(&path, 5)?.acknowledge(&[update(1, 12)])?;
        let error = Sums::read(&path, 5, 10).expect_err("beyond the table");
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
        std::fs::write(&path, "1 1\n")?;
        assert!(Sums::read(&path, 5, 10).is_err());
        Ok(())
    }
}
