//! Runs: several lives of one pool, each ended by a power cut, each with its own clients and daemons.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::destage::count_free;
use seawall_core::pool::{self, Pool};
use seawall_core::recover::{Locate, Sink, Target, recover_into};
use seawall_core::table::{self, FileEntry, RootEntry};
use seawall_core::{Engine, takeover};
use seawall_media::{Identity, sim};
use seawall_wire::shm::{Preset, SegmentState};

use crate::client::Client;
use crate::daemon::{DEAD, Daemon};
use crate::explore::{REPLAY, number};
use crate::fiber::{Fiber, State};
use crate::pending::THREADS;
use crate::world::{Counts, Mutant, Site, World, map_shared};
use crate::{Change, Survival, space};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything follows from it.
    pub seed: u64,
    /// Power cuts that are gone through.
    pub lives: u32,
    /// Operations of each logical thread in a life.
    pub operations: u64,
    /// A verb that is broken.
    pub mutant: Mutant,
    /// Note the sites of all verbs.
    pub survey: bool,
    /// Remember what happened last.
    pub trace: bool,
}

impl Plan {
    /// The usual size.
    pub fn of(seed: u64) -> Self {
        Self { seed, lives: 3, operations: 14, mutant: Mutant::None, survey: false, trace: false }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Numbers.
    pub counts: Counts,
    /// The first promise that was broken, with the seed.
    pub violation: Option<String>,
    /// The end of the story, if it was wanted.
    pub story: Vec<String>,
    /// Verbs that were passed: (is a fence, line), and how often.
    pub sites: Vec<((bool, Site), u64)>,
}

/// Directories that go away with the run.
struct Scene {
    memory: tempfile::TempDir,
    world: Rc<World>,
}

/// Logical threads of one life.
struct Threads {
    all: Vec<Thread>,
}

struct Thread {
    number: usize,
    client: u32,
    fiber: Fiber,
    daemon: bool,
    ended: bool,
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Outcome {
    let scene = scene(plan);
    let world = Rc::clone(&scene.world);
    let before = sim::install(Some(Rc::clone(&world) as Rc<dyn sim::Observer>));
    lives(&scene, plan);
    sim::install(before);
    let violation = world.violation.borrow().clone();
    let sites = world.sites.borrow().iter().map(|(k, n)| (k.clone(), *n)).collect();
    // The engines hold mappings, the world holds engines.
    world.engine.take();
    Outcome {
        counts: world.counts.borrow().clone(),
        story: world.story.take().into(),
        violation: violation.map(|what| format!("seed {}: {what}", plan.seed)),
        sites,
    }
}

fn scene(plan: &Plan) -> Scene {
    let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
    let path = memory.path().join("pool");
    pool::create(&path, 16 << 20, true, false).expect("a pool");
    let pool = pool::open(&path).expect("a pool");
    let world = World::new(pool, plan);
    Scene { memory, world: Rc::new(world) }
}

fn root() -> RootEntry {
    RootEntry {
        preset: Preset::Postgres,
        path: "/simulated".into(),
        uid: 0,
        data: "/simulated".into(),
        identity: Identity { fs: [7; 16], kind: 1, handle: vec![9; 8] },
    }
}

fn lives(scene: &Scene, plan: &Plan) {
    let world = &scene.world;
    let rng = &world.rng;
    for _ in 0..rng.range(1, 4) {
        world.add_file(vec![0x11; rng.below(5000) as usize]);
    }
    world.thread.set(THREADS - 1);
    if let Err(e) = table::add_root(&world.pool.borrow(), &root()) {
        world.violate(format!("no root: {e}"));
    }
    for life in 0..plan.lives {
        world.failures.set(if rng.one_in(4) { 30 } else { 0 });
        world.haste.set(rng.pick(&[12, 40, 150]));
        if world.is_over() {
            return;
        }
        if let Err(why) = live(scene, plan, life) {
            return world.violate(why);
        }
        if !world.is_over() {
            cut_and_recover(scene);
        }
    }
}

/// A life: from an empty log to a power cut, not included.
fn live(scene: &Scene, plan: &Plan, life: u32) -> Result<(), String> {
    let world = &scene.world;
    let rng = &world.rng;
    let room = rng.pick(&[3, 4, 6, 12]);
    let engine = start(scene, Some(room))?;
    let mut threads = Threads { all: Vec::new() };
    let idle = Rc::new(Cell::new(false));
    threads.daemon(world, &engine, &idle);
    for _ in 0..rng.range(1, 4) {
        threads.process(world, &engine, plan.operations);
    }
    // Some lives end in the middle of everything.
    let mut steps = if rng.one_in(2) { u64::MAX } else { rng.range(50, 2000) };
    while !world.is_over() && steps > 0 && threads.has_clients() {
        steps -= 1;
        let i = rng.below(threads.all.len() as u64) as usize;
        threads.resume(world, i);
        if !threads.has_daemon() || rng.one_in(400) {
            threads.hand_over(scene, &idle)?;
        }
    }
    if steps > 0 && !world.is_over() {
        drain(world, &mut threads, &idle)?;
    }
    let _ = life;
    threads.abandon(world);
    Ok(())
}

/// Starts a daemon: on fresh memory, or on what an earlier one left. `room`: segments the log may use.
fn start(scene: &Scene, room: Option<u32>) -> Result<Rc<Engine>, String> {
    let world = &scene.world;
    world.thread.set(world.rng.below(2) as usize + THREADS - 4);
    let started = takeover::start(&mut world.pool.borrow_mut(), scene.memory.path());
    let started = started.map_err(|e| format!("no start: {e}"))?;
    if started.taken_over == room.is_some() {
        return Err(format!("taken over: {}", started.taken_over));
    }
    let engine = Rc::new(started.engine);
    world.bases.borrow_mut().push(engine.pool().base());
    *world.shared.borrow_mut() = Some(map_shared(&started.shm_file, started.shm_len));
    *world.engine.borrow_mut() = Some(Rc::clone(&engine));
    world.peek(|| reserve(&engine, room));
    Ok(engine)
}

/// Takes all but `room` segments out of play, and makes the hint about free ones count them as free, so
/// that files come back to a log this small.
fn reserve(engine: &Engine, room: Option<u32>) {
    let shm = engine.shm();
    for i in room.unwrap_or(u32::MAX)..engine.layout().segments {
        if let Some(segment) = shm.segment(i) {
            segment.state().store(SegmentState::Full as u32, SeqCst);
            segment.last_lsn().store(space::RESERVED, SeqCst);
        }
    }
    let hint = count_free(engine) + engine.layout().segments / 4 - 2;
    shm.header().free_segments().store(hint, SeqCst);
}

impl Threads {
    fn number(&self) -> usize {
        let taken = |n: &usize| self.all.iter().any(|t| t.number == *n && !t.ended);
        (0..THREADS - 4).find(|n| !taken(n)).unwrap_or(0)
    }

