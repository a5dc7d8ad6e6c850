//! The simulated machine: observes the verbs, keeps what is persisted and what is on disk, and decides at
//! every step whether to cut the power (in a copy), to kill the thread, or to let another one run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::format::{Superblock, SuperblockError};
use seawall_core::pool::Pool;
use seawall_core::{Engine, FileRef, Owner, Scope};
use seawall_media::sim::Observer;
use seawall_media::{Identity, Region};
use seawall_wire::shm::Flag;

use crate::area::AreaDisk;
use crate::block::Block;
use crate::counts::Counts;
use crate::image::{Image, visible};
use crate::metadata::Metadata;
use crate::pending::{LINE, Pending, THREADS};
use crate::{Change, Disk, Model, Plan, Rng, Survival, explore, fiber};

/// Who the daemon is among a file's open descriptions: a new daemon counts as the old one.
const DAEMON: usize = THREADS;

const EIO: i32 = 5;

/// The state of the file system's journal. Once a commit failed, none succeeds any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// All commits succeeded.
    Whole,
    /// One did not, and only whoever waited for it knows.
    Aborted,
    /// The file system knows too.
    Noticed,
}

/// Events that are remembered.
const LONGEST_STORY: usize = 80;

/// A line of source, as `file:line`.
pub type Site = String;

/// A verb that does not do its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    /// Everything works.
    #[default]
    None,
    /// The fence at this line waits for nothing.
    Fence(Site),
    /// The store or flush at this line starts no write-back.
    Flush(Site),
}

