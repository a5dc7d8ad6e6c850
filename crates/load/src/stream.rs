//! `stream`: how fast a file is read, or written from its beginning to its end.
//!
//! Each page of the file says where it is, and every block that is read is looked at.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::sys::{Fd, OpenMode};

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
}

/// Runs it.
pub fn run(options: &Options) -> Result<Report> {
    ensure!(options.bs > 0 && options.bs.is_multiple_of(PAGE), "--bs is not whole pages of {PAGE} bytes");
    ensure!(options.size >= options.bs as u64, "--size is less than a block");
    for path in &options.cold {
        let cached = Fd::open(path, OpenMode::ReadWrite)?;
        cached.fdatasync()?;
        cached.forget_pages()?;
    }
    let mode = if options.op == Op::Write { OpenMode::ReadWrite } else { OpenMode::Read };
    let file = Fd::open(&options.file, mode).with_context(|| options.file.display().to_string())?;
    let begin = Instant::now();
    let blocks = match options.op {
        Op::Write => write(&file, options)?,
        Op::Read => (0..all(options)).try_fold(0, |n, block| read(&file, options, block).map(|()| n + 1))?,
        Op::Random => random(&file, options, begin)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    let blocks_s = blocks as f64 / seconds;
    Ok(Report { blocks, seconds, blocks_s, mb_s: blocks_s * options.bs as f64 / 1e6 })
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

fn read(file: &Fd, options: &Options, block: u64) -> Result<()> {
    thread_local! {
        static BYTES: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    BYTES.with_borrow_mut(|bytes| {
        bytes.resize(options.bs, 0);
        let at = block * options.bs as u64;
        let n = file.pread_full(bytes, at)?;
        ensure!(n == options.bs, "the file ends at {}", at + n as u64);
        for (i, page) in bytes.chunks(PAGE).enumerate() {
            let wanted = at + (i * PAGE) as u64;
            ensure!(page[..8] == wanted.to_le_bytes(), "the page at {wanted} is another one");
        }
        Ok(())
    })
}

fn random(file: &Fd, options: &Options, begin: Instant) -> Result<u64> {
    let time = Duration::from_secs_f64(options.seconds);
    let (mut blocks, mut state) = (0_u64, 0x9e37_79b9_7f4a_7c15_u64);
    while !blocks.is_multiple_of(64) || begin.elapsed() < time {
        // xorshift: any order will do, but the same one on every side.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        read(file, options, state % all(options))?;
        blocks += 1;
    }
    Ok(blocks)
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
            cold: vec![file.clone()],
        };
        assert_eq!(run(&options(Op::Write))?.blocks, 8);
        assert_eq!(run(&options(Op::Read))?.blocks, 8);
        assert!(run(&options(Op::Random))?.blocks >= 64);
        Fd::open(&file, OpenMode::ReadWrite)?.pwrite_all(&[9; 8], 4096)?;
        assert!(run(&options(Op::Read)).unwrap_err().to_string().contains("4096"));
        Ok(())
    }
}
