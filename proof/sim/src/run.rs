//! Runs: several lives of one pool, each ended by a power cut, each with its own clients and daemons.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use seawall_media::sim;

use crate::counts::Counts;
use crate::daemon::Daemon;
use crate::guest::Guest;
use crate::pending::THREADS;
use crate::plan::{CROWD, Plan, Site};
use crate::restart::{Scene, cut_and_recover, start};
use crate::space;
use crate::threads::Threads;
use crate::world::{World, runs};

/// Steps that are made when the log's device has failed.
const AFTER_A_FAILURE: u64 = 300;

/// Bytes of an image: so few that requests meet.
const IMAGES: [usize; 2] = [96 << 10, 192 << 10];

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

/// Runs a plan.
pub fn run(plan: &Plan) -> Outcome {
    let scene = Scene::new(plan);
    let world = Rc::clone(&scene.world);
    let before = sim::install(Some(Rc::clone(&world) as Rc<dyn sim::Observer>));
    runs(Some(Rc::clone(&world)));
    lives(&scene, plan);
    runs(None);
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

/// How many files there are, or processes of a life.
fn some(world: &World) -> u64 {
    if world.crowded { CROWD } else { world.rng.range(1, 4) }
}

fn lives(scene: &Scene, plan: &Plan) {
    let world = &scene.world;
    let rng = &world.rng;
    let (images, files) = match () {
        () if plan.names => (0, 0),
        () if plan.disk => (rng.range(1, 3), rng.below(2)),
        () => (0, some(world)),
    };
    for _ in 0..images {
        world.add_image(vec![0x11; rng.pick(&IMAGES)]);
    }
    for _ in 0..files {
        world.add_file(vec![0x11; rng.below(5000).next_multiple_of(world.unit()) as usize]);
    }
    for _ in 0..plan.lives {
        // The simulated directories are on a disk that does not fail; the log's device may.
        world.failures.set(if rng.one_in(4) && !plan.names { 30 } else { 0 });
        world.commits.set(if rng.one_in(8) && !plan.names { 25 } else { 0 });
        world.haste.set(rng.pick(&[12, 40, 150]));
        if world.is_over() {
            return;
        }
        if let Err(why) = live(scene, plan) {
            return world.violate(why);
        }
        if !world.is_over() {
            cut_and_recover(scene);
        }
    }
}

/// A life: from an empty log to a power cut, not included.
fn live(scene: &Scene, plan: &Plan) -> Result<(), String> {
    let world = &scene.world;
    let rng = &world.rng;
    let room = rng.pick(&[3, 4, 6, 12]);
    let engine = start(scene, room)?;
    if let Some(block) = world.block.as_ref().filter(|_| rng.one_in(4)) {
        block.may_fail(rng.pick(&[10, 40]));
    }
    if let Some(disk) = world.area.as_ref().filter(|_| rng.one_in(4)) {
        disk.may_fail(rng.pick(&[4, 20]));
    }
    let guest = |index| (Rc::new(Guest::new(world, index, plan.operations)), None);
    let guests = world.images().map(guest).collect();
    let mut threads = Threads { all: Vec::new(), room, guests };
    let idle = Rc::new(Cell::new(false));
    threads.daemon(world, &engine, &idle);
    let processes = if plan.disk { rng.below(2) } else { some(world) };
    for _ in 0..processes {
        threads.process(world, &engine, plan.operations);
    }
    if plan.names && !rng.one_in(4) {
        threads.register(world);
    }
    // Guests wait until a daemon has come to their image, however long that takes.
    let handed_over = if plan.disk { 4000 } else { 400 };
    // Most lives end in the middle of everything.
    let mut steps = if rng.one_in(3) { u64::MAX } else { rng.range(50, 3000) };
    while !world.is_over() && steps > 0 && threads.has_clients() {
        steps -= 1;
        let i = rng.below(threads.all.len() as u64) as usize;
        threads.resume(world, i);
        threads.serve(world);
        if world.log_has_failed() {
            // No daemon takes such a log over while anybody uses it. They go on for a while.
            steps = steps.min(AFTER_A_FAILURE);
        } else if !threads.has_daemon() || rng.one_in(handed_over) {
            let taken_over = threads.hand_over(scene, &idle);
            if !world.log_has_failed() {
                taken_over?;
            }
        }
    }
    if steps > 0 && !world.is_over() && !world.log_has_failed() {
        drain(world, &mut threads, &idle)?;
    }
    threads.abandon(world);
    Ok(())
}

/// With nobody at work, the log empties.
fn drain(world: &Rc<World>, threads: &mut Threads, idle: &Rc<Cell<bool>>) -> Result<(), String> {
    idle.set(true);
    world.block.iter().for_each(|block| block.may_fail(0));
    (0..THREADS).for_each(|thread| world.put_out(thread));
    while let Some(i) = threads.all.iter().position(|t| t.daemon && !t.ended) {
        threads.resume(world, i);
        if world.is_over() {
            return Ok(());
        }
    }
    let Some(engine) = world.engine.borrow().clone() else { return Ok(()) };
    let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return Ok(()) };
    world.failures.set(0);
    world.commits.set(0);
    let daemon = Daemon {
        world: Rc::clone(world),
        engine: Rc::clone(&engine),
        slot,
        thread: 0,
        spiller: RefCell::default(),
        held: RefCell::default(),
    };
    world.thread.set(0);
    daemon.reap();
    daemon.forget_unlinked();
    daemon.round();
    let round = daemon.round();
    world.count(|c| c.drains += 1);
    if round.failed.is_empty() && round.dirty > 0 {
        return Err(format!("after a drain {} files are dirty", round.dirty));
    }
    if !round.failed.is_empty() {
        return Ok(());
    }
    world.peek(|| space::all_free(&engine).and_then(|()| space::area_is_free(&world.pool.borrow())))
}