/// A managed file.
pub struct SimFile {
    /// The page cache: a memory file, so that positions and sizes are the kernel's.
    pub cache: Rc<File>,
    /// Below it.
    pub disk: Disk,
    /// What it should hold.
    pub model: Model,
    /// Its present slot.
    pub name: Option<FileRef>,
    /// Who it is.
    pub identity: Identity,
    /// Its last name is gone.
    pub unlinked: bool,
    /// Threads that have it open for writing.
    pub open: u32,
    /// The daemon keeps it from being opened.
    pub leased: bool,
    /// Its cache is written by a descriptor that does not tell us.
    pub watched: bool,
    /// A process died inside a change of it.
    pub wounded: bool,
    /// Threads inside a change of it that the kernel did a part of.
    pub partly: u32,
    /// Neither its inode nor its name was ever synced.
    pub fresh: bool,
    /// Renames of it.
    pub renamed: Metadata,
    /// Changes of its attributes.
    pub touched: Metadata,
    /// It was out of the log for want of room when last looked at.
    pub left_full: bool,
    /// It was outside the log for a reason when last looked at, and nobody took it back yet.
    pub excused: bool,
    /// Threads that hold it out of the log, or died while they did: then somebody has to take it back first.
    pub holders: BTreeSet<usize>,
    /// Write-backs of it that failed. If it is removed then, its records may be refused by name.
    pub errors: u64,
    /// How many of them each open description has been told, by logical thread; see [`DAEMON`].
    told: BTreeMap<usize, u64>,
    /// Who was told last.
    told_last: Option<usize>,
}

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
    /// Mappings of the pool.
    pub bases: RefCell<Vec<usize>>,
    /// Files by number.
    pub files: RefCell<Vec<SimFile>>,
    descriptors: RefCell<BTreeMap<i32, usize>>,
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
    /// Steps until a thread stands still for a while.
    stalls: RefCell<[Option<u32>; THREADS]>,
    /// How often a thread that stands still is passed over.
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
    pub journal: Cell<Journal>,
    /// One failed journal commit in this many syncs; 0 for none.
    pub commits: Cell<u64>,
    /// One exploration in this many points.
    pub sparse: Cell<u64>,
    /// Every write of every file is to go through the log (policy `atomic`): in half of the runs.
    pub atomic: bool,
    /// What its file system is known for: in half of the runs a sync of the directory makes names durable.
    pub names: Flag,
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
        Self {
            atomic: plan.seed % 2 == 1,
            sector: rng.pick(&[64, 512, 512, 4096]),
            garbles: rng.one_in(3),
            names: if rng.one_in(2) { Flag::NAMED_BY_DIRECTORY } else { Flag(0) },
            recovering: Cell::new(false),
            poison: Cell::new(None),
            rng,
            mutant: plan.mutant.clone(),
            pending: RefCell::default(),
            image: Image::of(&pool),
            view: RefCell::new(map_shared(&pool.file, pool.region.len() as u64)),
            bases: RefCell::new(vec![pool.region.base()]),
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
            journal: Cell::new(Journal::Whole),
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
        self.violation.borrow().is_some()
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

    /// Creates a file: until its first real sync a crash may take it away altogether.
    pub fn create_file(&self) {
        let index = self.add_file(Vec::new());
        self.files.borrow_mut()[index].fresh = true;
    }

    /// Adds a file with this content, all of it durable.
    pub fn add_file(&self, content: Vec<u8>) -> usize {
        let fd = rustix::fs::memfd_create("seawall-sim-file", rustix::fs::MemfdFlags::CLOEXEC);
        let cache = File::from(fd.expect("a memory file"));
        cache.write_all_at(&content, 0).expect("room");
        let mut files = self.files.borrow_mut();
        let index = files.len();
        self.descriptors.borrow_mut().insert(cache.as_raw_fd(), index);
        files.push(SimFile {
            cache: Rc::new(cache),
            disk: Disk::holding(content.clone()).on(self.sector),
            model: Model::holding(content).lazy(self.block.is_some() && !self.atomic),
            name: None,
            identity: explore::identity(index),
            unlinked: false,
            open: 0,
            leased: false,
            watched: false,
            wounded: false,
            partly: 0,
            fresh: false,
            renamed: Metadata::default(),
            touched: Metadata::default(),
            left_full: false,
            excused: false,
            holders: BTreeSet::new(),
            errors: 0,
            told: BTreeMap::new(),
            told_last: None,
        });
        index
    }

    /// Another descriptor of a file, whose writes are found by looking.
    pub fn watched_descriptor(&self, index: usize) -> std::io::Result<File> {
        let file = self.files.borrow()[index].cache.try_clone()?;
        self.descriptors.borrow_mut().insert(file.as_raw_fd(), index);
        self.files.borrow_mut()[index].watched = true;
        Ok(file)
    }

    /// The pool's superblock as it is visible.
    pub fn superblock(&self) -> Result<Superblock, SuperblockError> {
        self.peek(|| Superblock::read(&self.view.borrow()))
    }

    /// How many files there are, gone ones among them.
    pub fn file_count(&self) -> usize {
        self.files.borrow().len()
    }

    /// The file registered in a slot.
    pub fn file_in(&self, slot: u32) -> Option<usize> {
        self.files.borrow().iter().rposition(|f| f.name.is_some_and(|name| name.slot == slot))
    }

    /// True if the log holds every change of the file made now.
    pub fn is_tracked(&self, index: usize) -> bool {
        let name = self.files.borrow()[index].name;
        let engine = self.engine.borrow().clone();
        self.peek(|| {
            let flags = name.zip(engine).map_or(0, |(name, engine)| engine.flags(name));
            Flag::TRACKED.any_in(flags)
        })
    }

    /// P2 of the policy `atomic`: a change goes around the log only while a hold, a failed disk or a daemon that
    /// frees nothing keeps its file out, or until somebody had a chance to take it back.
    pub fn must_be_logged(&self, index: usize, logged: bool) {
        let name = self.files.borrow()[index].name;
        let Some((name, engine)) = name.zip(self.engine.borrow().clone()).filter(|_| self.atomic) else {
            return;
        };
        let file = self
            .peek(|| engine.shm().file(name.slot).map(|f| (f.flags().load(SeqCst), f.sticky().load(SeqCst))));
        let (flags, holds) = file.unwrap_or_default();
        let full = self.peek(|| engine.is_exhausted());
        let kept_out = holds != 0 || full || Flag::NEVER_TRACK.any_in(flags) || self.log_has_failed();
        let excused = {
            let file = &mut self.files.borrow_mut()[index];
            file.excused = !logged && (file.excused || kept_out || !file.holders.is_empty());
            file.excused
        };
        self.count(|c| c.around += u64::from(!logged));
        if !logged && !excused {
            self.violate(format!("a change of file {index} went around the log (flags {flags:#x})"));
        }
    }

    /// Changes page cache and disk model alike, as the kernel does for a published change.
    pub fn change(&self, index: usize, change: &Change) {
        self.look(index);
        if self.journal.get() == Journal::Aborted && self.rng.one_in(8) {
            self.journal.set(Journal::Noticed);
        }
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        match change {
            Change::Write(at, data) => file.disk.write(*at, data),
            Change::Append(data) => {
                let end = file.disk.cache().len();
                file.disk.write(end, data);
            }
            Change::Truncate(len) => file.disk.set_len(*len),
            Change::Grow(len) if *len > file.disk.cache().len() => file.disk.set_len(*len),
            Change::Grow(_) => {}
            Change::Becomes(all) => file.disk.becomes(all),
        }
        match change {
            Change::Write(at, data) => file.cache.write_all_at(data, *at as u64).expect("room"),
            _ => {
                file.cache.set_len(file.disk.cache().len() as u64).expect("a size");
                file.cache.write_all_at(file.disk.cache(), 0).expect("room");
            }
        }
    }

    /// Changes begin and end at multiples of this. On a disk that garbles: of its sectors, because only there does
    /// the log hold all of what the disk was writing.
    pub fn unit(&self) -> u64 {
        if self.garbles { self.sector as u64 } else { 1 }
    }

    /// True if whatever of this file is under way to the disk is in the log, whole sectors of it.
    fn may_garble(&self, index: usize) -> bool {
        let all_logged = {
            let model = &self.files.borrow()[index].model;
            model.unpromised.is_none() && !model.has_unlogged()
        };
        let replayed = || self.recovering.get() && self.engine.borrow().is_none();
        // On a block device under `tail` nothing brings back what nobody synced yet, as without a log.
        let is_hardened_first = self.block.is_none() || self.atomic;
        self.garbles && is_hardened_first && (replayed() || all_logged && self.is_tracked(index))
    }

    /// What a power cut now leaves of a file.
    pub fn left_of(&self, index: usize) -> Vec<u8> {
        let (may_garble, survival) = (self.may_garble(index), Survival::draw(&self.rng));
        let disk = &self.files.borrow()[index].disk;
        if !may_garble {
            return disk.crash(survival, &self.rng);
        }
        self.count(|c| c.garbled += 1);
        disk.garbled(survival, &self.rng)
    }

    /// Takes over what was written behind our back.
    pub fn look(&self, index: usize) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        if file.watched {
            let len = file.cache.metadata().expect("a size").len() as usize;
            let mut content = vec![0; len];
            file.cache.read_exact_at(&mut content, 0).expect("readable");
            file.disk.becomes(&content);
        }
        file.model.end = file.disk.cache().len();
    }

    /// After a death inside a change: what is there now is what happened. Not so if its sync failed before:
    /// then the record stays, and comes back at a power cut. Nor if a write-back failed of which nobody was told yet:
    /// the kernel may have dropped pages since whose records come back.
    pub fn settle(&self, index: usize) {
        self.look(index);
        let name = self.files.borrow()[index].name;
        let file = &mut self.files.borrow_mut()[index];
        if std::mem::take(&mut file.wounded) {
            let for_certain = !self.is_failed(name) && file.errors == 0;
            file.model.found(file.disk.cache(), for_certain);
        }
    }

    /// A real sync of file `index` by the thread that runs; it may fail.
    pub fn real_sync(&self, index: usize, scope: Scope) -> Result<(), i32> {
        self.step();
        self.look(index);
        {
            // Whether the log brings back what a dead process had begun is open until its record is retired.
            let file = &mut self.files.borrow_mut()[index];
            if file.wounded {
                file.model.found(file.disk.cache(), false);
            }
        }
        let failures = self.failures.get();
        if failures > 0 && fiber::inside() && self.rng.one_in(failures) {
            self.lose_pages(index);
        }
        if let Some(answer) = self.journal(index) {
            self.tell(|| format!("real sync of file {index}: {answer:?}, and the journal is gone"));
            self.point();
            return answer;
        }
        let told = self.is_told(index);
        if !told {
            let file = &mut self.files.borrow_mut()[index];
            file.disk.sync();
            file.fresh = false;
            if scope == Scope::Whole {
                file.renamed.is_synced();
                file.touched.is_synced();
            }
        }
        self.tell(|| format!("real sync of file {index}{}", if told { " fails" } else { "" }));
        self.point();
        if self.rng.one_in(4) {
            // Disks are slow: others go on meanwhile.
            self.give_way();
        }
        if told { Err(EIO) } else { Ok(()) }
    }

    /// A sync of the directory that a file is in: its name, and no more.
    pub fn directory_sync(&self, index: usize) -> Result<(), i32> {
        self.step();
        if let Some(answer) = self.journal(index) {
            self.tell(|| {
                format!("sync of the directory of file {index}: {answer:?}, and the journal is gone")
            });
            return answer;
        }
        self.files.borrow_mut()[index].renamed.is_synced();
        self.tell(|| format!("sync of the directory of file {index}"));
        self.count(|c| c.directories += 1);
        self.point();
        if self.rng.one_in(4) {
            self.give_way();
        }
        Ok(())
    }

    /// The kernel writes a file back by itself, and the disk may refuse.
    pub fn background_write_back(&self, index: usize) {
        if self.failures.get() > 0 {
            self.look(index);
            self.tell(|| format!("a write-back of file {index} fails"));
            self.lose_pages(index);
        }
    }

    /// A write-back fails: the pages are clean from now on, and what of them is on disk nobody knows.
    fn lose_pages(&self, index: usize) {
        let tracked = self.is_tracked(index);
        let file = &mut self.files.borrow_mut()[index];
        file.disk.fail();
        file.errors += 1;
        file.model.failed = true;
        if !tracked || file.model.has_unlogged() {
            file.model.unpromised = Some("a write-back of its untracked pages failed");
        }
        if self.rng.one_in(2) && file.disk.drop_lost(&self.rng) {
            file.cache.write_all_at(file.disk.cache(), 0).expect("room");
            self.count(|c| c.dropped += 1);
        }
        self.count(|c| c.failed += 1);
    }

    /// What a sync says once a journal commit has failed: an error to whoever waited for the commit, a lie to
    /// everybody else, until the file system notices. Nothing is put on disk any more.
    fn journal(&self, index: usize) -> Option<Result<(), i32>> {
        let (commits, before) = (self.commits.get(), self.journal.get());
        if before == Journal::Whole && commits > 0 && fiber::inside() && self.rng.one_in(commits) {
            self.journal.set(Journal::Aborted);
            self.count(|c| c.aborted += 1);
        }
        if self.journal.get() == Journal::Whole {
            return None;
        }
        let tracked = self.is_tracked(index);
        let file = &mut self.files.borrow_mut()[index];
        file.errors += 1;
        file.model.failed = true;
        if !tracked || file.model.has_unlogged() {
            file.model.unpromised = Some("the file system's journal is gone");
        }
        Some(if before == Journal::Aborted { Ok(()) } else { Err(EIO) })
    }

    /// As the kernel does since 4.13: an error is reported once to each description that was open then.
    fn is_told(&self, index: usize) -> bool {
        let who = if self.is_daemon(self.thread.get()) { DAEMON } else { self.thread.get() };
        let file = &mut self.files.borrow_mut()[index];
        let errors = file.errors;
        let told = std::mem::replace(file.told.entry(who).or_insert(0), errors) < errors;
        if told {
            file.told_last = Some(self.thread.get());
        }
        told
    }

    fn is_daemon(&self, thread: usize) -> bool {
        self.daemons.borrow()[thread]
    }

    /// A thread of a new process opens everything anew.
    pub fn born(&self, thread: usize, daemon: bool) {
        self.daemons.borrow_mut()[thread] = daemon;
        self.wake(thread);
        for file in self.files.borrow_mut().iter_mut() {
            file.told.insert(thread, file.errors);
        }
    }

    /// A moment at which persistent state has changed.
    pub fn point(&self) {
        if self.quiet.get() || self.is_over() {
            return;
        }
        for index in 0..self.file_count() {
            self.look(index);
        }
        if self.rng.one_in(self.sparse.get()) {
            self.peek(|| explore::crash(self));
        }
        self.step();
    }

    /// A moment at which the thread may lose the processor, or its life.
    pub fn step(&self) {
        if self.quiet.get() || !fiber::inside() {
            return;
        }
        self.burn();
        if self.stalls_now() || self.rng.one_in(self.haste.get()) {
            self.give_way();
        }
    }

    /// This thread may stand still at one of its next so many steps, long enough for others to do a lot: what
    /// two steps next to each other rely on shows only if somebody stands between them.
    pub fn may_stall(&self, steps: u64) {
        let when = self.rng.one_in(4).then(|| self.rng.below(steps) as u32);
        self.stalls.borrow_mut()[self.thread.get()] = when;
    }

    fn stalls_now(&self) -> bool {
        let thread = self.thread.get();
        let left = &mut self.stalls.borrow_mut()[thread];
        let now = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        if now {
            self.asleep.borrow_mut()[thread] = self.rng.below(60) as u32;
        }
        now
    }

    /// True if a thread is to be passed over this time.
    pub fn is_asleep(&self, thread: usize) -> bool {
        let left = &mut self.asleep.borrow_mut()[thread];
        *left = left.saturating_sub(1);
        *left > 0
    }

    /// A thread goes on at its next turn.
    pub fn wake(&self, thread: usize) {
        self.stalls.borrow_mut()[thread] = None;
        self.asleep.borrow_mut()[thread] = 0;
    }

    /// Lets others run.
    pub fn give_way(&self) {
        if self.quiet.get() || !fiber::inside() {
            return;
        }
        fiber::yield_now();
        self.burn();
    }

    /// This thread's process will be killed: within so many steps, or with stores under way to one of its next
    /// fences.
    pub fn light(&self, thread: usize, steps: u64, fences: u64) {
        self.put_out(thread);
        if self.rng.one_in(2) {
            self.fuses.borrow_mut()[thread] = Some(self.rng.below(steps) as u32);
        } else {
            self.fences_left.borrow_mut()[thread] = Some(self.rng.below(fences) as u32);
        }
    }

    /// It will not be killed.
    pub fn put_out(&self, thread: usize) {
        self.fuses.borrow_mut()[thread] = None;
        self.fences_left.borrow_mut()[thread] = None;
    }

    /// A fence is about to be passed.
    fn burn_fence(&self) {
        if !fiber::inside() {
            return;
        }
        let left = &mut self.fences_left.borrow_mut()[self.thread.get()];
        match left {
            Some(0) => self.doom(),
            Some(left) => *left -= 1,
            None => {}
        }
    }

    /// One step closer to the end of this thread, if its process is to be killed.
    fn burn(&self) {
        let thread = self.thread.get();
        let mut fuses = self.fuses.borrow_mut();
        match &mut fuses[thread] {
            None => return,
            Some(0) => {}
            Some(left) => {
                *left -= 1;
                return;
            }
        }
        drop(fuses);
        self.quiet.set(true);
        self.tell(|| "killed".into());
        let memory = self.run_time_memory();
        self.at_death.borrow_mut().get_or_insert(memory);
        fiber::kill();
    }

    /// True if this thread's process dies at its next step: for tearing a publish in the middle.
    pub fn is_doomed(&self) -> bool {
        fiber::inside() && self.fuses.borrow()[self.thread.get()].is_some_and(|left| left < 40)
    }

    /// Sets this thread's death to the next step.
    pub fn doom(&self) {
        self.fuses.borrow_mut()[self.thread.get()] = Some(0);
    }

    /// What clients and daemon share, up to the statistics.
    fn run_time_memory(&self) -> Vec<u8> {
        let region = self.shared.borrow();
        let mut bytes = Vec::new();
        if let Some(block) = self.block.as_ref().filter(|_| self.at_death.borrow().is_none()) {
            block.remember(&self.view.borrow());
        }
        if let Some(region) = region.as_ref() {
            bytes.resize(region.len().min(512 << 10), 0);
            region.read(0, &mut bytes);
        }
        bytes
    }

    /// After a kill was unwound: what the unwinding tidied up is untidy again. Hooks work again.
    pub fn restore(&self) {
        self.quiet.set(true);
        if let Some(memory) = self.at_death.borrow_mut().take() {
            if let Some(region) = self.shared.borrow().as_ref() {
                region.store(0, &memory);
            }
            if let Some(block) = &self.block {
                block.restore(&self.view.borrow());
            }
        }
        self.quiet.set(false);
    }

    /// True while hooks do nothing.
    pub fn is_quiet(&self) -> bool {
        self.quiet.get()
    }

    /// The thread that leads the journal, if one does and lives.
    pub fn leader(&self) -> Option<usize> {
        let block = self.block.as_ref()?;
        let holder = self.peek(|| block.holder(&self.view.borrow()));
        self.ids.borrow().iter().position(|id| *id == holder)
    }

    /// The pool was opened anew: its memory is another one.
    pub fn opened(&self, pool: Pool) {
        *self.view.borrow_mut() = map_shared(&pool.file, pool.region.len() as u64);
        *self.bases.borrow_mut() = vec![pool.region.base()];
        *self.pool.borrow_mut() = pool;
    }

    fn is_pool(&self, base: usize) -> bool {
        self.bases.borrow().contains(&base)
    }

    /// Counts an occurrence.
    pub fn count(&self, f: impl FnOnce(&mut Counts)) {
        f(&mut self.counts.borrow_mut());
    }

    fn surveyed(&self, fence: bool, site: seawall_media::sim::Site) {
        if self.survey {
            *self.sites.borrow_mut().entry((fence, named(site))).or_default() += 1;
        }
    }

    /// The owner word of a logical thread of a client.
    pub fn owner(client: u32, thread: usize) -> Owner {
        Owner::new(client, (thread + 1) << 4)
    }
}

