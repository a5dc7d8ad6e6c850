//! A mirrored log in use, its devices, which fail on demand, and what a power cut leaves.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::journal::{self, rebuild::Rebuild};
use seawall_core::pool::{Pool, PoolError, block};
use seawall_core::store::Store;
use seawall_core::{Errno, recover, table};
use seawall_media::block::{ANCHOR_BYTES, Anchor, Mirror, MirrorState, RING_AT};
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

use crate::common::{Managed, World};

pub const IMAGE: u64 = 16 << 20;
pub const JOURNAL: u64 = 3 << 20;
const WORDS: usize = 4096;
pub const EIO: i32 = 5;

struct Died;

/// The devices: they fail, and whoever writes dies, on demand.
pub struct Devices {
    files: [File; 2],
    pub fails: Cell<Option<usize>>,
    /// Writes until the writer dies: before it, or behind it.
    dies: Cell<Option<u32>>,
    /// The desk's words as the dead one left them.
    left: RefCell<Option<Vec<u8>>>,
    pub memory: Region,
    process: Cell<u32>,
    pub writes: Cell<u32>,
}

impl Devices {
    pub fn install(world: &World) -> Rc<Self> {
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

    pub fn step(&self) {
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
    pub fn mortal(&self, step: u32, body: impl FnOnce()) -> bool {
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
pub struct Used {
    pub world: World,
    pub file: Managed,
    pub devices: Rc<Devices>,
    pub written: Cell<u8>,
}

impl Used {
    pub fn new() -> Self {
        let world = World::mirrored(IMAGE, JOURNAL);
        let file = world.manage("file");
        file.file.write_all_at(&[1; 8192], 0).expect("room");
        assert!(world.fsync(&file), "the first sync is real");
        let devices = Devices::install(&world);
        Self { world, file, devices, written: Cell::new(0) }
    }

    pub fn commit(&self) {
        self.write();
        self.sync();
    }

    pub fn write(&self) {
        self.world.pwrite(&self.file, 0, &[9; 100], 0);
        self.written.set(self.written.get() + 1);
    }

    pub fn sync(&self) {
        assert!(!self.world.fsync(&self.file));
    }

    /// With one copy lost, which is well again.
    pub fn alone(dead: usize) -> Self {
        let used = Self::new();
        used.commit();
        used.devices.fails.set(Some(dead));
        used.commit();
        used.devices.fails.set(None);
        used.commit();
        used
    }

    pub fn begin<'a>(&'a self, source: &'a File) -> Result<Rebuild<'a>, Errno> {
        let image = self.world.engine.pool();
        let open = |path: &PathBuf| File::options().read(true).write(true).open(path).expect("a copy").into();
        let devices = self.paths().each_ref().map(open);
        Rebuild::begin(image.journal().expect("a journal"), image, devices, source)
    }

    pub fn paths(&self) -> [PathBuf; 2] {
        self.world.pool.mirror.as_ref().expect("a mirror").paths()
    }

    /// The log as another process has it that was given the devices now.
    pub fn front(&self) -> Store {
        let image = Region::map(&self.world.pool.file, self.world.pool.region.len() as u64, false);
        let open = |path: &PathBuf| File::options().read(true).write(true).open(path).expect("a copy").into();
        let [first, second] = self.paths().each_ref().map(open);
        let given = self.desk().given().load(SeqCst);
        let journal = journal::open::journal(first, Some(second), given, IMAGE as usize);
        Store::journaled(image.expect("a mapping"), journal)
    }

    /// A reader of the copy that counts.
    pub fn source(&self) -> File {
        let counts = self.desk().copies().load(SeqCst).trailing_zeros() as usize;
        File::open(&self.paths()[counts]).expect("a copy")
    }

    pub fn desk(&self) -> Desk<'_> {
        Desk::new(&self.devices.memory, IMAGE as usize)
    }

    /// The power goes: memory is lost.
    pub fn cut(self) -> Cut {
        sim::install(None);
        let paths = self.paths();
        let World { memory, disk, dir, pool, engine, .. } = self.world;
        drop((pool, engine));
        Cut { paths, memory, _dirs: (disk.expect("a disk"), dir) }
    }
}

/// What a power cut left.
pub struct Cut {
    pub paths: [PathBuf; 2],
    pub memory: tempfile::TempDir,
    pub _dirs: (tempfile::TempDir, tempfile::TempDir),
}

impl Cut {
    pub fn open(&self, copy: usize) -> Result<Pool, PoolError> {
        self.open_at(&self.paths[copy])
    }

    pub fn open_at(&self, path: &Path) -> Result<Pool, PoolError> {
        for entry in fs::read_dir(self.memory.path()).expect("memory").flatten() {
            fs::remove_file(entry.path()).expect("removed");
        }
        block::open_in(path, self.memory.path())
    }

    /// The records that are there, if it is opened by this copy.
    #[track_caller]
    pub fn live(&self, copy: usize) -> usize {
        live(&self.open(copy).expect("a log"))
    }

    #[track_caller]
    pub fn refused(&self, copy: usize, words: &[&str]) {
        let text = self.open(copy).map(|pool| pool.path).expect_err("refused").to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in: {text}"));
    }

    /// Does something while this copy is gone.
    pub fn without<R>(&self, copy: usize, body: impl FnOnce() -> R) -> R {
        let away = self.paths[copy].with_extension("away");
        fs::rename(&self.paths[copy], &away).expect("moved");
        let result = body();
        fs::rename(&away, &self.paths[copy]).expect("moved back");
        result
    }

    pub fn is_equal(&self) -> bool {
        let [a, b] = [0, 1].map(|i| fs::read(&self.paths[i]).expect("a copy"));
        a[RING_AT as usize..JOURNAL as usize] == b[RING_AT as usize..JOURNAL as usize]
    }

    pub fn garble(&self, copy: usize, at: u64) {
        let file = File::options().write(true).open(&self.paths[copy]).expect("a copy");
        file.write_all_at(&[0x5a; 4096], at).expect("written");
    }

    /// Where batches begin in a copy.
    pub fn batches(&self, copy: usize) -> Vec<u64> {
        let bytes = fs::read(&self.paths[copy]).expect("a copy");
        let starts = (RING_AT as usize..JOURNAL as usize).step_by(4096);
        starts.filter(|at| bytes[*at..].starts_with(b"SWbt")).map(|at| at as u64).collect()
    }
}

pub fn live(pool: &Pool) -> usize {
    let files = table::files(pool).expect("a table").into_iter().map(|f| (f.slot, f)).collect();
    let found = recover::scan(pool, &files);
    assert_eq!(found.damage, []);
    found.live.len()
}

/// Says something else in both places of a copy's anchor.
pub fn say(path: &Path, state: MirrorState, epoch: u16) {
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
