//! Processes that share one cache, on logical threads whose interleaving a seed decides, killed and cut off between
//! any two accesses to shared memory. The cache's own code runs unmodified.
//!
//! Not simulated: the order in which a processor makes stores visible (the stress test has real threads), and
//! anything about the kernel but that a write is visible half by half.

mod disk;
mod memory;
mod process;
mod store;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::set::Policy;
use seawall_cache::shared::{Cache, CachedFile, Identity, Layout, Lookup, Offered, OperationOwner};
use seawall_media::sim::{Observer, Site, install};
use seawall_sim::Rng;
use seawall_sim::fiber::{self, Fiber, State};

use disk::Disk;
use memory::Memory;
use process::{Process, fill_half};

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
    /// A write's end is told before it is visible.
    EndedTooEarly,
    /// A file is truncated without a word.
    SilentChange,
    /// A block is offered that was read before it was missed.
    ReadBeforeMissed,
    /// A sync that has not begun is told to have ended.
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

/// Some processes and a reaper, until all have ended or were killed; then what the dead left must be gone. Or until
/// the power is cut.
fn live(world: &Rc<World>, is_cut: bool) {
    let cache = world.cache();
    // The daemon's thread lives on: what becomes of those that nobody watches a test of its own says.
    cache.watcher().store(1, SeqCst);
    let entered = (0..LATE).map(|file| cache.enter(&identity(file)).expect("room for a file").file);
    *world.files.borrow_mut() = entered.chain([NOT_ENTERED]).collect();
    for (file, of) in world.files.borrow().iter().enumerate().take(LATE) {
        cache.note(*of, &identity(file), i64::MAX);
    }
    audit(world, &cache);
    world.dead.borrow_mut().fill(false);
    let mut threads: Vec<(usize, Fiber)> =
        (1..=PROCESSES).map(|number| (number, process(world, number))).collect();
    let mut left = if is_cut { world.rng.below(6000) / world.switch } else { u64::MAX };
    while !threads.is_empty() && left > 0 && world.broken.borrow().is_none() {
        left -= 1;
        let i = world.rng.below(threads.len() as u64) as usize;
        let number = threads[i].0;
        world.running.set(number);
        world.living.set(threads.len());
        match threads[i].1.resume() {
            State::Ready => {}
            State::Ended => _ = threads.swap_remove(i),
            State::Killed => {
                threads.swap_remove(i);
                world.dead.borrow_mut()[number] = true;
                world.disks.borrow_mut().iter_mut().for_each(|disk| disk.died(number));
                world.count(|seen| seen.kills += 1);
            }
            State::Panicked => world.violate(format!("a panic: {}", threads.swap_remove(i).1.panic_text())),
        }
    }
    if is_cut {
        for (number, thread) in threads {
            world.running.set(number);
            world.fuses.borrow_mut()[number] = Some(0);
            thread.resume();
        }
        return world.running.set(0);
    }
    world.running.set(0);
    if world.broken.borrow().is_none() {
        tidy(world, &cache);
    }
}

/// All that was kept is what the disk holds.
fn audit(world: &Rc<World>, cache: &Rc<Cache>) {
    let before = world.seen.get().hits;
    let reader = Process::new(Rc::clone(world), Rc::clone(cache), 0);
    for (file, block) in (0..FILES).flat_map(|file| (0..BLOCKS).map(move |block| (file, block))) {
        reader.look(file, block);
    }
    world.count(|seen| seen.audited += seen.hits - before);
}

fn process(world: &Rc<World>, number: usize) -> Fiber {
    let is_mortal = number > 1 && !world.rng.one_in(4);
    world.fuses.borrow_mut()[number] = is_mortal.then(|| world.rng.below(3000));
    let (world, cache) = (Rc::clone(world), world.cache());
    if number == 1 {
        return Fiber::new(move || {
            while world.living.get() > 1 {
                let reaped = cache.reap(|owner| world.is_dead(owner));
                world.count(|seen| seen.reaped += u64::from(reaped.operations));
                if world.files.borrow()[LATE] == NOT_ENTERED && world.rng.one_in(4) {
                    world.enter_late(&cache);
                }
                if world.rng.one_in(8) {
                    world.choose_policy(&cache);
                }
                if world.rng.one_in(16) {
                    world.resize(&cache);
                }
                if world.rng.one_in(2) {
                    let brought = store::bring_all(&cache, OperationOwner::new(1, 1));
                    world.count(|seen| seen.admitted += brought);
                }
                (0..world.rng.below(30)).for_each(|_| world.wait());
            }
        });
    }
    Fiber::new(move || Process::new(world, cache, number).run())
}

/// Nobody is left: after one more look by the reaper every block can be filled again and is then there.
fn tidy(world: &Rc<World>, cache: &Cache) {
    world.dead.borrow_mut().fill(true);
    cache.reap(|owner| world.is_dead(owner));
    store::bring_all(cache, OperationOwner::new(1, 1));
    if cache.failures() != 0 {
        return world.violate(format!("{} checksums failed, and nothing was damaged", cache.failures()));
    }
    if cache.under_way() != 0 {
        return world.violate(format!("{} operations are left", cache.under_way()));
    }
    for (file, of) in world.files.borrow().iter().enumerate().filter(|(_, of)| cache.is_served(**of)) {
        for block in 0..2 {
            let is_there = (0..200).any(|_| filled(world, cache, file, *of, block));
            if !is_there {
                return world.violate(format!("file {file}, block {block} cannot be filled any more"));
            }
        }
    }
}

fn filled(world: &World, cache: &Cache, file: usize, of: CachedFile, block: usize) -> bool {
    let mut buffer = vec![0; BLOCK];
    let Lookup::Miss(token) = cache.look_up(of, block as u32, &mut buffer) else { return true };
    for half in 0..2 {
        fill_half(&mut buffer, half, world.disks.borrow()[file].half(block, half));
    }
    match token.map(|token| cache.offer(OperationOwner::new(1, 1), &token, &buffer)) {
        Some(Offered::Staged) => store::bring_all(cache, OperationOwner::new(1, 1)) == 1,
        offered => offered == Some(Offered::Admitted),
    }
}

/// The next life: the power was cut, or everybody ended and somebody opens the zone again.
fn reopen(world: &Rc<World>, is_cut: bool, life: u8) {
    if !is_cut {
        let cache = world.cache();
        let files = world.files.borrow().clone();
        let entered = files.iter().enumerate().filter(|(_, of)| **of != NOT_ENTERED);
        entered.for_each(|(file, of)| cache.leave(*of, &world.identity(file), i64::MAX));
        if files[LATE] != NOT_ENTERED {
            world.noted.set(world.identity(LATE).mtime_ns);
        }
    }
    *world.cache.borrow_mut() = None;
    if is_cut {
        world.memory.cut(&world.rng, [life + 2; 16]);
        world.disks.borrow_mut().iter_mut().for_each(|disk| disk.cut(|n| world.rng.below(n)));
        if world.rng.one_in(2) {
            // The content is durable, the times are not.
            world.disks.borrow_mut()[LATE].touch(world.noted.get());
        }
    }
    match Cache::recover(world.memory.region(), world.memory.boot()) {
        Ok((cache, recovered)) => {
            world.count(|seen| seen.kept += recovered.kept);
            *world.cache.borrow_mut() = Some(Rc::new(cache.reading(store::read)));
        }
        Err(e) => world.violate(format!("the zone is not found again: {e}")),
    }
}
