//! Brings the data files into their starting state: fully written for overwrites (so that no
//! measured write allocates), empty for appends. Not timed.

use anyhow::{Context, Result};

use super::options::Pattern;
use super::plan::Plan;
use crate::block::{self, Tag};
use crate::sys::{Fd, OpenMode};

const CHUNK_LEN: usize = 1 << 20;

/// Prepares every worker's file.
pub fn files(plan: &Plan) -> Result<()> {
    let dir = &plan.options.dir;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for worker in 0..plan.workers() {
        let path = plan.path(worker);
        let fd = Fd::open(&path, OpenMode::ReadWrite)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let prepared = match plan.options.pattern {
            Pattern::Append => fd.truncate(0).and_then(|()| fd.fdatasync()).map_err(Into::into),
            _ => fill_region(&fd, plan, worker),
        };
        prepared.with_context(|| format!("cannot prepare {}", path.display()))?;
    }
    Ok(())
}

fn fill_region(fd: &Fd, plan: &Plan, worker: u32) -> Result<()> {
    let bs = plan.options.bs;
    let first = plan.first_block(worker);
    let end = first + plan.blocks_per_worker;
    if is_filled(fd, bs, first)? && is_filled(fd, bs, end - 1)? {
        return Ok(()); // an earlier run's content: valid blocks with smaller sequences
    }
    let blocks_per_chunk = (CHUNK_LEN / bs).max(1) as u64;
    let mut chunk = vec![0; blocks_per_chunk as usize * bs];
    let mut at = first;
    while at < end {
        let count = blocks_per_chunk.min(end - at) as usize;
        for (i, block) in chunk[..count * bs].chunks_mut(bs).enumerate() {
            block::stamp(block, Tag { number: at + i as u64, seq: 0, writer: worker });
        }
        fd.pwrite_all(&chunk[..count * bs], at * bs as u64)?;
        at += count as u64;
    }
    fd.fdatasync()?;
    Ok(())
}

fn is_filled(fd: &Fd, bs: usize, number: u64) -> Result<bool> {
    let mut block = vec![0; bs];
    let len = fd.pread_full(&mut block, number * bs as u64)?;
    Ok(len == bs && block::read(&block).is_ok_and(|tag| tag.number == number))
}
