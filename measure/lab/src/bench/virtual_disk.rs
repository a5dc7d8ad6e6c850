//! `disk`: a virtual machine's disk by `seawall disk`, beside QEMU's own vhost-user-blk (qemu-storage-daemon) on the same image.
//!
//! The guest is in this process ([`seawall_guest`]): it has the rings, the memory and the connection that QEMU has, and no
//! processor of its own to be emulated. So what is measured is the backend, over the path that a virtual machine's requests take.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use seawall_guest::{Guest, Op};

use super::runs::Runs;
use super::slow_disk::SlowDisk;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::process::cpu_seconds;
use crate::process::{self, Running, start};
use crate::side::order;
use crate::spread::Spread;
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
const PROGRAM: &str = "qemu-storage-daemon";
const BLOCK: u64 = 4096;
const STRIPE: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(20);

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

    /// Its name in the file, and for a person.
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

/// What is missing is named before anything is measured.
pub fn find_programs() -> Result<()> {
    let is_there = Command::new(PROGRAM).arg("--version").output().is_ok();
    ensure!(is_there, "{PROGRAM} is not installed: apt-get install qemu-utils");
    Ok(())
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    (Test::ALL.len() + slow_tests().len()) * Who::ALL.len() * scope.rounds
}

/// Measures everything.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<SectionResult> {
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
    let table = format!("{}  pool on: {}; the guest is in this process\n", table(&rows), lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}

/// These tests on the disk that a directory lies on, and how long that takes over a flush, if it is known.
fn measured(
    lab: &mut Lab,
    scope: Scope,
    dir: &Path,
    (tests, flush): (&[Test], Option<Duration>),
) -> Result<Vec<Row>> {
    let images: Vec<PathBuf> = (0..GUESTS).map(|i| dir.join(format!("vm{i}.img"))).collect();
    images.iter().try_for_each(|image| fill(lab, image))?;
    tests.iter().map(|test| row(lab, scope, (*test, flush), &images)).collect()
}

/// An image without holes.
fn fill(lab: &Lab, image: &Path) -> Result<()> {
    let mut dd = lab.command("dd");
    dd.args(["if=/dev/urandom", "bs=1M", "status=none", "conv=fsync"]);
    dd.arg(format!("count={}", IMAGE >> 20)).arg(format!("of={}", image.display()));
    process::run(dd, "dd").map(drop)
}

fn row(
    lab: &mut Lab,
    scope: Scope,
    (test, flush): (Test, Option<Duration>),
    images: &[PathBuf],
) -> Result<Row> {
    let mut row = Row { test, flush, runs: Runs::default() };
    let log = images.first().and_then(|image| image.parent()).context("no image")?.join("log");
    for round in 0..scope.rounds {
        for who in order(&Who::ALL, round) {
            let seconds = if scope.quick { 1 } else { 4 };
            let images = &images[..test.guests()];
            let run = match who {
                Who::Block => lab.on_block_in(&log, LOG, |lab| measure(lab, who, test, images, seconds)),
                _ => measure(lab, who, test, images, seconds),
            };
            let run = run.with_context(|| who.named().0)?;
            let title = format!("round {}: {}, {}", round + 1, row.title(), who.named().1);
            lab.progress.done(&format!("{title}: {} a second", short(run.rate)));
            row.runs.add(who, run);
        }
    }
    lab.pool.drain_if_running()?;
    Ok(row)
}

/// What one run found.
struct Run {
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    /// Of one processor, in percent, while the guest does nothing.
    idle: f64,
}

/// A backend, ended when dropped.
struct Backend {
    running: Option<Running>,
    socket: PathBuf,
}

impl Backend {
    fn start(lab: &Lab, who: Who, image: &Path) -> Result<Self> {
        let socket = image.with_extension("sock");
        let _ = std::fs::remove_file(&socket);
        let command = match who.cache() {
            Some(cache) => {
                let mut command = lab.command(PROGRAM);
                let (image, socket) = (image.display(), socket.display());
                command
                    .arg("--blockdev")
                    .arg(format!("driver=file,node-name=image,filename={image},{cache}"));
                command.arg("--export").arg(format!(
                    "type=vhost-user-blk,id=disk,node-name=image,addr.type=unix,addr.path={socket},writable=on"
                ));
                command
            }
            None => {
                let mut command = lab.pool.seawall();
                command.args(["disk", "--quiet"]).args(lab.pool.by_name()).arg("--pool").arg(lab.pool.path());
                command.arg(image).arg("--socket").arg(&socket);
                command
            }
        };
        let running = start(command, "the disk's backend", libc::SIGTERM)?;
        let begin = Instant::now();
        while !socket.exists() {
            ensure!(begin.elapsed() < PATIENCE, "the backend does not listen at {}", socket.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { running: Some(running), socket })
    }

    fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, Running::pid)
    }

    fn end(mut self) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        process::signal(running.pid(), libc::SIGTERM);
        running.wait_for(PATIENCE)?.success("the disk's backend").map(drop)
    }
}

