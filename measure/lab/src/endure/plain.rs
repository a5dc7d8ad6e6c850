//! What the disk takes: a plain program writes the same bytes through the page cache and syncs them.
//!
//! As many bytes between two syncs as the destager gets: it is woken when half of the log is used. A block that is
//! written twice in between reaches the disk once, here as there, so the two can be compared.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::Result;
use seawall_load::block::mix;
use seawall_load::write::Pattern;

use super::plan::{BLOCK_BYTES, file_bytes};
use crate::lab::Lab;
use crate::process::check_interrupted;

const CHUNK_BYTES: usize = 1 << 20;

/// Bytes a second, as the writer counts them.
pub fn rate(lab: &Lab, pattern: Pattern, lasts: Duration) -> Result<f64> {
    let path = lab.work.path().join("plain");
    let measured = File::create_new(&path).map_err(Into::into).and_then(|file| {
        let size = file_bytes(lab.pool.size());
        let chunk = vec![0x5a; CHUNK_BYTES];
        (0..size).step_by(CHUNK_BYTES).try_for_each(|at| file.write_all_at(&chunk, at))?;
        lab.settle()?;
        measure(&file, pattern, size, lab.pool.size() / 2, lasts)
    });
    fs::remove_file(&path)?;
    measured
}

fn measure(file: &File, pattern: Pattern, size: u64, between: u64, lasts: Duration) -> Result<f64> {
    let (begin, mut written) = (Instant::now(), 0);
    while begin.elapsed() < lasts {
        check_interrupted()?;
        let ops = written / BLOCK_BYTES..(written + between) / BLOCK_BYTES;
        for i in ops {
            let block = if pattern == Pattern::Random { mix(i) } else { i } % (size / BLOCK_BYTES);
            file.write_all_at(&mix(i).to_le_bytes().repeat(BLOCK_BYTES as usize / 8), block * BLOCK_BYTES)?;
        }
        file.sync_data()?;
        written += between;
    }
    Ok(written as f64 / begin.elapsed().as_secs_f64())
}
