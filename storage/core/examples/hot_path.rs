//! What a logged write costs beside the same write without it: medians of interleaved rounds, in µs.
//!
//! `cargo run --release -p seawall-core --example hot_path [DIR]`: the pool is emulated, the file lies in DIR.

#[path = "../tests/core/common/mod.rs"]
#[allow(dead_code)] // The tests use the rest.
mod common;

use std::os::unix::fs::FileExt;
use std::time::Instant;

use common::World;

const FILE: u64 = 64 << 20;
const OPS: u64 = 8000;

fn main() {
    let world = World::new(1 << 30);
    let m = world.manage("wal");
    m.file.set_len(0).expect("truncate");
    let block = vec![0x5au8; 1 << 20];
    for i in 0..FILE >> 20 {
        m.file.write_all_at(&block, i << 20).expect("write");
    }
    m.file.sync_all().expect("sync");
    world.fsync(&m);
    for size in [4096usize, 8192] {
        let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8 | 1).collect();
        let offset = |i: u64| (i * size as u64 * 7919) % (FILE - size as u64) / size as u64 * size as u64;
        let (mut bare, mut logged) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            bare.push(time(|i| m.file.write_all_at(&data, offset(i)).expect("write")));
            logged.push(time(|i| {
                world.pwrite(&m, 0, &data, offset(i));
                world.fsync(&m);
            }));
            m.file.sync_all().expect("sync");
            let round = world.destage(&m);
            if std::env::var_os("VERBOSE").is_some() {
                eprintln!("{round:?}, tracked: {}", world.is_tracked(&m));
            }
        }
        let (bare, logged) = (median(&mut bare), median(&mut logged));
        println!("{size}: pwrite {bare:.3}  logged pwrite + fsync {logged:.3}  ratio {:.2}", logged / bare);
    }
}

fn time(mut op: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..OPS).for_each(&mut op);
    start.elapsed().as_secs_f64() * 1e6 / OPS as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
