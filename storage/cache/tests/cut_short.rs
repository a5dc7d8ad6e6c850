//! Small scenes, most of them cut short at every step in turn: what seeds meet too rarely to be held by chance.

#[path = "world/memory.rs"]
mod memory;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use memory::Memory;
use seawall_cache::shared::{Cache, CachedFile, Identity, Layout, Lookup, Offered, OperationOwner};
use seawall_media::sim::{Observer, Site, install};
use seawall_sim::Rng;
use seawall_sim::fiber::{self, Fiber, State};

/// One set: whoever enters a full one takes another block's place.
const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 1, files: 1, operations: 8, staged: 0 };
const PLACES: u32 = 16;
const FILE: Identity = Identity { fs: [7; 16], inode: 1, generation: 1, size: 1, mtime_ns: 0, ctime_ns: 0 };

/// A machine whose memory survives power loss, with one file in its cache.
struct Scene {
    memory: Memory,
    running: Cell<usize>,
    /// Accesses to shared memory until the process that runs is killed.
    fuse: Cell<u64>,
    /// What happens in the middle of the next copy out of shared memory.
    meanwhile: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Observer for Scene {
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
    fn reads(&self, _: usize, _: usize, _: usize) {
        let meanwhile = self.meanwhile.take();
        meanwhile.into_iter().for_each(|happens| happens());
    }
    fn touched(&self, _: usize) {
        self.step();
    }
}

impl Scene {
    /// A zone with these blocks of the file in it, read from the disk and synced there.
    fn with(blocks: u32) -> (Rc<Self>, Rc<Cache>, CachedFile) {
        let memory = Memory::new(LAYOUT.total_bytes().expect("sane"), true);
        let (running, fuse, meanwhile) = (Cell::new(0), Cell::new(0), RefCell::default());
        let scene = Rc::new(Self { memory, running, fuse, meanwhile });
        install(Some(Rc::clone(&scene) as Rc<dyn Observer>));
        let region = scene.memory.region();
        let cache = Cache::create(region, LAYOUT, [9; 16], scene.memory.boot(), true).expect("a cache");
        let file = enter(&cache);
        cache.note(file, &FILE, i64::MAX);
        (0..blocks).for_each(|number| assert_eq!(offer(&cache, file, number), Offered::Admitted));
        let sync = cache.begin_sync(file);
        cache.end_sync(file, sync, true);
        (scene, Rc::new(cache), file)
    }

    fn step(&self) {
        if !fiber::inside() {
            return;
        }
        if self.fuse.get() == 0 {
            fiber::kill();
        }
        self.fuse.set(self.fuse.get() - 1);
    }

    /// Runs a process that is killed at this step. True if it had ended before.
    fn killed_at(&self, step: u64, process: impl FnOnce() + 'static) -> bool {
        self.fuse.set(step);
        self.running.set(1);
        let state = Fiber::new(process).resume();
        self.running.set(0);
        assert!(matches!(state, State::Ended | State::Killed), "{state:?}");
        state == State::Ended
    }

    /// The power is cut, and the zone found again.
    fn cut(&self, rng: &Rng) -> (Cache, CachedFile) {
        self.memory.cut(rng, [2; 16]);
        let (cache, _) = Cache::recover(self.memory.region(), self.memory.boot()).expect("the zone");
        let file = enter(&cache);
        (cache, file)
    }
}

fn enter(cache: &Cache) -> CachedFile {
    // Nothing is served while nobody watches.
    cache.watcher().store(1, SeqCst);
    cache.enter(&FILE).expect("room for a file").file
}

/// What the disk holds of a block.
fn content(number: u32) -> Vec<u8> {
    vec![number as u8 + 1; 4096]
}

/// The block is missed, and offered.
fn offer(cache: &Cache, file: CachedFile, number: u32) -> Offered {
    let missed = cache.look_up(file, number, &mut content(0));
    let Lookup::Miss(Some(token)) = missed else { panic!("block {number}: {missed:?}") };
    cache.offer(OperationOwner::new(1, 1), &token, &content(number))
}

/// Whether the block is there; then it is as it was.
fn is_there(cache: &Cache, file: CachedFile, number: u32) -> bool {
    let mut buffer = content(number + 1);
    let is_hit = cache.look_up(file, number, &mut buffer) == Lookup::Hit;
    assert!(!is_hit || buffer == content(number), "block {number} holds something else");
    is_hit
}

/// A writer is killed when it has taken a block out, and before that is durable. The next one finds nothing to take
/// out, writes the block, and the power is cut: the first one's store must not be undone.
// Holds: internals/CACHE#tested
#[test]
fn what_a_killed_writer_took_out_stays_out() {
    let (mut step, mut has_ended) = (0, false);
    while !has_ended {
        for seed in 0..8 {
            let (scene, cache, file) = Scene::with(2);
            let killed = Rc::clone(&cache);
            has_ended = scene.killed_at(step, move || {
                let _never_ended = killed.begin_write(OperationOwner::new(1, 1), file, 0..1);
            });
            cache.end_write(cache.begin_write(OperationOwner::new(2, 1), file, 0..1));
            let (cache, file) = scene.cut(&Rng::new(seed));
            assert!(!is_there(&cache, file, 0), "killed at step {step}, seed {seed}");
            assert!(is_there(&cache, file, 1), "nothing is found again");
        }
        step += 1;
    }
    assert!(step > 5, "it was killed nowhere");
}

/// The power is cut at every step of a fill that takes another block's place.
// Holds: internals/CACHE#tested
#[test]
fn a_place_that_changes_hands_is_the_old_blocks_or_nobodys() {
    let admitted = attempts();
    let (mut step, mut has_ended) = (0, false);
    while !has_ended {
        for seed in 0..16 {
            let (scene, cache, file) = Scene::with(PLACES);
            (1..admitted).for_each(|_| assert_ne!(offer(&cache, file, PLACES), Offered::Admitted));
            let filler = Rc::clone(&cache);
            has_ended = scene.killed_at(step, move || _ = offer(&filler, file, PLACES));
            let (cache, file) = scene.cut(&Rng::new(seed));
            let kept = (0..=PLACES).filter(|number| is_there(&cache, file, *number)).count();
            // Gone may be the one whose place it was, and the newest, whose set's word nobody had to flush yet.
            assert!(kept + 2 >= PLACES as usize, "step {step}, seed {seed}: only {kept} are left");
            assert_eq!(cache.failures(), 0, "step {step}, seed {seed}: a checksum failed");
        }
        step += 1;
    }
    assert!(step > 20, "it was cut nowhere");
}

/// How often a block has to be missed before it enters a full set.
fn attempts() -> u32 {
    let (_scene, cache, file) = Scene::with(PLACES);
    (1..100).find(|_| offer(&cache, file, PLACES) == Offered::Admitted).expect("it enters some time")
}

#[test]
fn damage_that_two_readers_see_is_counted_once() {
    let (scene, cache, file) = Scene::with(PLACES);
    let blocks = LAYOUT.total_bytes().expect("sane") - PLACES as usize * 4096;
    (blocks..).step_by(4096).take(PLACES as usize).for_each(|at| scene.memory.region().copy_in(at, &[0xee]));
    let other = Rc::clone(&cache);
    *scene.meanwhile.borrow_mut() = Some(Box::new(move || assert!(!is_there(&other, file, 0))));
    assert!(!is_there(&cache, file, 0) && scene.meanwhile.borrow().is_none());
    assert_eq!(cache.failures(), 1);
}
