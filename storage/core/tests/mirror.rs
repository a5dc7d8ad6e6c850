//! A log on two devices: each of them fails, or the power goes, at any of its writes; whichever copies are there then.

mod common;

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use common::{Managed, World};
use seawall_core::journal::{self, rebuild::Rebuild};
use seawall_core::pool::{Pool, PoolError, block};
use seawall_core::store::Store;
use seawall_core::{Errno, recover, table};
use seawall_media::block::{ANCHOR_BYTES, Anchor, Mirror, MirrorState, RING_AT};
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

const IMAGE: u64 = 16 << 20;
const JOURNAL: u64 = 3 << 20;
const WORDS: usize = 4096;
const EIO: i32 = 5;

struct Died;

/// The devices: they fail, and whoever writes dies, when they are told to.
struct Devices {
    files: [File; 2],
    fails: Cell<Option<usize>>,
    /// Writes until the writer dies: before it, or behind it.
    dies: Cell<Option<u32>>,
    /// The desk's words as the dead one left them.
    left: RefCell<Option<Vec<u8>>>,
    memory: Region,
    process: Cell<u32>,
    writes: Cell<u32>,
}

impl Devices {
    fn install(world: &World) -> Rc<Self> {
        let open = |path: &PathBuf| File::options().write(true).open(path).expect("a copy");
        let paths = world.pool.mirror.as_ref().expect("a mirror").paths();
        let len = world.pool.region.len() as u64;
        let devices = Rc::new(Self {
            files: [open(&paths[0]), open(&paths[1])],
            fails: Cell::new(None),
            dies: Cell::new(None),
            left: RefCell::default(),
            memory: Region::map(&world.pool.file, len, false).expect("a mapping"),
            process: Cell::new(1),
            writes: Cell::new(0),
        });
        sim::install(Some(Rc::clone(&devices) as Rc<dyn sim::Observer>));
        devices
    }

    fn step(&self) {
        match self.dies.get() {
            Some(0) => {
                self.dies.set(None);
                let mut words = vec![0; WORDS];
                self.memory.read(IMAGE as usize, &mut words);
                *self.left.borrow_mut() = Some(words);
                resume_unwind(Box::new(Died))
            }
            steps => self.dies.set(steps.map(|n| n - 1)),
        }
    }

    /// Runs a process that dies at this step of its writes. False: it did not come so far.
    fn mortal(&self, step: u32, body: impl FnOnce()) -> bool {
        self.dies.set(Some(step));
        let done = catch_unwind(AssertUnwindSafe(body));
        self.dies.set(None);
        // Unwinding tidies up, a kill does not.
        if let Some(words) = self.left.take() {
            self.memory.copy_in(IMAGE as usize, &words);
        }
        self.process.set(self.process.get() + 1);
        done.is_err_and(|why| why.is::<Died>())
    }
}

impl sim::Observer for Devices {
    fn writes_block(&self, fd: i32, position: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        let inode = fs::metadata(format!("/proc/self/fd/{fd}")).expect("open").ino();
        // A third one is a device of its own.
        let copy = self.files.iter().position(|f| f.metadata().expect("open").ino() == inode)?;
        self.writes.set(self.writes.get() + 1);
        self.step();
        if self.fails.get() == Some(copy) {
            // Some of it is there all the same.
            self.files[copy].write_all_at(&bytes[..bytes.len() / 2], position).expect("room");
            return Some(Err(EIO));
        }
        self.files[copy].write_all_at(bytes, position).expect("room");
        self.step();
        Some(Ok(()))
    }
    fn process(&self) -> Option<u32> {
        Some(self.process.get())
    }
    fn is_dead(&self, process: u32) -> Option<bool> {
        Some(process < self.process.get())
    }
}

/// A log in use, with one file.
struct Used {
    world: World,
    file: Managed,
    devices: Rc<Devices>,
    written: Cell<u8>,
}

impl Used {
    fn new() -> Self {
        let world = World::mirrored(IMAGE, JOURNAL);
        let file = world.manage("file");
        file.file.write_all_at(&[1; 8192], 0).expect("room");
        assert!(world.fsync(&file), "the first sync is real");
        let devices = Devices::install(&world);
        Self { world, file, devices, written: Cell::new(0) }
    }

