//! The simulated machine: observes the verbs (`observer`), keeps what is persisted and what is on disk (`files`,
//! `syncs`, `devices`), and decides at every step whether to cut the power (in a copy), to kill the thread, or to let another
//! one run (`turns`).

mod devices;
mod file;
mod files;
mod images;
mod names;
mod observer;
mod syncs;
mod turns;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::rc::{Rc, Weak};

use seawall_core::format::{Superblock, SuperblockError};
use seawall_core::pool::Pool;
use seawall_core::{Engine, Owner};
use seawall_media::Region;

use crate::Rng;
use crate::area::AreaDisk;
use crate::block::Block;
use crate::counts::Counts;
use crate::image::Image;
use crate::pending::{Pending, THREADS};
use crate::plan::{Mutant, Plan, Site};

pub use file::{FsJournal, SimFile};
pub use names::{Asked, Shelf};

const EIO: i32 = 5;

thread_local! {
    /// The machine that runs on this thread of the system.
    static RUNNING: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The machine that runs here, for what an engine calls.
pub fn running() -> Option<Rc<World>> {
    RUNNING.with_borrow(Clone::clone)
}

/// From now on this one runs here.
pub fn runs(world: Option<Rc<World>>) {
    RUNNING.set(world);
}

/// Events that are remembered.
const LONGEST_STORY: usize = 80;

/// The machine.
pub struct World {
    /// Where chance comes from.
    pub rng: Rng,
    /// The verb that is broken.
    pub mutant: Mutant,
    /// Stored and not persisted.
    pub pending: RefCell<Pending>,
    /// Persisted.
    pub image: Image,
    /// The daemon's pool.
    pub pool: RefCell<Pool>,
    /// Its bytes, for looking while somebody has the pool.
    view: RefCell<Region>,
    /// The disk of the spill area, if the pool has one.
    pub area: Option<AreaDisk>,
    /// The device of a journal, if the pool has one.
    pub block: Option<Block>,
    /// Names of the threads' processes; the dead have none here.
    ids: RefCell<[u32; THREADS]>,
    /// Where the pool is mapped, while somebody has it too.
    pool_at: Cell<usize>,
    /// Where daemons have mapped it.
    mappings: RefCell<Vec<(Weak<Engine>, usize)>>,
    /// Files by number.
    pub files: RefCell<Vec<SimFile>>,
    descriptors: RefCell<BTreeMap<i32, usize>>,
    /// An operator has to decide how it goes on.
    is_left: Cell<bool>,
    /// Directories whose names are in the log, if there are any.
    pub shelf: Option<Shelf>,
    /// The newest daemon's engine.
    pub engine: RefCell<Option<Rc<Engine>>>,
    /// The run-time memory, mapped once more.
    pub shared: RefCell<Option<Region>>,
    /// The logical thread that runs.
    pub thread: Cell<usize>,
    /// Which of them are daemons.
    daemons: RefCell<[bool; THREADS]>,
    /// Steps until a thread's process is killed.
    pub fuses: RefCell<[Option<u32>; THREADS]>,
    /// Fences until a thread's process is killed, before the last of them.
    fences_left: RefCell<[Option<u32>; THREADS]>,
    /// Steps until a thread stops for a while.
    stalls: RefCell<[Option<u32>; THREADS]>,
    /// How often a thread that has stopped is passed over.
    asleep: RefCell<[u32; THREADS]>,
    /// Run-time memory at the moment of a kill.
    pub at_death: RefCell<Option<Vec<u8>>>,
    /// Hooks do nothing.
    quiet: Cell<bool>,
    /// One yield in this many steps.
    pub haste: Cell<u64>,
    /// One failed sync in this many; 0 for none.
    pub failures: Cell<u64>,
    /// The journal of the file system under all files.
    pub journal: Cell<FsJournal>,
    /// One failed commit of it in this many syncs; 0 for none.
    pub commits: Cell<u64>,
    /// One exploration in this many points.
    pub sparse: Cell<u64>,
    /// Many commit at once ([`Plan::is_crowded`]).
    pub crowded: bool,
    /// Every write of every file is to go through the log (policy `atomic`): in half of the runs.
    pub atomic: bool,
    /// What its file system is known for: in half of the runs a sync of the directory makes names durable.
    pub is_named_by_directory: bool,
    /// The unit in which this machine's disks write.
    pub sector: usize,
    /// Its disks garble sectors that they were writing: in a third of the runs.
    garbles: bool,
    /// A recovery is under way, or the power just went.
    pub recovering: Cell<bool>,
    /// A line of the image that cannot be read.
    pub poison: Cell<Option<u32>>,
    /// Numbers.
    pub counts: RefCell<Counts>,
    /// Sites of verbs that were passed: fences and stores.
    pub sites: RefCell<BTreeMap<(bool, Site), u64>>,
    /// Wanted: fill `sites`.
    pub survey: bool,
    /// Wanted: fill `story`.
    pub trace: bool,
    /// What happened last, for whoever looks into a violation.
    pub story: RefCell<VecDeque<String>>,
    /// The first promise that was broken.
    pub violation: RefCell<Option<String>>,
}

impl World {
    /// A machine with this pool, all of it persisted.
    pub fn new(pool: Pool, plan: &Plan) -> Self {
        let rng = Rng::new(plan.seed);
        let shelf = || Shelf::of(rng.range(1, 3) as usize, rng.pick(&[0, 1, 2, 3]), 512, rng.pick(&[1, 4]));
        Self {
            is_left: Cell::new(false),
            shelf: plan.names.then(shelf),
            crowded: plan.is_crowded() && !plan.disk && !plan.names,
            atomic: plan.seed % 2 == 1,
            sector: rng.pick(&[64, 512, 512, 4096]),
            garbles: rng.one_in(3),
            is_named_by_directory: rng.one_in(2),
            recovering: Cell::new(false),
            poison: Cell::new(None),
            rng,
            mutant: plan.mutant.clone(),
            pending: RefCell::default(),
            image: Image::of(&pool),
            view: RefCell::new(map_shared(&pool.file, pool.region.len() as u64)),
            pool_at: Cell::new(pool.region.base()),
            mappings: RefCell::default(),
            area: AreaDisk::of(&pool),
            block: Block::of(&pool),
            ids: RefCell::new(core::array::from_fn(|thread| thread as u32 + 1)),
            pool: RefCell::new(pool),
            files: RefCell::default(),
            descriptors: RefCell::default(),
            engine: RefCell::default(),
            shared: RefCell::default(),
            thread: Cell::new(0),
            daemons: RefCell::new([false; THREADS]),
            fuses: RefCell::new([None; THREADS]),
            fences_left: RefCell::new([None; THREADS]),
            stalls: RefCell::new([None; THREADS]),
            asleep: RefCell::new([0; THREADS]),
            at_death: RefCell::default(),
            quiet: Cell::new(false),
            haste: Cell::new(40),
            failures: Cell::new(0),
            journal: Cell::new(FsJournal::Whole),
            commits: Cell::new(0),
            sparse: Cell::new(1),
            counts: RefCell::default(),
            sites: RefCell::default(),
            survey: plan.survey,
            trace: plan.trace,
            story: RefCell::default(),
            violation: RefCell::default(),
        }
    }

    /// Runs `f` with the hooks off: looking is not a step.
    pub fn peek<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.quiet.replace(true);
        let result = f();
        self.quiet.set(before);
        result
    }

    /// True if a promise was broken.
    pub fn is_over(&self) -> bool {
        self.violation.borrow().is_some() || self.is_left.get()
    }

    /// A program that goes on changing names when the log's device has failed leaves a directory that is not the one in
    /// the log, and nothing can say so there. If the power fails then, a refusal is the promise kept (P5).
    pub fn may_refuse(&self) -> bool {
        self.shelf.is_some() && self.log_has_failed()
    }

    /// The log was refused, and its operator decides.
    pub fn leave(&self) {
        self.count(|c| c.refused += 1);
        self.is_left.set(true);
    }

    /// Tells what happens, if anybody wants to know.
    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.trace && !self.is_over() {
            let mut story = self.story.borrow_mut();
            let what = format!("[{:>2}] {}", self.thread.get(), what());
            if story.back() == Some(&what) {
                return;
            }
            if story.len() == LONGEST_STORY {
                story.pop_front();
            }
            story.push_back(what);
        }
    }

    /// Notes a broken promise; the first one counts.
    pub fn violate(&self, what: String) {
        self.violation.borrow_mut().get_or_insert(what);
    }

    /// The pool's superblock as it is visible.
    pub fn superblock(&self) -> Result<Superblock, SuperblockError> {
        self.peek(|| Superblock::read(&self.view.borrow()))
    }

    /// True while hooks do nothing.
    pub fn is_quiet(&self) -> bool {
        self.quiet.get()
    }

    /// The pool was opened anew: its memory is another one.
    pub fn opened(&self, pool: Pool) {
        *self.view.borrow_mut() = map_shared(&pool.file, pool.region.len() as u64);
        self.pool_at.set(pool.region.base());
        *self.pool.borrow_mut() = pool;
    }

    /// A daemon goes on with this engine.
    pub fn started(&self, engine: &Rc<Engine>) {
        let mut mappings = self.mappings.borrow_mut();
        mappings.retain(|(engine, _)| engine.strong_count() > 0);
        mappings.push((Rc::downgrade(engine), engine.pool().base()));
        *self.engine.borrow_mut() = Some(Rc::clone(engine));
    }

    /// True for a mapping of the pool. One that is gone is none: anything may be at its place.
    fn is_pool(&self, base: usize) -> bool {
        let mappings = self.mappings.borrow();
        let is = |(engine, at): &(Weak<Engine>, usize)| *at == base && engine.strong_count() > 0;
        self.pool_at.get() == base || mappings.iter().any(is)
    }

    /// Counts an occurrence.
    pub fn count(&self, f: impl FnOnce(&mut Counts)) {
        f(&mut self.counts.borrow_mut());
    }

    /// The owner word of a logical thread of a client.
    pub fn owner(client: u32, thread: usize) -> Owner {
        Owner::new(client, (thread + 1) << 4)
    }
}

/// A second mapping of the run-time memory, for looking and restoring.
pub fn map_shared(file: &File, len: u64) -> Region {
    Region::map(file, len, false).expect("a mapping")
}