    fn add(&mut self, world: &World, client: u32, number: usize, daemon: bool, fiber: Fiber) {
        world.born(number, daemon);
        self.all.push(Thread { number, client, fiber, daemon, ended: false });
    }

    fn daemon(&mut self, world: &Rc<World>, engine: &Rc<Engine>, idle: &Rc<Cell<bool>>) {
        let number = self.number();
        let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return };
        let daemon = Daemon { world: Rc::clone(world), engine: Rc::clone(engine), slot, thread: number };
        let idle = Rc::clone(idle);
        world.fuses.borrow_mut()[number] = world.rng.one_in(3).then(|| world.rng.below(6000) as u32);
        let body = move || {
            daemon.reap();
            daemon.register();
            daemon.run(|| idle.get());
        };
        self.add(world, slot, number, true, Fiber::new(body));
    }

    /// A process of one or two threads.
    fn process(&mut self, world: &Rc<World>, engine: &Rc<Engine>, operations: u64) {
        let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return };
        let dies = world.rng.one_in(3);
        for _ in 0..world.rng.range(1, 3) {
            let thread = self.number();
            let client = Client { world: Rc::clone(world), engine: Rc::clone(engine), slot, thread };
            world.fuses.borrow_mut()[thread] = dies.then(|| world.rng.below(1500) as u32);
            self.add(world, slot, thread, false, Fiber::new(move || client.run(operations)));
        }
    }

