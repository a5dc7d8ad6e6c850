//! `disk`: a virtual machine's disk by `seawall disk`, beside QEMU's own vhost-user-blk (qemu-storage-daemon) on the same image.
//!
//! The guest is in this process ([`seawall_guest`]): it has the rings, the memory and the connection that QEMU has, and no
//! processor of its own to be emulated. So what is measured is the backend, over the path that a virtual machine's requests take.

mod backend;
mod guest;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use seawall_guest::Guest;

pub use self::backend::find_programs;

use self::backend::Backend;
use self::guest::{BLOCK, read, write_and_flush};
use super::runs::{Figure, Runs, told};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::pool::Pool;
use crate::process;
use crate::process::cpu_seconds;
use crate::slow_disk::SlowDisk;
use crate::table::{self, short};

const IMAGE: u64 = 256 << 20;
/// Guests at once, in one of the tests.
const GUESTS: usize = 4;
/// The slow disk, in memory.
const SLOW_DISK: u64 = 3 << 30;
const SLOW_FLUSH: Duration = Duration::from_millis(1);
/// What the images take on the disk.
pub const SPACE: u64 = IMAGE * GUESTS as u64;
/// The pool whose log is on the disk.
const LOG: u64 = 256 << 20;
const STRIPE: u64 = 64 << 10;

/// Who serves the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// QEMU, past the page cache.
    Direct,
    /// QEMU, by the page cache.
    Peer,
    Seawall,
    /// With the log on the disk.
    Block,
    /// QEMU, and no flush reaches the disk.
    Unsafe,
    Control,
}

impl Who {
    const ALL: [Self; 6] =
        [Self::Direct, Self::Peer, Self::Seawall, Self::Block, Self::Unsafe, Self::Control];

    /// Its name in the file.
    fn key(self) -> &'static str {
        self.named().0
    }

    /// That, and its name for a person.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Direct => ("direct", "QEMU, cache=none"),
            Self::Peer => ("peer", "QEMU, cache=writeback"),
            Self::Seawall => ("seawall", "Seawall"),
            Self::Block => ("block", "Seawall, its log on the disk"),
            Self::Unsafe => ("unsafe", "QEMU, cache=unsafe"),
            Self::Control => ("control", "QEMU, cache=unsafe, again"),
        }
    }

    /// QEMU's words for how the image is cached. `None`: it is Seawall's.
    fn cache(self) -> Option<&'static str> {
        match self {
            Self::Direct => Some("cache.direct=on,cache.no-flush=off,aio=native"),
            Self::Peer => Some("cache.direct=off,cache.no-flush=off"),
            Self::Unsafe | Self::Control => Some("cache.direct=off,cache.no-flush=on"),
            Self::Seawall | Self::Block => None,
        }
    }
}

/// What the guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// 4 KiB, flush, one after the other.
    WriteFlush,
    /// The same by four guests at once, each with an image.
    FourGuests,
    /// 4 KiB, sixteen at once.
    RandomRead,
    /// 64 KiB, eight at once.
    SequentialRead,
}

impl Test {
    const ALL: [Self; 4] = [Self::WriteFlush, Self::FourGuests, Self::RandomRead, Self::SequentialRead];

    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::WriteFlush => ("write_flush", "4 KiB written, and a flush"),
            Self::FourGuests => ("four_guests", "the same by four guests"),
            Self::RandomRead => ("random_read", "4 KiB read, 16 at once"),
            Self::SequentialRead => ("sequential_read", "64 KiB read in order, 8 at once"),
        }
    }

    fn guests(self) -> usize {
        if self == Self::FourGuests { GUESTS } else { 1 }
    }
}

/// What is measured on a disk that takes a while over a flush, as many a volume does, if we may make one: nothing is flushed by
/// reads.
fn slow_tests() -> &'static [Test] {
    if SlowDisk::is_possible() { &[Test::WriteFlush, Test::FourGuests] } else { &[] }
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    (Test::ALL.len() + slow_tests().len()) * Who::ALL.len() * scope.rounds
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let own = lab.work.data("disk");
    lab.fresh_dir(&own)?;
    let mut rows = measured(lab, scope, &own, (&Test::ALL, None))?;
    if !slow_tests().is_empty() {
        std::fs::remove_dir_all(&own)?;
        let slow = SlowDisk::mount(lab, SLOW_DISK, SLOW_FLUSH)?;
        let dir = slow.path().join("disk");
        lab.fresh_dir(&dir)?;
        rows.extend(measured(lab, scope, &dir, (slow_tests(), Some(SLOW_FLUSH)))?);
    }
    let header = ["a guest's disk", "a second", "p50 µs", "p99 µs", "of cache=none"];
    let table = table::format(&header, &rows.iter().flat_map(Row::lines).collect::<Vec<_>>());
    let table = format!("{table}  pool on: {}; the guest is in this process\n", lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}

