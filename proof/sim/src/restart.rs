//! Between lives: a daemon starts, the power goes and comes back, the log is recovered. Each of them may be
//! cut short itself, at any step.

mod recovery;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::destage::count_free;
use seawall_core::format::slot_at;
use seawall_core::spill::Plan as Spill;
use seawall_core::table;
use seawall_core::takeover::{self, StartError, Started};
use seawall_core::{Engine, pool};
use seawall_wire::shm::SegmentState;

use crate::block::Block;
use crate::fiber::{Fiber, State};
use crate::names::registered_root;
use crate::pending::THREADS;
use crate::world::{FsJournal, World, map_shared};
use crate::{Pending, Plan, Survival, space};

use recovery::recover;

/// Bytes of a journal, by seed: so small that a lap is over soon, that it fills, and that reading it takes no time.
const JOURNALS: [u64; 2] = [3 << 20, 4 << 20];

/// Slots of a spill area, by seed: so few that they fill, and are used again.
const AREAS: [u32; 3] = [4, 7, 16];

/// A machine, and what goes away with it.
pub struct Scene {
    memory: tempfile::TempDir,
    /// The machine.
    pub world: Rc<World>,
}

impl Scene {
    /// A machine with an empty pool.
    pub fn new(plan: &Plan) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
        let path = memory.path().join("pool");
        let pool = if plan.block {
            let journal = JOURNALS[plan.seed as usize / 2 % JOURNALS.len()];
            let sizes = pool::block::Sizes { image: 16 << 20, journal };
            pool::block::create_file(&path, sizes).expect("a pool");
            if plan.mirror {
                let second = memory.path().join("pool2");
                pool::block::mirror::join(&path, &second, false).expect("a mirror");
            }
            pool::block::open_in(&path, memory.path()).expect("a pool")
        } else {
            let slots = AREAS[plan.seed as usize / 2 % AREAS.len()];
            let area = Spill { path: memory.path().join("pool-area"), bytes: slot_at(slots, 64 << 10) };
            let area = Some(&area).filter(|_| plan.spill);
            pool::create_with_area(&path, 16 << 20, true, false, area).expect("a pool");
            pool::open(&path).expect("a pool")
        };
        Self { memory, world: Rc::new(World::new(pool, plan)) }
    }

    /// The power was off: run-time memory is gone.
    fn forget_run_time_memory(&self) {
        let world = &self.world;
        world.engine.take();
        world.shared.take();
        for entry in std::fs::read_dir(self.memory.path()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with("pool") {
                // A fresh boot finds no run-time memory.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        if world.block.is_some() {
            world.peek(|| self.read_journal());
        }
    }

    /// The image is made from the journal, as by the first daemon of a boot.
    fn read_journal(&self) {
        let world = &self.world;
        // One daemon at a time: the old one's lock is gone with it.
        (world.pool.borrow_mut().lock, world.pool.borrow_mut().mirror) = (None, None);
        let elsewhere = world.block.as_ref().and_then(|block| block.replug(&world.rng));
        let path = elsewhere.unwrap_or_else(|| self.memory.path().join("pool"));
        match pool::block::open_in(&path, self.memory.path()) {
            Ok(pool) => world.opened(pool),
            Err(e) => world.violate(format!("after a power cut: {e}")),
        }
    }
}

/// Runs `body` as a process that may be killed at one of its steps. `None`: it was.
fn mortal<R: 'static>(world: &Rc<World>, thread: usize, body: impl FnOnce() -> R + 'static) -> Option<R> {
    let result = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&result);
    if world.rng.one_in(3) {
        // A journal's words are steps too.
        world.light(thread, if world.block.is_some() { 300 } else { 60 }, 6);
    }
    world.thread.set(thread);
    let fiber = Fiber::new(move || {
        let done = body();
        *slot.borrow_mut() = Some(done);
    });
    while fiber.resume() == State::Ready {}
    world.put_out(thread);
    match fiber.state() {
        State::Killed => {
            world.died(thread);
            world.restore();
            // What the dead had read is gone with it.
            if let Ok(superblock) = world.superblock() {
                world.pool.borrow_mut().superblock = superblock;
            }
        }
        State::Panicked => world.violate(format!("a panic: {}", fiber.panic_text())),
        _ => {}
    }
    result.take()
}

