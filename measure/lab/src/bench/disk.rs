//! What the disk takes, for the pace of a steady load: written through the page cache, then synced.
//!
//! Random blocks are probed as random blocks: a disk may take far fewer of them than of a stream.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anyhow::Result;
use seawall_load::block::mix;
use seawall_load::write::Pattern;

use crate::lab::Lab;

const PROBE_BYTES: u64 = 256 << 20;
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes a second.
#[derive(Clone, Copy)]
pub struct Disk {
    stream: f64,
    random: f64,
}

impl Disk {
    /// Measures both, on the data's disk; random writes spread over `file_bytes`.
    pub fn probe(lab: &Lab, block_bytes: u64, file_bytes: u64) -> Result<Self> {
        let path = lab.work.path().join("probe");
        let probed = probe(lab, &File::create_new(&path)?, block_bytes, file_bytes);
        fs::remove_file(&path)?;
        probed
    }

    /// What it takes in this pattern.
    pub fn bytes_per_s(self, pattern: Pattern) -> f64 {
        match pattern {
            Pattern::Random => self.random,
            Pattern::Sequential | Pattern::Append => self.stream,
        }
    }
}

fn probe(lab: &Lab, file: &File, block_bytes: u64, file_bytes: u64) -> Result<Disk> {
    let chunk = vec![0x5a; CHUNK_BYTES];
    let write_stream = |bytes: u64| -> Result<()> {
        for at in (0..bytes).step_by(CHUNK_BYTES) {
            file.write_all_at(&chunk, at)?;
        }
        Ok(())
    };
    write_stream(file_bytes)?; // allocated, as the load's file is
    lab.settle()?;
    let timed = |write: &dyn Fn() -> Result<()>| -> Result<f64> {
        let started = Instant::now();
        write()?;
        file.sync_data()?;
        Ok(PROBE_BYTES as f64 / started.elapsed().as_secs_f64())
    };
    let stream = timed(&|| write_stream(PROBE_BYTES))?;
    let random = timed(&|| {
        let block = &chunk[..block_bytes as usize];
        for i in 0..PROBE_BYTES / block_bytes {
            file.write_all_at(block, mix(i) % (file_bytes / block_bytes) * block_bytes)?;
        }
        Ok(())
    })?;
    Ok(Disk { stream, random })
}