    fn commit(&self) {
        self.write();
        self.sync();
    }

    fn write(&self) {
        self.world.pwrite(&self.file, 0, &[9; 100], 0);
        self.written.set(self.written.get() + 1);
    }

    fn sync(&self) {
        assert!(!self.world.fsync(&self.file));
    }

    /// With one copy lost, which is well again.
    fn alone(dead: usize) -> Self {
        let used = Self::new();
        used.commit();
        used.devices.fails.set(Some(dead));
        used.commit();
        used.devices.fails.set(None);
        used.commit();
        used
    }

    fn begin<'a>(&'a self, source: &'a File) -> Result<Rebuild<'a>, Errno> {
        let image = self.world.engine.pool();
        let open = |path: &PathBuf| File::options().read(true).write(true).open(path).expect("a copy").into();
        let devices = self.paths().each_ref().map(open);
        Rebuild::begin(image.journal().expect("a journal"), image, devices, source)
    }

    fn paths(&self) -> [PathBuf; 2] {
        self.world.pool.mirror.as_ref().expect("a mirror").paths()
    }

    /// The log as another process has it that was given the devices now.
    fn front(&self) -> Store {
        let image = Region::map(&self.world.pool.file, self.world.pool.region.len() as u64, false);
        let open = |path: &PathBuf| File::options().read(true).write(true).open(path).expect("a copy").into();
        let [first, second] = self.paths().each_ref().map(open);
        let given = self.desk().given().load(SeqCst);
        let journal = journal::open::journal(first, Some(second), given, IMAGE as usize);
        Store::journaled(image.expect("a mapping"), journal)
    }

    /// A reader of the copy that counts.
    fn source(&self) -> File {
        let counts = self.desk().copies().load(SeqCst).trailing_zeros() as usize;
        File::open(&self.paths()[counts]).expect("a copy")
    }

    fn desk(&self) -> Desk<'_> {
        Desk::new(&self.devices.memory, IMAGE as usize)
    }

    /// The power goes: memory is lost.
    fn cut(self) -> Cut {
        sim::install(None);
        let paths = self.paths();
        let World { memory, disk, dir, pool, engine, .. } = self.world;
        drop((pool, engine));
        Cut { paths, memory, _dirs: (disk.expect("a disk"), dir) }
    }
}

/// What a power cut left.
struct Cut {
    paths: [PathBuf; 2],
    memory: tempfile::TempDir,
    _dirs: (tempfile::TempDir, tempfile::TempDir),
}

impl Cut {
    fn open(&self, copy: usize) -> Result<Pool, PoolError> {
        self.open_at(&self.paths[copy])
    }

    fn open_at(&self, path: &Path) -> Result<Pool, PoolError> {
        for entry in fs::read_dir(self.memory.path()).expect("memory").flatten() {
            fs::remove_file(entry.path()).expect("removed");
        }
        block::open_in(path, self.memory.path())
    }

    /// The records that are there, if it is opened by this copy.
    #[track_caller]
    fn live(&self, copy: usize) -> usize {
        live(&self.open(copy).expect("a log"))
    }

    #[track_caller]
    fn refused(&self, copy: usize, words: &[&str]) {
        let text = self.open(copy).map(|pool| pool.path).expect_err("refused").to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in: {text}"));
    }

    /// Does something while this copy is gone.
    fn without<R>(&self, copy: usize, body: impl FnOnce() -> R) -> R {
        let away = self.paths[copy].with_extension("away");
        fs::rename(&self.paths[copy], &away).expect("moved");
        let result = body();
        fs::rename(&away, &self.paths[copy]).expect("moved back");
        result
    }

    fn is_equal(&self) -> bool {
        let [a, b] = [0, 1].map(|i| fs::read(&self.paths[i]).expect("a copy"));
        a[RING_AT as usize..JOURNAL as usize] == b[RING_AT as usize..JOURNAL as usize]
    }

    fn garble(&self, copy: usize, at: u64) {
        let file = File::options().write(true).open(&self.paths[copy]).expect("a copy");
        file.write_all_at(&[0x5a; 4096], at).expect("written");
    }

