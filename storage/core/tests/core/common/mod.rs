//! A pool in memory, one managed file on a disk, and a power cut: the file falls back to what was on disk.

mod calls;
pub mod steps;

pub use calls::Calls;

pub mod directory;
pub mod front;

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use seawall_core::destage::{Destager, Files, Round};
use seawall_core::file::{Begins, Flag, Newcomer, Slot};
use seawall_core::pool::{self, Pool};
use seawall_core::recover::{Mode, Options, RecoverError, Report, recover};
use seawall_core::spill::Plan;
use seawall_core::table::{self, RootEntry};
use seawall_core::{At, Engine, Errno, FileRef, Owner, takeover};
use seawall_media::identity;
use seawall_stats::Class;
use seawall_wire::shm::{Policy, Preset};

pub struct World {
    pub dir: tempfile::TempDir,
    pub memory: tempfile::TempDir,
    /// Where a journal lies, if there is one.
    pub disk: Option<tempfile::TempDir>,
    pub pool: Pool,
    pub engine: Engine,
    pub root: u32,
    client: u32,
}

pub struct Managed {
    pub file: File,
    pub path: PathBuf,
    pub name: FileRef,
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl World {
    pub fn new(size: u64) -> Self {
        Self::registered_by(user(), size)
    }

    /// With a directory that was registered by this user.
    pub fn registered_by(uid: u32, size: u64) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
        let path = memory.path().join("pool");
        pool::create(&path, size, true, false).expect("a pool");
        let pool = pool::open(&path).expect("open");
        Self::of(pool, memory, None, uid)
    }