fn measure(lab: &Lab, who: Who, test: Test, images: &[PathBuf], seconds: u64) -> Result<Run> {
    lab.settle()?;
    let backends = images.iter().map(|image| Backend::start(lab, who, image)).collect::<Result<Vec<_>>>()?;
    let guests = backends.iter().map(|backend| Guest::connect(&backend.socket, 1).map_err(|e| anyhow!(e)));
    let mut guests = guests.collect::<Result<Vec<_>>>()?;
    let pid = backends.first().map_or(0, Backend::pid);
    let before = cpu_seconds(pid);
    std::thread::sleep(Duration::from_millis(500));
    let idle = (cpu_seconds(pid) - before) / 0.5 * 100.0;
    let length = Duration::from_secs(seconds);
    let mut latencies: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = guests
            .iter_mut()
            .enumerate()
            .map(|(i, guest)| {
                scope.spawn(move || match test {
                    Test::WriteFlush | Test::FourGuests => write_and_flush(guest, length, i as u64),
                    Test::RandomRead => read(guest, length, 16, BLOCK, true),
                    Test::SequentialRead => read(guest, length, 8, STRIPE, false),
                })
            })
            .collect();
        let all = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a guest ended"))?);
        Ok::<_, anyhow::Error>(all.collect::<Result<Vec<_>>>()?.concat())
    })?;
    for guest in guests {
        guest.end().map_err(|e| anyhow!(e))?;
    }
    backends.into_iter().try_for_each(Backend::end)?;
    ensure!(!latencies.is_empty(), "nothing was answered");
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    Ok(Run { rate: latencies.len() as f64 / length.as_secs_f64(), p50_us: at(0.5), p99_us: at(0.99), idle })
}

/// How long each write and its flush took, µs.
fn write_and_flush(guest: &mut Guest, length: Duration, seed: u64) -> Result<Vec<f64>> {
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
fn read(
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
            bail!("a read failed: status {}", done.status);
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

    fn over(&self, over: Who, under: Who) -> Option<Spread> {
        self.runs.ratio(over, under, |run| run.rate).ok()
    }

    fn fields(&self) -> Fields {
        let mut row = Fields::default()
            .with("test", self.test.named().0)
            .with("flush_ms", self.flush.map_or(0, |flush| flush.as_millis() as u64));
        for (name, figure) in [
            ("ops_s", (|run| run.rate) as fn(&Run) -> f64),
            ("p50_us", |run| run.p50_us),
            ("p99_us", |run| run.p99_us),
        ] {
            for who in Who::ALL {
                row = row.with_spread_if_any(
                    &format!("{}_{name}", who.named().0),
                    self.runs.spread(who, figure).ok(),
                );
            }
        }
        row.with_spread_if_any("speedup", self.over(Who::Seawall, Who::Direct))
            .with_spread_if_any("block_speedup", self.over(Who::Block, Who::Direct))
            .with_spread_if_any("of_peer", self.over(Who::Seawall, Who::Peer))
            .with_spread_if_any("of_unsafe", self.over(Who::Seawall, Who::Unsafe))
            .with_spread_if_any("control", self.over(Who::Control, Who::Unsafe))
            .with_spread_if_any("idle_percent", self.runs.spread(Who::Seawall, |run| run.idle).ok())
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let cell = |spread: Option<Spread>| spread.map_or("–".to_owned(), |s| s.told(short));
        let line = |who: Who| {
            vec![
                format!("{}: {}", self.title(), who.named().1),
                cell(self.runs.spread(who, |run| run.rate).ok()),
                cell(self.runs.spread(who, |run| run.p50_us).ok()),
                cell(self.runs.spread(who, |run| run.p99_us).ok()),
                cell(self.over(who, Who::Direct)),
            ]
        };
        Who::ALL.into_iter().map(line).collect()
    }
}

fn table(rows: &[Row]) -> String {
    let header = ["a guest's disk", "a second", "p50 µs", "p99 µs", "of cache=none"];
    table::format(&header, &rows.iter().flat_map(Row::lines).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let row = Row { test: Test::WriteFlush, flush: None, runs: Runs::default() };
        row.fields().assert_keys(keys::DISK);
        assert_eq!(row.lines().len(), Who::ALL.len());
    }
}