/// `core/src/persist.rs:18`.
fn named(site: seawall_media::sim::Site) -> Site {
    let file = site.file();
    let short = file.rsplit_once("crates/").map_or(file, |(_, short)| short);
    format!("{short}:{}", site.line())
}

impl Observer for World {
    fn stored(&self, base: usize, at: usize, len: usize, _site: seawall_media::sim::Site) {
        let elsewhere = self.image.note(base, at, len) || self.quiet.get() || !self.is_pool(base);
        if elsewhere || self.block.is_some() {
            return;
        }
        self.pending.borrow_mut().stored(at, len, |line| visible(&self.view.borrow(), line));
    }

    fn flushed(&self, base: usize, at: usize, len: usize, site: seawall_media::sim::Site) {
        if self.quiet.get() || !self.is_pool(base) || len == 0 {
            return;
        }
        if self.block.is_some() {
            return self.step();
        }
        self.surveyed(false, site);
        if !matches!(&self.mutant, Mutant::Flush(broken) if *broken == named(site)) {
            self.pending.borrow_mut().flushed(at, len, self.thread.get());
        }
        self.point();
    }

    fn fenced(&self, site: seawall_media::sim::Site) {
        if self.quiet.get() {
            return;
        }
        self.burn_fence();
        self.step();
        if self.block.is_some() {
            return;
        }
        self.surveyed(true, site);
        self.tell(|| format!("fence at {}", named(site)));
        if !matches!(&self.mutant, Mutant::Fence(broken) if *broken == named(site)) {
            let mut pending = self.pending.borrow_mut();
            self.peek(|| {
                pending.fenced(self.thread.get(), |line, unit, value| self.image.persist(line, unit, value));
            });
        }
        self.point();
    }

