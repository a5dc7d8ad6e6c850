//! `stream`: how fast a file is read, or written from its beginning to its end.
//!
//! Each page of the file says where it is, and every block that is read is looked at.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::latency::{Recorder, Summary};
use crate::sys::{self, Fd, OpenMode};

const PAGE: usize = 4096;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// A new file, block after block, and one fdatasync at the end, which counts.
    Write,
    /// Block after block, once.
    Read,
    /// Blocks in no order, until the time is over.
    Random,
}

/// Options of `seawall-load stream`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The file
    #[arg(long)]
    pub file: PathBuf,
    /// What is done
    #[arg(long, value_enum)]
    pub op: Op,
    /// Bytes of the file
    #[arg(long, default_value_t = 64 << 20)]
    pub size: u64,
    /// Bytes of a block: whole pages of 4096
    #[arg(long, default_value_t = 1 << 20)]
    pub bs: usize,
    /// How long blocks are read in no order
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// How long they are read before that, uncounted
    #[arg(long, default_value_t = 0.0)]
    pub warm_up: f64,
    /// Read past the page cache (`O_DIRECT`)
    #[arg(long)]
    pub direct: bool,
    /// Drop the cached pages of this file first
    #[arg(long)]
    pub cold: Vec<PathBuf>,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Blocks.
    pub blocks: u64,
    /// How long it took.
    pub seconds: f64,
    /// Blocks a second.
    pub blocks_s: f64,
    /// Millions of bytes a second.
    pub mb_s: f64,
    /// Share of what was read that the disk was asked for, 0 to 1; more if it was asked for more.
    pub from_disk: f64,
    /// Latency of one block, of those that are read in no order.
    pub latency: Option<Summary>,
}

/// Runs it.
pub fn run(options: &Options) -> Result<Report> {
    ensure!(
        options.bs > 0 && options.bs.is_multiple_of(PAGE),
        "--bs is not a multiple of the page size of {PAGE} bytes"
    );
    ensure!(options.size >= options.bs as u64, "--size is less than a block");
    for path in &options.cold {
        let cached = Fd::open(path, OpenMode::ReadWrite)?;
        cached.fdatasync()?;
        cached.forget_pages()?;
    }
    let mode = match options.op {
        Op::Write => OpenMode::ReadWrite,
        Op::Read | Op::Random if options.direct => OpenMode::ReadDirect,
        Op::Read | Op::Random => OpenMode::Read,
    };
    let file =
        Fd::open(&options.file, mode).with_context(|| format!("cannot open {}", options.file.display()))?;
    let mut reader = Reader::new(&file, options);
    if options.op == Op::Random {
        reader.random(options.warm_up, &mut Recorder::default())?;
    }
    let mut latency = Recorder::default();
    let (begin, before) = (Instant::now(), sys::read_from_disk()?);
    let blocks = match options.op {
        Op::Write => write(&file, options)?,
        Op::Read => (0..all(options)).try_fold(0, |n, block| reader.read(block).map(|()| n + 1))?,
        Op::Random => reader.random(options.seconds, &mut latency)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    let bytes = blocks as f64 * options.bs as f64;
    Ok(Report {
        blocks,
        seconds,
        blocks_s: blocks as f64 / seconds,
        mb_s: bytes / seconds / 1e6,
        from_disk: (sys::read_from_disk()? - before) as f64 / bytes.max(1.0),
        latency: (options.op == Op::Random).then(|| latency.summary()),
    })
}

fn all(options: &Options) -> u64 {
    options.size / options.bs as u64
}

fn write(file: &Fd, options: &Options) -> Result<u64> {
    file.truncate(0)?;
    let mut bytes = vec![b's'; options.bs];
    for block in 0..all(options) {
        let at = block * options.bs as u64;
        for (i, page) in bytes.chunks_mut(PAGE).enumerate() {
            page[..8].copy_from_slice(&(at + (i * PAGE) as u64).to_le_bytes());
        }
        file.pwrite_all(&bytes, at)?;
    }
    file.fdatasync()?;
    Ok(all(options))
}

struct Reader<'a> {
    file: &'a Fd,
    options: &'a Options,
    /// A block, from `start` on: direct reads want it aligned.
    room: Vec<u8>,
    start: usize,
    state: u64,
}

impl<'a> Reader<'a> {
    fn new(file: &'a Fd, options: &'a Options) -> Self {
        let room = vec![0; options.bs + PAGE];
        let start = room.as_ptr().align_offset(PAGE);
        Self { file, options, room, start, state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn read(&mut self, block: u64) -> Result<()> {
        let at = block * self.options.bs as u64;
        let bytes = &mut self.room[self.start..][..self.options.bs];
        let n = self.file.pread_full(bytes, at)?;
        ensure!(n == bytes.len(), "the file ends at {}", at + n as u64);
        for (i, page) in bytes.chunks(PAGE).enumerate() {
            let wanted = at + (i * PAGE) as u64;
            ensure!(page[..8] == wanted.to_le_bytes(), "the page at {wanted} holds another page's content");
        }
        Ok(())
    }

    /// Reads for so many seconds; how many blocks.
    fn random(&mut self, seconds: f64, latency: &mut Recorder) -> Result<u64> {
        let (begin, time) = (Instant::now(), Duration::from_secs_f64(seconds));
        let mut blocks = 0_u64;
        let mut last = begin;
        while last - begin < time {
            // xorshift: any order will do, but the same one on every side.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.read(self.state % all(self.options))?;
            let now = Instant::now();
            latency.record(now - last);
            (last, blocks) = (now, blocks + 1);
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_is_found() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("f");
        let options = |op| Options {
            file: file.clone(),
            op,
            size: 64 << 10,
            bs: 8192,
            seconds: 0.01,
            warm_up: 0.01,
            direct: false,
            cold: vec![file.clone()],
        };
        assert_eq!(run(&options(Op::Write))?.blocks, 8);
        assert_eq!(run(&options(Op::Read))?.blocks, 8);
        let random = run(&options(Op::Random))?;
        assert_eq!(random.latency.map(|l| l.ops), Some(random.blocks));
        Fd::open(&file, OpenMode::ReadWrite)?.pwrite_all(&[9; 8], 4096)?;
        assert!(run(&options(Op::Read)).unwrap_err().to_string().contains("4096"));
        Ok(())
    }
}
