//! What a hit of the block cache costs, beside reading the same block from the page cache and from the disk; and what
//! it costs to announce a write.
//!
//! `cargo run --release -p seawall-cache-study --bin cache-hit [DIRECTORY]`. The directory must be on a disk (default:
//! here); the cache's zone is emulated, in `/dev/shm`. All are measured in turn, many times over; what is printed is
//! the median of the rounds, and ratios to the page cache of the same run. Nothing else should run meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use seawall_cache::shared::{Cache, CachedFile, Identity, Layout, Lookup, Offered, OperationOwner};
use seawall_media::Region;

const BLOCK: usize = 8192;
const BLOCKS: u32 = 4096;
const ROUNDS: usize = 15;
/// Reads of a round; the disk is asked less often.
const READS: u32 = 4096;
const DISK_READS: u32 = 128;

/// A buffer as O_DIRECT wants it.
#[repr(align(4096))]
struct Buffer([u8; BLOCK]);

struct Bench {
    cached: File,
    direct: File,
    cache: Cache,
    file: CachedFile,
    buffer: Box<Buffer>,
    at: u32,
}

impl Bench {
    fn new(dir: &Path) -> io::Result<Self> {
        let path = dir.join(format!("cache-hit-{}", std::process::id()));
        let cached = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let direct = OFlags::DIRECT.bits().cast_signed();
        let direct = OpenOptions::new().read(true).custom_flags(direct).open(&path);
        std::fs::remove_file(&path)?;
        for number in 0..BLOCKS {
            cached.write_all_at(&content(number), u64::from(number) * BLOCK as u64)?;
        }
        cached.sync_all()?;
        let direct = direct?;
        let (cache, file) = filled_cache()?;
        let buffer = Box::new(Buffer([0; BLOCK]));
        Ok(Self { cached, direct, cache, file, buffer, at: 0 })
    }

    /// Blocks in an order that looks like none.
    fn next(&mut self) -> u32 {
        self.at = (self.at + 2731) % BLOCKS;
        self.at
    }

    fn page_cache(&mut self) -> io::Result<()> {
        let number = self.next();
        self.cached.read_exact_at(&mut self.buffer.0, u64::from(number) * BLOCK as u64)
    }

    fn disk(&mut self) -> io::Result<()> {
        let number = self.next();
        self.direct.read_exact_at(&mut self.buffer.0, u64::from(number) * BLOCK as u64)
    }

    fn hit(&mut self) -> io::Result<()> {
        let number = self.next();
        match self.cache.look_up(self.file, number, &mut self.buffer.0) {
            Lookup::Hit => Ok(()),
            Lookup::Miss(_) => Err(io::Error::other(format!("block {number} is not in the cache"))),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let number = self.next();
        self.cached.write_all_at(&self.buffer.0, u64::from(number) * BLOCK as u64)
    }

    /// The same, announced; of blocks that are not in the cache, as most that are written are not.
    fn announced_write(&mut self) -> io::Result<()> {
        let at = u64::from(self.next()) * BLOCK as u64;
        let number = self.at + BLOCKS;
        let writing = self.cache.begin_write(OperationOwner::new(1, 1), self.file, number..number + 1);
        let written = self.cached.write_all_at(&self.buffer.0, at);
        self.cache.end_write(writing);
        written
    }

    /// What is added to a read that finds its block in the page cache and not in ours.
    fn miss_and_page_cache(&mut self) -> io::Result<()> {
        let number = self.next();
        let looked = self.cache.look_up(self.file, number + BLOCKS, &mut self.buffer.0);
        if looked == Lookup::Hit {
            return Err(io::Error::other(format!("block {number} was never filled")));
        }
        let mut into = [IoSliceMut::new(&mut self.buffer.0)];
        let at = u64::from(number) * BLOCK as u64;
        match preadv2(&self.cached, &mut into, at, ReadWriteFlags::NOWAIT) {
            Ok(BLOCK) => Ok(()),
            Ok(n) => Err(io::Error::other(format!("{n} bytes"))),
            // It is there, and somebody is just at it.
            Err(Errno::AGAIN) => self.cached.read_exact_at(&mut self.buffer.0, at),
            Err(e) => Err(e.into()),
        }
    }
}

fn content(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 4)
}

/// A cache that holds every block: it has room for four times as many, so no set overflows.
fn filled_cache() -> io::Result<(Cache, CachedFile)> {
    let layout = Layout::for_zone(u64::from(BLOCKS) * BLOCK as u64 * 4, BLOCK as u32);
    let layout = layout.ok_or(io::Error::other("no such zone"))?;
    let bytes = layout.total_bytes().unwrap_or(0) as u64;
    let path = format!("/dev/shm/cache-hit-{}", std::process::id());
    let zone = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    zone.set_len(bytes)?;
    let region = Region::map(&zone, bytes, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    let cache = Cache::create(region, layout, [1; 16], [1; 16], false).map_err(io::Error::other)?;
    cache.watcher().store(1, SeqCst);
    let identity = Identity { fs: [1; 16], inode: 1, generation: 1, size: 1, mtime_ns: 1, ctime_ns: 1 };
    let file = cache.enter(&identity).ok_or(io::Error::other("no room for a file"))?.file;
    for number in 0..BLOCKS {
        let Lookup::Miss(Some(token)) = cache.look_up(file, number, &mut content(0)) else {
            return Err(io::Error::other("no token"));
        };
        let offered = cache.offer(OperationOwner::new(1, 1), &token, &content(number));
        if offered != Offered::Admitted {
            return Err(io::Error::other(format!("block {number}: {offered:?}")));
        }
    }
    Ok((cache, file))
}

/// Nanoseconds for each of so many calls.
fn timed(
    bench: &mut Bench,
    calls: u32,
    mut call: impl FnMut(&mut Bench) -> io::Result<()>,
) -> io::Result<f64> {
    let begin = Instant::now();
    for _ in 0..calls {
        call(bench)?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(calls))
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

type Way = (&'static str, u32, fn(&mut Bench) -> io::Result<()>);

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut bench = Bench::new(Path::new(&dir))?;
    let ways: [Way; 6] = [
        ("pread from the page cache", READS, Bench::page_cache),
        ("hit of the block cache", READS, Bench::hit),
        ("miss, then the page cache (RWF_NOWAIT)", READS, Bench::miss_and_page_cache),
        ("pread from the disk (O_DIRECT)", DISK_READS, Bench::disk),
        ("pwrite to the page cache", READS, Bench::write),
        ("the same, announced to the block cache", READS, Bench::announced_write),
    ];
    let mut times = ways.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, calls, call), times) in ways.iter().zip(&mut times) {
            times.push(timed(&mut bench, *calls, call)?);
        }
    }
    let medians = times.map(median);
    println!("8 KiB, median of {ROUNDS} rounds, one thread, emulated zone");
    for ((name, ..), ns) in ways.iter().zip(medians) {
        println!("{name:<38} {ns:>10.0} ns {:>8.2} × the page cache", ns / medians[0]);
    }
    println!(
        "the disk takes {:.0} × a hit; to announce a write costs {:.0} ns",
        medians[3] / medians[1],
        medians[5] - medians[4]
    );
    Ok(())
}