    fn reads(&self, base: usize, at: usize, len: usize) {
        if let Some(line) = self.poison.get()
            && self.image.is_at(base)
            && (at / LINE..(at + len).div_ceil(LINE)).contains(&(line as usize))
        {
            self.poison.set(None);
            fiber::kill();
        }
    }

    fn touched(&self, base: usize) {
        // The words of a desk lie behind the pool.
        if !self.quiet.get() && (self.block.is_some() || !self.is_pool(base)) {
            self.step();
        }
    }

    fn waits(&self) -> bool {
        self.give_way();
        fiber::inside()
    }

    fn syncs(&self, fd: i32) -> Option<Result<(), i32>> {
        let index = self.descriptors.borrow().get(&fd).copied()?;
        Some(self.real_sync(index, Scope::Data))
    }

    fn writes_block(&self, fd: i32, position: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        Some(match &self.area {
            Some(disk) => self.write_area(disk, position, bytes),
            None => self.write_block(fd, position, bytes),
        })
    }

    fn process(&self) -> Option<u32> {
        Some(self.ids.borrow()[self.thread.get()])
    }

    fn is_dead(&self, process: u32) -> Option<bool> {
        Some(!self.ids.borrow().contains(&process))
    }

    fn confirms(&self, fd: i32) -> Option<Result<(), i32>> {
        let index = self.descriptors.borrow().get(&fd).copied()?;
        if self.journal.get() == Journal::Whole {
            return Some(Ok(()));
        }
        self.journal.set(Journal::Noticed);
        // The commit may have failed after this file's own sync: its records stay all the same.
        self.files.borrow_mut()[index].errors += 1;
        Some(Err(EIO))
    }
}