    fn has_clients(&self) -> bool {
        self.all.iter().any(|t| !t.daemon && !t.ended)
    }

    fn has_daemon(&self) -> bool {
        self.all.iter().any(|t| t.daemon && !t.ended)
    }

    fn resume(&mut self, world: &Rc<World>, i: usize) {
        let thread = &mut self.all[i];
        if thread.ended {
            return;
        }
        world.thread.set(thread.number);
        match thread.fiber.resume() {
            State::Ready => {}
            State::Ended => thread.ended = true,
            State::Panicked => {
                thread.ended = true;
                world.violate(format!("a panic: {}", thread.fiber.panic_text()));
            }
            State::Killed => self.killed(world, i),
        }
    }

    /// A thread was killed: so is all of its process, here and now.
    fn killed(&mut self, world: &Rc<World>, i: usize) {
        let client = self.all[i].client;
        for thread in self.all.iter_mut().filter(|t| t.client == client) {
            if !thread.ended && thread.fiber.state() == State::Ready {
                world.fuses.borrow_mut()[thread.number] = Some(0);
                world.thread.set(thread.number);
                world.unwinding(|| thread.fiber.resume());
            }
            thread.ended = true;
            world.fuses.borrow_mut()[thread.number] = None;
            world.died(thread.number);
        }
        world.restore();
        let engine = world.engine.borrow().clone();
        world.peek(|| {
            if let Some(c) = engine.as_ref().and_then(|e| e.shm().client(client)) {
                c.pid().store(DEAD, SeqCst);
            }
        });
        world.count(|c| c.kills += 1);
        world.tell(|| format!("client {client} is dead"));
    }

    /// The daemon ends, in the middle of whatever it does, and another one takes over.
    fn hand_over(&mut self, scene: &Scene, idle: &Rc<Cell<bool>>) -> Result<(), String> {
        let world = &scene.world;
        while let Some(i) = self.all.iter().position(|t| t.daemon && !t.ended) {
            world.fuses.borrow_mut()[self.all[i].number] = Some(0);
            self.resume(world, i);
            self.all[i].ended = true;
        }
        self.all.retain(|t| !t.ended);
        for _ in 0..world.rng.range(1, 3) {
            let engine = start(scene, None)?;
            world.count(|c| c.takeovers += 1);
            world.tell(|| "a daemon takes over".into());
            if !self.has_daemon() {
                self.daemon(world, &engine, idle);
            }
        }
        Ok(())
    }

    /// Everybody is gone without a trace: the power is off.
    fn abandon(&mut self, world: &Rc<World>) {
        for thread in self.all.drain(..) {
            if !thread.ended && thread.fiber.state() == State::Ready {
                world.fuses.borrow_mut()[thread.number] = Some(0);
                world.thread.set(thread.number);
                world.unwinding(|| thread.fiber.resume());
            }
        }
        world.at_death.take();
        world.restore();
        *world.fuses.borrow_mut() = [None; THREADS];
    }
}

