//! What the guest does, and how long each request took.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use seawall_guest::{Guest, Op};

/// Bytes of a small request.
pub const BLOCK: u64 = 4096;

/// How long each write and its flush took, µs.
pub fn write_and_flush(guest: &mut Guest, length: Duration, seed: u64) -> Result<Vec<f64>> {
    let mut places = Places::new(seed, guest.bytes() / BLOCK);
    let (begin, mut taken) = (Instant::now(), Vec::new());
    while begin.elapsed() < length {
        let start = Instant::now();
        let data = vec![taken.len() as u8; BLOCK as usize];
        guest.ask(Op::Write(places.next() * BLOCK, data)).map_err(|e| anyhow!(e))?;
        guest.ask(Op::Flush).map_err(|e| anyhow!(e))?;
        taken.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(taken)
}

/// How long each read took, µs, so many at once.
pub fn read(
    guest: &mut Guest,
    length: Duration,
    at_once: usize,
    bytes: u64,
    is_random: bool,
) -> Result<Vec<f64>> {
    let blocks = guest.bytes() / bytes;
    let mut places = Places::new(7, blocks);
    let mut sequence = 0;
    let mut next = || {
        sequence += 1;
        let block = if is_random { places.next() } else { sequence % blocks };
        Op::Read(block * bytes, bytes as usize)
    };
    let mut began = [Instant::now(); seawall_guest::SLOTS as usize];
    let (begin, mut taken) = (Instant::now(), Vec::new());
    let mut under_way = 0;
    loop {
        let is_over = begin.elapsed() >= length;
        while under_way < at_once && !is_over {
            let Some(slot) = guest.begin(0, next()) else { break };
            began[usize::from(slot)] = Instant::now();
            under_way += 1;
        }
        if under_way == 0 {
            return Ok(taken);
        }
        let done = guest.next(0).map_err(|e| anyhow!(e))?;
        if done.status != 0 {
            bail!("a read failed with status {}", done.status);
        }
        under_way -= 1;
        taken.push(began[usize::from(done.slot)].elapsed().as_secs_f64() * 1e6);
    }
}

/// Blocks in no order, the same in every run.
struct Places {
    state: u64,
    blocks: u64,
}

impl Places {
    fn new(seed: u64, blocks: u64) -> Self {
        Self { state: seed, blocks }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        seawall_load::block::mix(self.state) % self.blocks
    }
}