/// A second mapping of the run-time memory, for looking and restoring.
pub fn map_shared(file: &File, len: u64) -> Region {
    Region::map(file, len, false).expect("a mapping")
}

impl World {
    /// A descriptor with a position of its own; real syncs of it are the file's.
    pub fn reopened(&self, index: usize) -> std::io::Result<File> {
        let fd = self.files.borrow()[index].cache.as_raw_fd();
        let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{fd}"))?;
        self.descriptors.borrow_mut().insert(file.as_raw_fd(), index);
        Ok(file)
    }
}

impl World {
    /// Lets a thread be unwound without a trace in what others see.
    pub fn unwinding<R>(&self, f: impl FnOnce() -> R) -> R {
        self.quiet.set(false);
        let result = f();
        self.quiet.set(true);
        result
    }

    /// A logical thread is gone.
    pub fn died(&self, thread: usize) {
        self.pending.borrow_mut().died(thread);
        {
            let ids = &mut *self.ids.borrow_mut();
            ids[thread] = ids.iter().max().map_or(1, |newest| newest + 1);
        }
        for file in self.files.borrow_mut().iter_mut() {
            file.wounded |= file.model.died(thread);
            if file.told_last == Some(thread) && !self.is_failed(file.name) {
                file.model.unpromised = Some("a process died with the news of a failed write-back");
            }
        }
    }