/// With nobody at work, the log empties.
fn drain(world: &Rc<World>, threads: &mut Threads, idle: &Rc<Cell<bool>>) -> Result<(), String> {
    idle.set(true);
    world.fuses.borrow_mut().fill(None);
    while let Some(i) = threads.all.iter().position(|t| t.daemon && !t.ended) {
        threads.resume(world, i);
        if world.is_over() {
            return Ok(());
        }
    }
    let Some(engine) = world.engine.borrow().clone() else { return Ok(()) };
    let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return Ok(()) };
    world.failures.set(0);
    let daemon = Daemon { world: Rc::clone(world), engine: Rc::clone(&engine), slot, thread: 0 };
    world.thread.set(0);
    daemon.reap();
    daemon.forget_unlinked();
    daemon.round();
    let round = daemon.round();
    world.count(|c| c.drains += 1);
    if round.failed.is_empty() && round.dirty > 0 {
        return Err(format!("after a drain {} files are dirty", round.dirty));
    }
    if round.failed.is_empty() { world.peek(|| space::all_free(&engine)) } else { Ok(()) }
}

/// The power goes, comes back, and the log is recovered; that may be cut as well.
fn cut_and_recover(scene: &Scene) {
    let world = &scene.world;
    loop {
        cut(world);
        world.fuses.borrow_mut()[0] = world.rng.one_in(3).then(|| world.rng.below(60) as u32);
        let machine = Rc::clone(world);
        let fiber = Fiber::new(move || recover(&machine));
        world.thread.set(0);
        while fiber.resume() == State::Ready {}
        match fiber.state() {
            State::Killed => {
                world.died(0);
                world.at_death.take();
                world.restore();
                world.count(|c| c.recoveries_cut += 1);
            }
            State::Panicked => return world.violate(format!("recovery panics: {}", fiber.panic_text())),
            _ => break,
        }
    }
    world.fuses.borrow_mut()[0] = None;
    forget_run_time_memory(scene);
}

fn cut(world: &World) {
    let rng = &world.rng;
    world.count(|c| c.cuts += 1);
    world.tell(|| "power cut".into());
    let lines = world.pending.borrow().crash(Survival::draw(rng), rng, |line| world.image.line(line));
    let unsure: Vec<u32> = world.pending.borrow().unsure().collect();
    world.peek(|| world.image.cut(&lines, unsure.into_iter(), &world.pool.borrow().region));
    *world.pending.borrow_mut() = crate::Pending::default();
    for index in 0..world.file_count() {
        let content = world.files.borrow()[index].disk.crash(Survival::draw(rng), rng);
        world.power_loss(index, content);
    }
}

struct Disks<'a>(&'a Rc<World>);

struct OnDisk {
    world: Rc<World>,
    index: usize,
}

impl Locate for Disks<'_> {
    type File = OnDisk;

    fn locate(
        &self,
        _root: Option<&RootEntry>,
        entry: &FileEntry,
        _power_lost: bool,
    ) -> Result<Target<OnDisk>, String> {
        let index = number(entry)?;
        Ok(Target { file: OnDisk { world: Rc::clone(self.0), index }, path: PathBuf::from(&entry.path) })
    }
}

impl Sink for OnDisk {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.world.change(self.index, &Change::Write(offset as usize, Rc::new(bytes.to_vec())));
        self.world.point();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.world.change(self.index, &Change::Truncate(len as usize));
        self.world.point();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.world.files.borrow_mut()[self.index].disk.sync();
        self.world.point();
        Ok(())
    }
}

fn recover(world: &Rc<World>) {
    let done = recover_into(&world.pool.borrow(), REPLAY, &Disks(world));
    if let Err(e) = done {
        return world.violate(format!("recovery after a power cut: {e}"));
    }
    if let Some(line) = world.image.differs(&world.pool.borrow().region) {
        return world.violate(format!("recovery left line {line} of the pool unfenced"));
    }
    for index in 0..world.file_count() {
        world.recovered(index);
    }
}

fn forget_run_time_memory(scene: &Scene) {
    let world = &scene.world;
    world.engine.take();
    world.shared.take();
    let base = world.pool.borrow().region.base();
    *world.bases.borrow_mut() = vec![base];
    for entry in std::fs::read_dir(scene.memory.path()).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|e| e == "rt") {
            // A fresh boot finds no run-time memory.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Keeps the type of a pool's file in view of the reader: the lock is the descriptor's.
const _: fn(&Pool) -> &File = |pool| &pool.file;
