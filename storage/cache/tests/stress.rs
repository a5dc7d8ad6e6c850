//! Real threads of real processes on one zone and one file, killed with SIGKILL at any moment: no hit is a mixture,
//! and none is older than the last write that had finished when the look began.
//!
//! Each process is this program again, with a role in its environment. Each block has one process that writes it, so
//! that what it holds is known; everybody reads all of them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::shared::{Cache, CachedFile, Identity, Layout, Lookup, OperationOwner};
use seawall_media::Region;
use seawall_sim::Rng;

const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 4, files: 2, operations: 64, staged: 0 };
/// A page: a process that is killed in the middle of a longer write leaves half of it on the disk itself.
const BLOCK: usize = 4096;
const BLOCKS: u64 = 48;
const PROCESSES: u64 = 3;
const THREADS: u64 = 2;
const KILLS: u64 = 40;
const ROLE: &str = "SEAWALL_CACHE_STRESS";

/// Counts in memory that all processes share: what each block holds, and what was seen.
struct Score(Region);

impl Score {
    const BYTES: u64 = 4096;

    fn word(&self, i: u64) -> &AtomicU64 {
        self.0.u64(i as usize * 8)
    }
    fn finished(&self, block: u64) -> &AtomicU64 {
        self.word(block)
    }
    fn hits(&self) -> &AtomicU64 {
        self.word(BLOCKS)
    }
    fn broken(&self) -> &AtomicU64 {
        self.word(BLOCKS + 1)
    }
    fn steps(&self, process: u64) -> &AtomicU64 {
        self.word(BLOCKS + 2 + process)
    }
}

fn open(dir: &Path, name: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).open(dir.join(name)).expect("a file")
}

fn map(dir: &Path, name: &str, len: u64) -> Region {
    Region::map(open(dir, name), len, false).expect("a mapping")
}

fn zone_bytes() -> u64 {
    LAYOUT.total_bytes().expect("sane") as u64
}

/// What a process is: where, and which.
#[test]
fn process_of_the_stress() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (process, dir) = role.split_once(' ').expect("a role");
    let process: u64 = process.parse().expect("a number");
    let dir = Path::new(dir);
    let cache = Cache::join(map(dir, "zone", zone_bytes())).expect("the cache");
    let score = Score(map(dir, "score", Score::BYTES));
    let data = open(dir, "data");
    let parent = std::os::unix::process::parent_id();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let seed = score.steps(process).load(SeqCst) * 1000 + process * 10 + thread;
            let (cache, score, data) = (&cache, &score, &data);
            let worker = Worker { cache, score, data, process, thread, rng: Rng::new(seed) };
            scope.spawn(move || {
                // Until it is killed; or alone, because the test failed.
                while std::os::unix::process::parent_id() == parent {
                    (0..100).for_each(|_| worker.step());
                }
            });
        }
    });
}

struct Worker<'a> {
    cache: &'a Cache,
    score: &'a Score,
    data: &'a File,
    process: u64,
    thread: u64,
    rng: Rng,
}

impl Worker<'_> {
    fn file(&self) -> CachedFile {
        CachedFile { slot: 0, tenant: 1 }
    }

    fn owner(&self) -> OperationOwner {
        OperationOwner::new(std::process::id(), self.thread as u32)
    }

    fn step(&self) {
        // The second thread of a process only reads: each block has one thread that writes it.
        if self.thread == 0 && self.rng.one_in(4) {
            self.write(self.rng.below(BLOCKS / PROCESSES) * PROCESSES + self.process);
        } else if self.thread == 0 && self.rng.one_in(500) {
            self.cache.change(self.owner(), self.file(), || ());
        } else {
            self.read(self.rng.below(BLOCKS));
        }
        self.score.steps(self.process).fetch_add(1, SeqCst);
    }

    fn write(&self, block: u64) {
        let version = self.score.finished(block).load(SeqCst) + 1;
        let number = block as u32;
        let writing = self.cache.begin_write(self.owner(), self.file(), number..number + 1);
        let written = self.data.write_all_at(&filled(version), block * BLOCK as u64);
        self.cache.end_write(writing);
        written.expect("a write");
        self.score.finished(block).store(version, SeqCst);
    }

    fn read(&self, block: u64) {
        let finished = self.score.finished(block).load(SeqCst);
        let mut buffer = vec![0; BLOCK];
        match self.cache.look_up(self.file(), block as u32, &mut buffer) {
            Lookup::Hit => {
                self.score.hits().fetch_add(1, SeqCst);
                let version = u64::from_le_bytes(buffer[..8].try_into().unwrap_or_default());
                if version < finished || buffer != filled(version) {
                    self.score.broken().fetch_add(1, SeqCst);
                }
            }
            Lookup::Miss(token) => {
                self.data.read_exact_at(&mut buffer, block * BLOCK as u64).expect("a block");
                if let Some(token) = token {
                    self.cache.offer(self.owner(), &token, &buffer);
                }
            }
        }
    }
}

fn filled(version: u64) -> Vec<u8> {
    version.to_le_bytes().repeat(BLOCK / 8)
}

fn start(dir: &Path, process: u64) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "process_of_the_stress", "--nocapture", "--quiet"]);
    command.env(ROLE, format!("{process} {}", dir.display())).stdout(std::process::Stdio::null());
    command.spawn().expect("a process")
}

// Holds: internals/CACHE#tested
#[test]
fn processes_that_are_killed_leave_no_old_block() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let dir = dir.path();
    open(dir, "zone").set_len(zone_bytes()).expect("room");
    open(dir, "score").set_len(Score::BYTES).expect("room");
    open(dir, "data").set_len(BLOCKS * BLOCK as u64).expect("room");
    let cache = Cache::create(map(dir, "zone", zone_bytes()), LAYOUT, [1; 16], [1; 16], false);
    let cache = cache.expect("a cache");
    cache.watcher().store(1, SeqCst);
    let identity = Identity { fs: [1; 16], inode: 1, generation: 1, size: 1, mtime_ns: 1, ctime_ns: 1 };
    let file = cache.enter(&identity).expect("room").file;
    assert_eq!(file, CachedFile { slot: 0, tenant: 1 }, "what the processes see");
    let score = Score(map(dir, "score", Score::BYTES));

    let mut children: Vec<Child> = (0..PROCESSES).map(|process| start(dir, process)).collect();
    let (rng, mut reaped, mut dead) = (Rng::new(1), 0, Vec::new());
    for _ in 0..KILLS {
        let victim = rng.below(PROCESSES);
        let goal = score.steps(victim).load(SeqCst) + rng.range(200, 2000);
        let child = &mut children[victim as usize];
        while score.steps(victim).load(SeqCst) < goal {
            let ended = child.try_wait().expect("a status");
            assert!(ended.is_none(), "it ended by itself: {ended:?}");
            std::thread::yield_now();
        }
        dead.push(end(child));
        reaped += cache.reap(|owner| dead.contains(&owner.process())).operations;
        *child = start(dir, victim);
    }
    dead.extend(children.iter_mut().map(end));
    cache.reap(|owner| dead.contains(&owner.process()));
    assert_eq!(score.broken().load(SeqCst), 0, "hits that were old, or mixtures");
    assert!(score.hits().load(SeqCst) > 1000 && reaped > 0, "it shows nothing");
    assert_eq!(cache.under_way(), 0);
    assert_eq!((cache.failures(), cache.off()), (0, None));
}

/// Kills a process; who it was.
fn end(child: &mut Child) -> u32 {
    child.kill().expect("a kill");
    let status = child.wait().expect("a status");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    child.id()
}