    /// The same with a spill area of so many bytes on a disk.
    pub fn with_area(size: u64, bytes: u64) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
        let disk = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = memory.path().join("pool");
        let plan = Plan { path: disk.path().join("area"), bytes };
        pool::create_with_area(&path, size, true, false, Some(&plan)).expect("a pool");
        let pool = pool::open(&path).expect("open");
        Self::of(pool, memory, Some(disk), user())
    }

    /// The same with a journal on a disk.
    pub fn on_block(image: u64) -> Self {
        Self::with_journal(image, pool::block::Sizes::of(image).journal)
    }

    /// The same with a journal of so many bytes.
    pub fn with_journal(image: u64, journal: u64) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
        let disk = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = disk.path().join("journal");
        pool::block::create_file(&path, pool::block::Sizes { image, journal }).expect("a pool");
        let pool = pool::block::open_in(&path, memory.path()).expect("open");
        Self::of(pool, memory, Some(disk), user())
    }

    /// The same with a journal that is mirrored: the second copy is `mirror` beside it.
    pub fn mirrored(image: u64, journal: u64) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
        let disk = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let (path, second) = (disk.path().join("journal"), disk.path().join("mirror"));
        pool::block::create_file(&path, pool::block::Sizes { image, journal }).expect("a pool");
        pool::block::join_mirror(&path, &second, false, memory.path()).expect("a mirror");
        let pool = pool::block::open_in(&path, memory.path()).expect("open");
        Self::of(pool, memory, Some(disk), user())
    }

    fn of(mut pool: Pool, memory: tempfile::TempDir, disk: Option<tempfile::TempDir>, uid: u32) -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let root = RootEntry {
            preset: Preset::Postgres,
            policy: Policy::Tail,
            path: dir.path().canonicalize().expect("a real path"),
            uid,
            data: dir.path().into(),
            identity: identity(File::open(dir.path()).expect("open")).expect("an identity"),
        };
        let entry = table::add_root(&pool, &root).expect("a root");
        let engine = takeover::start(&mut pool, memory.path()).expect("a start").engine;
        let slot = engine.shm().root(entry).expect("its slot");
        slot.publish(root.preset, root.policy, root.path.as_os_str().as_bytes(), 0);
        let root = entry;
        let client = engine.claim_client(std::process::id(), 0).expect("a client slot");
        Self { dir, memory, disk, pool, engine, root, client }
    }

    pub fn who(&self, thread: usize) -> Owner {
        Owner::new(self.client, (thread + 1) << 4)
    }

    /// Creates a file and registers it, as the daemon does. It is untracked until its first real sync.
    pub fn manage(&self, name: &str) -> Managed {
        self.manage_as(name, Begins::Outside, false)
    }

    pub fn manage_as(&self, name: &str, begins: Begins, is_named_by_directory: bool) -> Managed {
        let path = self.dir.path().join(name);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).expect("open");
        let meta = file.metadata().expect("its inode");
        let registered = self.engine.register(&Newcomer {
            root: self.root,
            identity: &identity(&file).expect("an identity"),
            hint: name.as_ref(),
            inode: (meta.dev(), meta.ino()),
            class: Class::Other,
            begins,
            is_named_by_directory,
            is_directory: false,
        });
        let sync = || file.sync_all().map_err(|_| Errno::IO);
        let registered = registered.expect("a slot");
        let admitted = match begins {
            Begins::InLogWithName => registered.admit_with_content(self.who(0), file.as_fd(), sync),
            _ => registered.admit(self.who(0), sync),
        };
        Managed { name: admitted.expect("room to be found"), file, path }
    }

    pub fn slot(&self, m: &Managed) -> Slot<'_> {
        self.engine.file(m.name).expect("it has its slot")
    }

    /// A process that does not exist any more.
    pub fn dead(&self) -> Owner {
        Owner::new(self.engine.claim_client(0x3fff_fff0, 0).expect("a client"), 1 << 4)
    }

    /// That process, or any other, died inside the file.
    pub fn dies_inside(&self, m: &Managed, dead: Owner) {
        let inside = self.slot(m).enter(self.engine.shm(), dead).alone();
        std::mem::forget(inside.expect("nobody is inside"));
    }

    pub fn pwrite(&self, m: &Managed, thread: usize, data: &[u8], offset: u64) {
        let publish = || m.file.write_at(data, offset).map_err(|_| Errno::IO);
        let slices = [data];
        let n = self
            .engine
            .write(self.who(thread), m.name, m.file.as_fd(), At::Offset(offset), slices.into_iter(), publish)
            .expect("a write");
        assert_eq!(n, data.len());
    }

    pub fn truncate(&self, m: &Managed, len: u64) {
        let publish = || m.file.set_len(len).map_err(|_| Errno::IO);
        self.engine.truncate(self.who(0), m.name, m.file.as_fd(), len, publish).expect("a truncate");
    }

    /// Returns true if the sync had to be real.
    pub fn fsync(&self, m: &Managed) -> bool {
        let mut real = false;
        let sync = || {
            real = true;
            m.file.sync_data().map_err(|_| Errno::IO)
        };
        self.engine.fsync(self.who(0), m.name, sync).expect("a sync");
        real
    }

    /// One round of the destager.
    pub fn destage(&self, m: &Managed) -> Round {
        Destager::new(&self.engine, self.who(7)).round(&mut One(m))
    }

    pub fn is_tracked(&self, m: &Managed) -> bool {
        self.engine.state(m.name).has(Flag::TRACKED)
    }

    /// Recovers a copy-free reopening of the pool, as after a power cut.
    pub fn recover(self) -> (Result<Report, RecoverError>, tempfile::TempDir, tempfile::TempDir) {
        let Self { dir, memory, pool, engine, .. } = self;
        let (path, block) = (pool.path.clone(), pool.lock.is_some());
        drop((pool, engine));
        let pool = if block {
            // Memory is lost; the journal is all there is.
            for entry in std::fs::read_dir(memory.path()).expect("memory").flatten() {
                std::fs::remove_file(entry.path()).expect("removed");
            }
            pool::block::open_in(&path, memory.path()).expect("open")
        } else {
            pool::open(&path).expect("open")
        };
        let done = recover(&pool, Options { mode: Mode::Replay, accept_loss: false });
        if block {
            std::fs::remove_dir_all(path.parent().expect("a directory")).expect("removed");
        }
        (done, dir, memory)
    }
}

/// One file, whatever the slot.
pub struct One<'a>(pub &'a Managed);

impl Files for One<'_> {
    fn descriptor(&mut self, _slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        Ok(self.0.file.as_fd())
    }
}

/// Puts old content into the same inode, as if nothing newer had been written back.
pub fn roll_back(m: &Managed, content: &[u8]) {
    m.file.set_len(0).expect("truncate");
    m.file.write_all_at(content, 0).expect("write");
}