/// These tests on the disk that a directory lies on, and how long that takes over a flush, if it is known.
fn measured(
    lab: &Lab,
    scope: Scope,
    dir: &Path,
    (tests, flush): (&[Test], Option<Duration>),
) -> Result<Vec<Row>> {
    let images: Vec<PathBuf> = (0..GUESTS).map(|i| dir.join(format!("vm{i}.img"))).collect();
    images.iter().try_for_each(|image| fill(lab, image))?;
    let log = dir.join("log");
    let row = |test: &Test| {
        let mut row = Row { test: *test, flush, runs: Runs::default() };
        let title = |who: Who| format!("{}, {}", row.title(), who.named().1);
        let told = |run: &Run| format!("{} a second", short(run.rate));
        let images = &images[..test.guests()];
        let seconds = if scope.quick { 1 } else { 4 };
        row.runs = Runs::measure(lab, &Who::ALL, scope.rounds, title, told, |who, _| {
            if who != Who::Block {
                return measure(lab, (who, &lab.pool), *test, images, seconds);
            }
            lab.identity.create_dir(&log)?;
            let pool = Pool::on_block(&lab.tools, &lab.identity, LOG, log.join("block.log"))?;
            measure(lab, (who, &pool), *test, images, seconds)
        })?;
        lab.pool.drain_if_running()?;
        Ok(row)
    };
    tests.iter().map(row).collect()
}

/// An image without holes.
fn fill(lab: &Lab, image: &Path) -> Result<()> {
    let mut dd = lab.command("dd");
    dd.args(["if=/dev/urandom", "bs=1M", "status=none", "conv=fsync"]);
    dd.arg(format!("count={}", IMAGE >> 20)).arg(format!("of={}", image.display()));
    process::run(dd, "dd").map(drop)
}

/// What one run found.
struct Run {
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    /// Of one processor, in percent, while the guest does nothing.
    idle: f64,
}

fn measure(
    lab: &Lab,
    (who, pool): (Who, &Pool),
    test: Test,
    images: &[PathBuf],
    seconds: u64,
) -> Result<Run> {
    lab.settle()?;
    let start = |image: &PathBuf| Backend::start(lab, who, pool, image);
    let backends = images.iter().map(start).collect::<Result<Vec<_>>>()?;
    let guests = backends.iter().map(|backend| Guest::connect(&backend.socket, 1).map_err(|e| anyhow!(e)));
    let mut guests = guests.collect::<Result<Vec<_>>>()?;
    let pid = backends.first().map_or(0, Backend::pid);
    let before = cpu_seconds(pid);
    std::thread::sleep(Duration::from_millis(500));
    let idle = (cpu_seconds(pid) - before) / 0.5 * 100.0;
    let length = Duration::from_secs(seconds);
    let mut latencies = at_once(&mut guests, test, length)?;
    for guest in guests {
        guest.end().map_err(|e| anyhow!(e))?;
    }
    backends.into_iter().try_for_each(Backend::end)?;
    ensure!(!latencies.is_empty(), "the guests got no answer");
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    Ok(Run { rate: latencies.len() as f64 / length.as_secs_f64(), p50_us: at(0.5), p99_us: at(0.99), idle })
}

/// How long each request of all guests took, µs.
fn at_once(guests: &mut [Guest], test: Test, length: Duration) -> Result<Vec<f64>> {
    let ask = |guest: &mut Guest, nth: usize| match test {
        Test::WriteFlush | Test::FourGuests => write_and_flush(guest, length, nth as u64),
        Test::RandomRead => read(guest, length, 16, BLOCK, true),
        Test::SequentialRead => read(guest, length, 8, STRIPE, false),
    };
    std::thread::scope(|scope| {
        let start = |(nth, guest)| scope.spawn(move || ask(guest, nth));
        let threads: Vec<_> = guests.iter_mut().enumerate().map(start).collect();
        let all = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a guest's thread panicked"))?);
        Ok(all.collect::<Result<Vec<_>>>()?.concat())
    })
}

const FIGURES: [Figure<Run>; 3] =
    [("ops_s", |run| run.rate), ("p50_us", |run| run.p50_us), ("p99_us", |run| run.p99_us)];

/// The runs of one test.
struct Row {
    test: Test,
    flush: Option<Duration>,
    runs: Runs<Who, Run>,
}

impl Row {
    fn title(&self) -> String {
        let title = self.test.named().1;
        self.flush.map_or(title.into(), |flush| format!("{title}, flushes of {} ms", flush.as_millis()))
    }

    fn fields(&self) -> Fields {
        let row = Fields::default()
            .with("test", self.test.named().0)
            .with("flush_ms", self.flush.map_or(0, |flush| flush.as_millis() as u64));
        let row = self.runs.with_figures(row, &Who::ALL, Who::key, &FIGURES);
        let ratios = [
            ("speedup", Who::Seawall, Who::Direct),
            ("block_speedup", Who::Block, Who::Direct),
            ("of_peer", Who::Seawall, Who::Peer),
            ("of_unsafe", Who::Seawall, Who::Unsafe),
            ("control", Who::Control, Who::Unsafe),
        ];
        let idle = self.runs.spread(Who::Seawall, |run| run.idle);
        self.runs.with_ratios(row, |run| run.rate, &ratios).with_spread("idle_percent", idle)
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let line = |who: Who| {
            let mut line = vec![format!("{}: {}", self.title(), who.named().1)];
            line.extend(FIGURES.map(|(_, figure)| self.runs.told(who, figure)));
            line.push(told(self.runs.ratio(who, Who::Direct, |run| run.rate)));
            line
        };
        Who::ALL.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let row = Row { test: Test::WriteFlush, flush: None, runs: Runs::default() };
        row.fields().assert_keys("disk");
        assert_eq!(row.lines().len(), Who::ALL.len());
    }
}