/// Starts a daemon, on fresh memory or on what an earlier one left; a start that is killed is made again.
/// `room`: segments the log may use.
pub fn start(scene: &Scene, room: u32) -> Result<Rc<Engine>, String> {
    let world = &scene.world;
    let thread = world.rng.below(2) as usize + THREADS - 4;
    let started = loop {
        let (machine, dir) = (Rc::clone(world), scene.memory.path().to_owned());
        let body = move || begin(&machine, &dir);
        match mortal(world, thread, body) {
            Some(started) => break started?,
            None if world.is_over() => return Err("no start".into()),
            None => world.count(|c| c.kills += 1),
        }
    };
    let engine = Rc::new(started.engine);
    *world.shared.borrow_mut() = Some(map_shared(&started.shm_file, started.shm_len));
    world.started(&engine);
    if !started.taken_over && world.block.is_some() && world.rng.one_in(2) {
        let backed = world.rng.range(1, u64::from(room)) as u32;
        world.peek(|| forget_memory(world, backed));
    }
    world.peek(|| reserve(&engine, room));
    Ok(engine)
}

fn begin(world: &World, dir: &std::path::Path) -> Result<Started, String> {
    let started = takeover::start(&mut world.pool.borrow_mut(), dir).map_err(|e| format!("no start: {e}"))?;
    table::add_root(&world.pool.borrow(), &registered_root()).map_err(|e| format!("no root: {e}"))?;
    Ok(started)
}

/// The image is so large that a start took memory for the first segments only. Nobody has used the others yet.
fn forget_memory(world: &World, backed: u32) {
    let pool = world.pool.borrow();
    let unbacked = pool.layout().segments - backed;
    let desk = pool.region.journal().map(|journal| journal.desk(&pool.region));
    desk.iter().for_each(|desk| desk.unbacked().store(unbacked, SeqCst));
    world.count(|c| c.young += 1);
}

/// Takes all but `room` segments out of play, and makes the hint about free ones count them as free, so
/// that files come back to a log this small.
fn reserve(engine: &Engine, room: u32) {
    let shm = engine.shm();
    for i in room..engine.layout().segments {
        if let Some(segment) = shm.segment(i) {
            segment.state().store(SegmentState::Full as u32, SeqCst);
            segment.last_lsn().store(space::RESERVED, SeqCst);
        }
    }
    let hint = count_free(engine) + (engine.backed() / 4).saturating_sub(2);
    shm.header().free_segments().store(hint, SeqCst);
}

/// The power goes, comes back, and the log is recovered; that may be cut as well.
pub fn cut_and_recover(scene: &Scene) {
    let world = &scene.world;
    world.recovering.set(true);
    cut(world);
    scene.forget_run_time_memory();
    let mut attempts = 0;
    while !world.is_over() && attempts < 20 {
        attempts += 1;
        refuses_to_start(scene);
        let machine = Rc::clone(world);
        match mortal(world, 0, move || recover(&machine)) {
            Some(true) => break,
            // A file could not be synced: the log is kept, and the operator tries again.
            Some(false) => {}
            None => {
                world.count(|c| c.recoveries_cut += 1);
                cut(world);
                scene.forget_run_time_memory();
            }
        }
    }
    world.recovering.set(false);
    world.block.iter().for_each(Block::recovered);
}

/// P5: a log that holds records is not started over.
fn refuses_to_start(scene: &Scene) {
    let world = &scene.world;
    let started = world.peek(|| {
        let pool = &mut *world.pool.borrow_mut();
        let used = table::files(pool).is_ok_and(|files| !files.is_empty());
        used.then(|| takeover::start(pool, scene.memory.path()))
    });
    if started.is_some_and(|started| !matches!(started, Err(StartError::NotRecovered))) {
        world.violate("a log that was not recovered is started over".into());
    }
}

fn cut(world: &World) {
    let rng = &world.rng;
    world.count(|c| c.cuts += 1);
    world.tell(|| "power cut".into());
    world.journal.set(FsJournal::Whole);
    if let Some(block) = &world.block {
        world.peek(|| world.cut_block(block));
    } else {
        let lines = world.pending.borrow().crash(Survival::draw(rng), rng, |line| world.image.line(line));
        let unsure: Vec<u32> = world.pending.borrow().unsure().collect();
        world.peek(|| world.image.cut(&lines, unsure.into_iter(), &world.pool.borrow().region));
        *world.pending.borrow_mut() = Pending::default();
    }
    if let Some(disk) = &world.area {
        disk.cut(rng);
    }
    match world.superblock() {
        Ok(superblock) => world.pool.borrow_mut().superblock = superblock,
        Err(e) => world.violate(format!("the superblock is lost: {e:?}")),
    }
    for index in 0..world.file_count() {
        let (content, lost) = {
            let content = world.left_of(index);
            (content, world.files.borrow()[index].fresh && rng.one_in(2))
        };
        world.power_loss(index, content, lost);
    }
    world.lose_names();
}
