//! Processes that share one cache, on logical threads whose interleaving a seed decides, killed and cut off between
//! any two accesses to shared memory. The cache's own code runs unmodified.
//!
//! Not simulated: the order in which a processor makes stores visible (the stress test has real threads), and
//! anything about the kernel but that a write is visible half by half.

mod disk;
mod lives;
mod memory;
mod process;
mod store;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use seawall_cache::set::Policy;
use seawall_cache::shared::{Cache, CachedFile, Identity, Layout, OperationOwner};
use seawall_media::sim::{Observer, Site, install};
use seawall_sim::Rng;
use seawall_sim::fiber;

use disk::Disk;
use lives::{live, reopen};
use memory::Memory;

const BLOCK: usize = 4096;
const BLOCKS: usize = 24;
const FILES: usize = 2;
const PROCESSES: usize = 4;

/// What a run is like; everything else follows from its seed.
#[derive(Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    /// Stores survive power loss, and power is cut between lives.
    pub is_durable: bool,
    /// The blocks lie on a disk.
    pub is_on_disk: bool,
    /// What the processes do wrong.
    pub planted: Option<Planted>,
}

/// Mistakes of those who use the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A write is announced when it is visible.
    AnnouncedTooLate,
    /// A write's end is announced before the write is visible.
    EndedTooEarly,
    /// A file is truncated without a word.
    SilentChange,
    /// A block is offered that was read before it was missed.
    ReadBeforeMissed,
    /// A sync that never began is announced as ended.
    ImaginedSync,
    /// Writes of a file that is not entered are not counted.
    Uncounted,
    /// A file is served while somebody writes it unannounced.
    ServedTooEarly,
}

/// What happened: so that a test that shows nothing is seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub hits: u64,
    pub admitted: u64,
    pub stale: u64,
    pub kills: u64,
    pub reaped: u64,
    /// Blocks that were found again, and of these the ones that were looked at and right.
    pub kept: u64,
    pub audited: u64,
    /// Files that were entered while somebody used them.
    pub late: u64,
    /// Policies that were set.
    pub policies: u64,
    /// Sizes that were given.
    pub resized: u64,
}

/// The simulated machine.
pub struct World {
    rng: Rng,
    /// An access is followed by another thread's once in so many times.
    switch: u64,
    planted: Option<Planted>,
    cache: RefCell<Option<Rc<Cache>>>,
    memory: Memory,
    files: RefCell<Vec<CachedFile>>,
    disks: RefCell<Vec<Disk>>,
    running: Cell<usize>,
    /// Accesses until a process is killed.
    fuses: RefCell<Vec<Option<u64>>>,
    /// The file's times as they were when they became durable.
    noted: Cell<i64>,
    dead: RefCell<Vec<bool>>,
    living: Cell<usize>,
    broken: RefCell<Option<String>>,
    seen: Cell<Seen>,
}

impl Observer for World {
    fn stored(&self, _: usize, _: usize, _: usize, _: Site) {
        self.step();
    }
    fn flushed(&self, _: usize, at: usize, len: usize, _: Site) {
        self.memory.flushed(self.running.get(), at, len);
        self.step();
    }
    fn fenced(&self, _: Site) {
        self.memory.fenced(self.running.get());
        self.step();
    }
    fn touched(&self, _: usize) {
        self.step();
    }
}

impl World {
    /// A point at which this thread may be interrupted or killed.
    fn step(&self) {
        if !fiber::inside() {
            return;
        }
        self.die_if_due();
        if let Some(left) = &mut self.fuses.borrow_mut()[self.running.get()] {
            *left -= 1;
        }
        if self.rng.one_in(self.switch) {
            fiber::yield_now();
            self.die_if_due();
        }
    }

    fn die_if_due(&self) {
        let is_due = self.fuses.borrow()[self.running.get()] == Some(0);
        if is_due {
            fiber::kill();
        }
    }

    fn cache(&self) -> Rc<Cache> {
        Rc::clone(self.cache.borrow().as_ref().expect("a cache"))
    }

    fn count(&self, count: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.get();
        count(&mut seen);
        self.seen.set(seen);
    }

    fn violate(&self, what: String) {
        self.broken.borrow_mut().get_or_insert(what);
    }

    fn is_dead(&self, owner: OperationOwner) -> bool {
        self.dead.borrow()[owner.process() as usize]
    }
}

impl World {
    /// Somebody else has to go on first.
    fn wait(&self) {
        fiber::yield_now();
        self.step();
    }
}