    fn is_failed(&self, name: Option<FileRef>) -> bool {
        let engine = self.engine.borrow().clone();
        let flags = || name.zip(engine).map_or(0, |(name, engine)| engine.flags(name));
        Flag::FAILED.any_in(self.peek(flags))
    }

    /// The power went: this is what is left of a file, if it is not lost with its name.
    pub fn power_loss(&self, index: usize, content: Vec<u8>, lost: bool) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        file.model.end = file.disk.cache().len();
        file.cache.set_len(content.len() as u64).expect("a size");
        file.cache.write_all_at(&content, 0).expect("room");
        file.disk = Disk::holding(content).on(self.sector);
        file.unlinked |= lost;
        (file.name, file.watched, file.wounded) = (None, false, false);
        // Made or undone: what there is now is on disk.
        (file.renamed, file.touched) = (Metadata::default(), Metadata::default());
        if !file.unlinked {
            file.errors = 0;
        }
        file.told_last = None;
        file.told.clear();
    }

    /// Recovery is over: judges the file's content and takes it as what it holds from now on.
    pub fn recovered(&self, index: usize) {
        let mut files = self.files.borrow_mut();
        let file = &mut files[index];
        let content = file.disk.durable().to_vec();
        let verdict = if file.unlinked { Ok(()) } else { file.model.check(&content) };
        file.model.recovered(content.clone());
        file.disk = Disk::holding(content).on(self.sector);
        file.fresh = false;
        drop(files);
        if let Err(why) = verdict {
            self.violate(format!("after recovery, file {index}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restart::Scene;

    /// Seed 453 of 22 November 2026: a page was dropped after its write-back had failed, and a death elsewhere in the
    /// file made the model believe what readers saw then, though the log holds what was acknowledged.
    #[test]
    fn regression_a_dropped_page_is_not_what_happened() {
        let world = Scene::new(&Plan::of(1)).world;
        let index = world.add_file(vec![1; 4096]);
        let written = Change::Write(0, Rc::new(vec![2; 64]));
        world.change(index, &written);
        {
            let file = &mut world.files.borrow_mut()[index];
            let seq = file.model.push(written, true);
            file.model.returned(seq);
            file.disk.fail();
            file.errors += 1;
            while !file.disk.drop_lost(&world.rng) {}
            file.wounded = true;
        }
        world.settle(index);
        // A later sync acknowledges everything so far.
        world.files.borrow_mut()[index].model.acknowledge(u64::MAX);
        let acknowledged = [vec![2; 64], vec![1; 4032]].concat();
        assert_eq!(world.files.borrow()[index].model.check(&acknowledged), Ok(()));
    }
}