    /// Where batches begin in a copy.
    fn batches(&self, copy: usize) -> Vec<u64> {
        let bytes = fs::read(&self.paths[copy]).expect("a copy");
        let starts = (RING_AT as usize..JOURNAL as usize).step_by(4096);
        starts.filter(|at| bytes[*at..].starts_with(b"SWbt")).map(|at| at as u64).collect()
    }
}

fn live(pool: &Pool) -> usize {
    let files = table::files(pool).expect("a table").into_iter().map(|f| (f.slot, f)).collect();
    let found = recover::scan(pool, &files);
    assert_eq!(found.damage, []);
    found.live.len()
}

// Holds: R16
#[test]
fn what_was_acknowledged_is_on_both_and_either_supplies_what_the_other_one_lost() {
    let used = Used::new();
    used.commit();
    let before = used.devices.writes.get();
    used.commit();
    assert_eq!(used.devices.writes.get(), before + 2, "one write to each");
    let cut = used.cut();
    assert!(cut.is_equal());
    let batches = cut.batches(0);
    for copy in [0, 1] {
        for at in [batches[batches.len() - 1], batches[1]] {
            cut.garble(copy, at);
            assert!(!cut.is_equal());
            assert_eq!(cut.live(copy), 2, "copy {copy} was garbled at {at}");
            assert!(cut.is_equal(), "made equal before anything else");
            let again = cut.open(copy).expect("a log").mirror.expect("a mirror").notes;
            assert_eq!(again, Vec::<String>::new(), "nothing is left to do");
        }
        cut.without(copy, || cut.refused(1 - copy, &["is missing", "may hold more", "--alone"]));
    }
}

/// The classic: one dies, the other one goes on, the power goes, and only the stale one comes back.
// Holds: R19
#[test]
fn a_copy_that_was_left_behind_is_never_believed() {
    for dead in [0, 1] {
        let used = Used::new();
        used.commit();
        used.devices.fails.set(Some(dead));
        used.commit();
        assert_eq!(used.desk().copies().load(SeqCst), 2 >> dead, "the other one");
        let before = used.devices.writes.get();
        used.commit();
        assert_eq!(used.devices.writes.get(), before + 1, "the dead one is left alone");
        let cut = used.cut();
        cut.without(1 - dead, || cut.refused(dead, &["is missing", "may hold more"]));
        cut.without(dead, || {
            let pool = cut.open(1 - dead).expect("it is alone");
            assert!(pool.mirror.as_ref().expect("a mirror").notes[0].contains("LOST ITS MIRROR"));
            assert_eq!(live(&pool), 3);
        });
        assert_eq!(cut.live(dead), 3, "the stale one was rebuilt from the other one");
        assert!(cut.is_equal());
        cut.without(dead, || cut.refused(1 - dead, &["is missing"]));
    }
}

/// The power goes at each step of a commit with which a copy dies, or none does.
/// Whichever copy fails, or none; and whoever writes dies at each step, until he does not any more, as `once` says.
fn at_every_death(once: impl Fn(Option<usize>, u32) -> bool) {
    for fails in [None, Some(0), Some(1)] {
        let steps = (0..).take_while(|step| once(fails, *step)).count();
        assert!(steps > 0, "{fails:?} fails: nobody died");
    }
}

/// A log with a commit, and whether the leader of a second one died at this step.
fn dying(fails: Option<usize>, step: u32) -> (Used, bool) {
    let used = Used::new();
    used.commit();
    used.devices.fails.set(fails);
    used.write();
    let died = used.devices.mortal(step, || used.sync());
    (used, died)
}

// Holds: R12
#[test]
fn a_power_cut_at_any_write_loses_nothing_that_was_acknowledged() {
    at_every_death(|fails, step| {
        let (used, died) = dying(fails, step);
        let acknowledged = 1 + usize::from(!died);
        let cut = used.cut();
        let found = cut.live(step as usize % 2);
        assert!((acknowledged..=2).contains(&found), "{fails:?} fails, cut at {step}: {found}");
        assert!(cut.is_equal(), "{fails:?} fails, cut at {step}");
        assert!(died || step >= 4);
        died
    });
}