/// Entered while it is used; the others are from the beginning.
const LATE: usize = FILES - 1;
const DEV: u64 = 8;
/// What it is called until then.
const NOT_ENTERED: CachedFile = CachedFile { slot: u32::MAX, tenant: 0 };

fn identity(file: usize) -> Identity {
    Identity { fs: [7; 16], inode: file as u64, generation: 1, size: 1, mtime_ns: 0, ctime_ns: 0 }
}

impl World {
    /// As the kernel says now: of the late file the times tell of every write.
    fn identity(&self, file: usize) -> Identity {
        let mtime_ns = if file == LATE { self.disks.borrow()[file].mtime() } else { 0 };
        Identity { mtime_ns, ..identity(file) }
    }

    /// What the daemon does when somebody asks.
    fn enter_late(&self, cache: &Cache) {
        let Some(preparing) = cache.prepare(&self.identity(LATE), DEV) else { return };
        for _ in 0..20 {
            if cache.is_quiet(&preparing) || self.planted == Some(Planted::ServedTooEarly) {
                let file = cache.serve(&preparing, &self.identity(LATE)).file;
                self.note_late(cache, file);
                self.files.borrow_mut()[LATE] = file;
                return self.count(|seen| seen.late += 1);
            }
            self.wait();
        }
    }

    /// What somebody may say of any file at any time, and what the daemon makes of it then or later.
    fn choose_policy(&self, cache: &Cache) {
        let file = self.files.borrow()[self.rng.below(FILES as u64) as usize];
        let policy = self.rng.pick(&[Policy::Default, Policy::Keep, Policy::Keep, Policy::None]);
        if file != NOT_ENTERED {
            cache.set_policy(file, policy);
            self.count(|seen| seen.policies += 1);
        }
        if self.rng.one_in(2) {
            cache.arrange(&cache.arrangement());
        }
    }

    /// Another size; the room of places that there are no more holds zeros then.
    fn resize(&self, cache: &Cache) {
        let ways = self.rng.range(1, 17) as u32;
        cache.resize(ways);
        for _ in 0..50 {
            if cache.vacate() {
                let end = cache.layout().bytes_of(ways);
                if cache.layout().is_on_disk() {
                    store::punch(end)
                } else {
                    {
                        let region = self.memory.region();
                        region.zero(end as usize, region.len() - end as usize);
                    }
                }
                return self.count(|seen| seen.resized += 1);
            }
            self.wait();
            cache.reap(|owner| self.is_dead(owner));
        }
    }

    fn note_late(&self, cache: &Cache, file: CachedFile) {
        let now = self.identity(LATE);
        cache.note(file, &now, i64::MAX);
        self.noted.set(now.mtime_ns);
    }
}

/// Runs a plan. What happened, or the first promise that was broken.
pub fn run(plan: Plan) -> Result<Seen, String> {
    let rng = Rng::new(plan.seed);
    let layout = Layout {
        block_bytes: BLOCK as u32,
        sets: rng.pick(&[1, 1, 2, 3]),
        files: 4,
        // Sometimes too few.
        operations: rng.pick(&[8, 8, 8, 2]),
        staged: if plan.is_on_disk { rng.pick(&[1, 2, 4]) } else { 0 },
    };
    let total = layout.total_bytes().expect("a sane layout");
    let memory = Memory::new(total, plan.is_durable);
    let world = Rc::new(World {
        switch: rng.pick(&[1, 2, 5, 20]),
        planted: plan.planted,
        rng,
        cache: RefCell::default(),
        memory,
        files: RefCell::default(),
        disks: RefCell::new((0..FILES).map(|file| Disk::new(BLOCKS, file as u32 * 1_000_000)).collect()),
        running: Cell::new(0),
        fuses: RefCell::new(vec![None; PROCESSES + 1]),
        noted: Cell::new(0),
        dead: RefCell::new(vec![false; PROCESSES + 1]),
        living: Cell::new(0),
        broken: RefCell::default(),
        seen: Cell::default(),
    });
    let before = install(Some(Rc::clone(&world) as Rc<dyn Observer>));
    store::install(layout, &world);
    let cache = Cache::create(world.memory.region(), layout, [1; 16], [1; 16], plan.is_durable);
    *world.cache.borrow_mut() = Some(Rc::new(cache.expect("a cache").reading(store::read)));
    for life in 0..3 {
        let is_cut = plan.is_durable && world.rng.one_in(2);
        live(&world, is_cut);
        if world.broken.borrow().is_some() {
            break;
        }
        reopen(&world, is_cut, life);
    }
    install(before);
    let broken = world.broken.borrow().clone();
    broken.map_or(Ok(world.seen.get()), |what| Err(format!("seed {}: {what}", plan.seed)))
}