/// A leader dies at each step; its heir goes on with whatever subset of the writes happened.
// Holds: R12
#[test]
fn the_heir_of_a_leader_that_died_at_any_write_goes_on() {
    at_every_death(|fails, step| {
        let (used, died) = dying(fails, step);
        used.commit();
        let written = usize::from(used.written.get());
        let copies = used.desk().copies().load(SeqCst);
        assert_eq!(copies, fails.map_or(3, |copy| 2 >> copy), "{fails:?} fails, died at {step}");
        assert_eq!(used.desk().suspect().load(SeqCst), 0);
        let cut = used.cut();
        assert_eq!(cut.live(step as usize % 2), written, "{fails:?} fails, died at {step}");
        assert!(cut.is_equal());
        died
    });
}

/// A destager dies at each write of its round, whether a copy dies with it or not.
#[test]
fn cleaning_moves_the_tail_of_both_and_of_the_one_that_is_left() {
    at_every_death(|fails, step| {
        let used = Used::new();
        for _ in 0..9 {
            used.world.pwrite(&used.file, 0, &[9; 100_000], 0);
            used.sync();
        }
        used.devices.fails.set(fails);
        let anchor = used.desk().anchor().load(SeqCst);
        let died = used.devices.mortal(step, || {
            used.world.destage(&used.file);
        });
        used.commit();
        let moved = used.desk().anchor().load(SeqCst) - anchor;
        let cut = used.cut();
        let found = cut.live(0);
        assert!((1..=10).contains(&found), "{fails:?} fails, died at {step}: {found}");
        assert!(cut.is_equal());
        if !died {
            assert_eq!(moved, fails.map_or(1, |_| 3), "its own, and two that say that it is alone");
        }
        died
    });
}

#[test]
fn a_log_in_use_is_taken_over_as_its_desk_says() {
    let used = Used::new();
    used.commit();
    used.devices.fails.set(Some(0));
    used.commit();
    used.write();
    sim::install(None);
    let paths = used.paths();
    let World { memory, disk: _disk, dir: _dir, pool, engine, .. } = used.world;
    drop((pool, engine));
    for path in &paths {
        let pool = block::open_in(path, memory.path()).expect("a log");
        let desk = Desk::new(&pool.region, IMAGE as usize);
        assert_eq!((desk.copies().load(SeqCst), live(&pool)), (2, 3), "unsynced, and not lost");
    }
}

// Holds: R20
#[test]
fn what_cannot_be_a_mirror_is_refused_and_changes_nothing() {
    let disk = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
    let at = |name: &str| disk.path().join(name);
    let make = |name: &str, journal| {
        block::create_file(&at(name), block::Sizes { image: IMAGE, journal }).expect("a log");
    };
    let join = |log: &str, mirror: &Path| {
        block::join_mirror(&at(log), mirror, false, memory.path()).map_err(|error| error.to_string())
    };
    make("a", JOURNAL);
    make("b", JOURNAL);
    for (mirror, words) in
        [(at("a"), "already exists"), (at("b"), "already exists"), (memory.path().join("x"), "RAM")]
    {
        let said = join("a", &mirror).expect_err("refused");
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(block::mirror_of(&at("a")).expect("readable"), None);
    join("a", &at("a2")).expect("a mirror");
    join("b", &at("b2")).expect("a mirror");
    assert!(join("a", &at("a3")).expect_err("refused").contains("already mirrored"));
    fs::rename(at("b2"), at("a2")).expect("moved");
    let open = |name: &str| block::open_in(&at(name), memory.path()).map(|pool| pool.path);
    let said = open("a").expect_err("refused").to_string();
    assert!(said.contains("holds another log") && said.contains("a2"), "{said}");
    block::part_mirror(&at("a"), memory.path()).expect("alone");
    open("a").expect("a log");
    fs::remove_file(at("a2")).expect("removed");
    for entry in fs::read_dir(memory.path()).expect("memory").flatten() {
        fs::remove_file(entry.path()).expect("removed");
    }
    join("a", &at("a3")).expect("another one in its place");
    open("a3").expect("a log");
}

/// Both were declared to be alone: neither can be the whole truth.
// Holds: R19
#[test]
fn two_copies_that_both_went_on_alone_are_refused() {
    let used = Used::new();
    used.commit();
    let cut = used.cut();
    for copy in [0, 1] {
        cut.without(1 - copy, || {
            cut.refused(copy, &["is missing"]);
            for entry in fs::read_dir(cut.memory.path()).expect("memory").flatten() {
                fs::remove_file(entry.path()).expect("removed");
            }
            block::part_mirror(&cut.paths[copy], cut.memory.path()).expect("alone");
        });
    }
    cut.refused(0, &["each went on without the other", "choose"]);
    cut.refused(1, &["each went on without the other"]);
}

/// Says something else in both places of a copy's anchor.
fn say(path: &Path, state: MirrorState, epoch: u16) {
    let file = File::options().read(true).write(true).open(path).expect("a copy");
    let mut copies = vec![0; 2 * ANCHOR_BYTES];
    file.read_exact_at(&mut copies, 0).expect("anchors");
    let (a, b) = copies.split_at(ANCHOR_BYTES);
    let mut anchor = Anchor::choose([a, b], JOURNAL).expect("an anchor");
    let said = anchor.mirror().expect("a mirror");
    for _ in 0..2 {
        anchor.sequence += 1;
        anchor = anchor.with_mirror(Some(Mirror { state, epoch, ..said }));
        file.write_all_at(&anchor.seal(), Anchor::place(anchor.sequence)).expect("written");
    }
}

/// A copy is rebuilt from one that went on alone, and the power goes again, before and after that one says "both".
// Holds: R16
#[test]
fn a_rebuild_that_is_cut_short_is_made_again_and_what_it_left_is_not_believed() {
    for believed_says_both in [false, true] {
        let used = Used::new();
        used.devices.fails.set(Some(1));
        used.commit();
        used.commit();
        let cut = used.cut();
        say(&cut.paths[1], MirrorState::Unfinished, 0);
        cut.garble(1, cut.batches(1)[1]);
        if believed_says_both {
            say(&cut.paths[0], MirrorState::Both, 2);
        }
        cut.without(0, || cut.refused(1, &["is incomplete", "bring back"]));
        cut.without(1, || match believed_says_both {
            true => cut.refused(0, &["is missing"]),
            false => assert_eq!(cut.live(0), 2),
        });
        assert_eq!(cut.live(1), 2, "by the path of the unfinished one");
        assert!(cut.is_equal());
    }
}

/// Copies everything; `between` is told after each piece how many there were.
fn copy_all(rebuild: &mut Rebuild<'_>, mut between: impl FnMut(u32)) -> std::io::Result<()> {
    for pieces in 1.. {
        let (done, all) = rebuild.progress();
        if done == all {
            break;
        }
        rebuild.piece()?;
        between(pieces);
    }
    Ok(())
}

#[test]
fn a_copy_that_is_rebuilt_while_commits_go_on_holds_all_of_them_and_counts() {
    for dead in [0, 1] {
        let used = Used::alone(dead);
        let source = used.source();
        let mut rebuild = used.begin(&source).expect("begun");
        copy_all(&mut rebuild, |_| used.commit()).expect("copied");
        assert_eq!(used.desk().copies().load(SeqCst), 2 >> dead, "it does not count yet");
        rebuild.finish().expect("both count");
        drop(rebuild);
        assert_eq!((used.desk().copies().load(SeqCst), used.desk().suspect().load(SeqCst)), (3, 0));
        used.commit();
        assert!(used.begin(&source).is_err_and(|error| error == Errno::INVAL), "nothing is lost");
        // The one that was rebuilt is the only one from here on.
        used.devices.fails.set(Some(1 - dead));
        used.commit();
        let written = usize::from(used.written.get());
        let cut = used.cut();
        cut.without(1 - dead, || assert_eq!(cut.live(dead), written, "copy {dead} was rebuilt"));
    }
}

#[test]
fn both_are_equal_after_a_rebuild() {
    let used = Used::alone(1);
    let source = used.source();
    let mut rebuild = used.begin(&source).expect("begun");
    copy_all(&mut rebuild, |_| used.commit()).expect("copied");
    rebuild.finish().expect("both count");
    drop(rebuild);
    let cut = used.cut();
    assert!(cut.is_equal());
    let pool = cut.open(1).expect("a log");
    assert_eq!(pool.mirror.expect("a mirror").notes, Vec::<String>::new(), "nothing is left to do");
}

// Holds: R14
#[test]
fn who_has_the_former_devices_writes_neither_copy() {
    let used = Used::alone(1);
    let source = used.source();
    let (former, of_a_daemon) = (used.front(), &used.world.pool.region);
    let change = |store: &Store| store.change(&[(0, 64)], |_| ());
    change(&former).expect("written");
    let rebuild = used.begin(&source).expect("begun");
    let before = used.devices.writes.get();
    assert_eq!(change(&former).expect_err("refused"), Errno::BADF);
    assert_eq!(used.devices.writes.get(), before);
    for store in [&used.front(), of_a_daemon] {
        let before = used.devices.writes.get();
        change(store).expect("written");
        assert_eq!(used.devices.writes.get(), before + 2, "to the one that is rebuilt as well");
    }
    drop(rebuild);
    sim::install(None);
}

#[test]
fn a_rebuild_whose_device_fails_fails_no_commit_and_is_not_believed() {
    let used = Used::alone(1);
    let source = used.source();
    let mut rebuild = used.begin(&source).expect("begun");
    let said = copy_all(&mut rebuild, |pieces| {
        if pieces == 4 {
            used.devices.fails.set(Some(1));
            used.commit();
        }
    });
    assert_eq!(said.expect_err("it failed").raw_os_error(), Some(EIO));
    drop(rebuild);
    let before = used.devices.writes.get();
    used.commit();
    assert_eq!(used.devices.writes.get(), before + 1, "it is left alone");
    let written = usize::from(used.written.get());
    let cut = used.cut();
    cut.without(0, || cut.refused(1, &["is incomplete"]));
    cut.without(1, || assert_eq!(cut.live(0), written, "the other one is alone"));
}

// Holds: R15
#[test]
fn a_former_copy_leads_to_those_that_count() {
    for dead in [0, 1] {
        let used = Used::alone(dead);
        let former = used.paths()[dead].clone();
        let third = former.with_file_name("third");
        let replaced = used.world.pool.replace_copy(&third, false).expect("fit");
        assert_eq!(used.paths()[dead], third);
        let image = used.world.engine.pool();
        let journal = image.journal().expect("a journal");
        let mut rebuild = Rebuild::begin(journal, image, replaced.devices, &replaced.source).expect("begun");
        copy_all(&mut rebuild, |_| used.commit()).expect("copied");
        rebuild.finish().expect("both count");
        drop(rebuild);
        used.commit();
        let written = usize::from(used.written.get());
        let cut = used.cut();
        assert!(cut.is_equal());
        for path in [&cut.paths[0], &cut.paths[1], &former] {
            let pool = cut.open_at(path).expect("a log");
            let mirror = pool.mirror.as_ref().expect("a mirror");
            let is_told = mirror.notes.iter().any(|note| note.contains("is no longer a copy of the log"));
            assert_eq!((mirror.paths(), is_told), (cut.paths.clone(), *path == former), "{}", path.display());
            assert_eq!(live(&pool), written, "{}", path.display());
        }
        cut.without(dead, || {
            let said = cut.open_at(&former).map(|pool| pool.path).expect_err("refused").to_string();
            assert!(said.contains("third") && said.contains("may hold more"), "{said}");
        });
        cut.without(1 - dead, || assert!(cut.open_at(&former).is_err(), "it leads nowhere"));
    }
}

#[test]
fn what_cannot_take_the_place_of_a_lost_copy_is_refused_and_commits_go_on() {
    let used = Used::new();
    used.commit();
    let [first, second] = used.paths();
    let third = first.with_file_name("third");
    let refused = |used: &Used, path: &Path, words: &str| {
        let said = used.world.pool.replace_copy(path, true).map(|_| ()).expect_err("refused").to_string();
        assert!(said.contains(words), "{said}");
        used.commit();
    };
    refused(&used, &third, "both copies are complete");
    used.devices.fails.set(Some(1));
    used.commit();
    used.devices.fails.set(None);
    refused(&used, &first, "to which commits still go");
    refused(&used, &used.file.path, "already exists");
    refused(&used, &used.world.memory.path().join("x"), "RAM");
    let World { disk: Some(others), pool: _pool, .. } = &World::mirrored(IMAGE, JOURNAL) else { panic!() };
    fs::copy(others.path().join("mirror"), &third).expect("another log's");
    refused(&used, &third, "holds another log");
    fs::copy(&second, &third).expect("a copy of the copy");
    say(&third, MirrorState::Alone, 0);
    refused(&used, &third, "went on alone");
    // The lost one itself, well again.
    let replaced = used.world.pool.replace_copy(&second, false).expect("fit");
    drop(replaced);
    used.commit();
    let written = usize::from(used.written.get());
    let cut = used.cut();
    assert_eq!(cut.live(0), written, "it was not even begun");
}

/// A daemon dies before the end, when the copy that is left says "both", and when both count already.
#[test]
fn who_takes_over_gives_a_rebuild_up_or_has_both_say_that_they_count() {
    for (step, copies) in [(None, 1), (Some(3), 1), (Some(4), 3)] {
        let used = Used::alone(1);
        let source = used.source();
        let mut rebuild = used.begin(&source).expect("begun");
        if let Some(step) = step {
            copy_all(&mut rebuild, |_| ()).expect("copied");
            assert!(used.devices.mortal(step, || rebuild.finish().expect("both count")));
            // For whoever is not simulated.
            used.desk().lock().store(0, SeqCst);
            used.desk().seats().for_each(|seat| seat.holder().store(0, SeqCst));
        }
        std::mem::forget(rebuild);
        assert_eq!((used.desk().joining().load(SeqCst), used.desk().copies().load(SeqCst)), (2, copies));
        sim::install(None);
        let (paths, written) = (used.paths(), usize::from(used.written.get()));
        let World { memory, disk, dir, pool, engine, .. } = used.world;
        drop((pool, engine));
        let pool = block::open_in(&paths[0], memory.path()).expect("a log");
        let desk = Desk::new(&pool.region, IMAGE as usize);
        assert_eq!((desk.joining().load(SeqCst), desk.copies().load(SeqCst)), (0, copies), "{step:?}");
        assert!(pool.mirror.as_ref().is_some_and(|mirror| mirror.notes[0].contains("was being rebuilt")));
        drop(pool);
        let cut = Cut { paths, memory, _dirs: (disk.expect("a disk"), dir) };
        match copies {
            1 => cut.without(1, || assert_eq!(cut.live(0), written, "{step:?}: it is alone")),
            _ => cut.without(0, || cut.refused(1, &["may hold more"])),
        }
        assert_eq!(cut.live(1), written, "{step:?}");
    }
}

/// Whoever rebuilds dies at each write, and the power goes at once, or after a commit of an heir, who goes on with the
/// rebuild's writes or has given it up.
// Holds: R13
#[test]
fn a_rebuild_that_dies_at_any_write_loses_nothing() {
    for (dead, commits, gives_up) in [(0, false, false), (0, true, true), (1, true, false), (1, true, true)] {
        let died_at = |step: u32| {
            let used = Used::alone(dead);
            let source = used.source();
            let died = used.devices.mortal(step, || {
                let mut rebuild = used.begin(&source).expect("begun");
                copy_all(&mut rebuild, |_| ()).expect("copied");
                rebuild.finish().expect("both count");
            });
            if gives_up {
                used.desk().joining().store(0, SeqCst);
            }
            if commits {
                used.commit();
                // It may have had to be the one that counts.
                assert_eq!(used.desk().failed().load(SeqCst), 0);
            }
            let written = usize::from(used.written.get());
            let cut = used.cut();
            assert_eq!(cut.live(step as usize % 2), written, "copy {dead} was rebuilt until {step}");
            assert!(cut.is_equal());
            died
        };
        // A piece in the middle is like its neighbours.
        let is_like_others = |step: &u32| (14..28).contains(step);
        let steps = (0..).take_while(|step| is_like_others(step) || died_at(*step)).count();
        assert!(steps > 36, "each piece is a step: {steps}");
    }
}
