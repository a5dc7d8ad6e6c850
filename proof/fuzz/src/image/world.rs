//! The scratch directory a fuzzed pool is recovered into, with everything around it that must not change.
//!
//! ```text
//! root/     registered: wal other sub/deep (managed), private (nobody's), link -> ../outside/canary,
//!           linkdir -> ../outside, fifo
//! outside/  canary, second: what a pool may dream of writing
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::process::{Resource, Rlimit, setrlimit};
use seawall_core::format::{Cell, Layout, Superblock};
use seawall_core::pool;
use seawall_media::{Identity, Region, identity};

use crate::scratch;

/// Files a pool may write, with what they hold before.
pub const MANAGED: [&str; 3] = ["root/wal", "root/other", "root/sub/deep"];
/// Everything else that has content.
const OTHERS: [&str; 3] = ["root/private", "outside/canary", "outside/second"];
const LINKS: [(&str, &str); 2] = [("root/link", "../outside/canary"), ("root/linkdir", "../outside")];
const SIZE: u64 = Layout::MIN_SIZE;
/// A file that is longer is a full disk: a fuzzed length must not fill the real one.
const FILE_MAX: u64 = SIZE + (1 << 20);

/// Scratch directory and pool.
pub struct World {
    dir: PathBuf,
    /// The pool's path.
    pub pool: PathBuf,
    /// The pool, mapped, for building.
    pub region: Region,
    /// Its layout.
    pub layout: Layout,
    /// Its UUID's low half, as segments carry it.
    pub uuid_low: u64,
    superblock: Vec<u8>,
    pool_file: File,
}

impl World {
    /// Makes everything once.
    pub fn new() -> Self {
        let (dir, memory) = (scratch::directory("/var/tmp"), scratch::directory("/dev/shm"));
        for sub in ["root/sub", "outside"] {
            fs::create_dir_all(dir.join(sub)).expect("made");
        }
        for (link, to) in LINKS {
            symlink(to, dir.join(link)).expect("linked");
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("root/fifo"), rustix::fs::Mode::RWXU).expect("a fifo");
        let pool = memory.join("pool");
        pool::create(&pool, SIZE, true, false).expect("a pool");
        let pool_file = OpenOptions::new().read(true).write(true).open(&pool).expect("opened");
        let region = Region::map(&pool_file, SIZE, false).expect("mapped");
        let mut superblock = vec![0; Layout::retired()];
        region.read(0, &mut superblock);
        let layout = Layout::for_size(SIZE).expect("a layout");
        let found = Superblock::read(&region).expect("a superblock");
        let uuid_low = found.uuid_low();
        // A replay that was refused by the disk leaves its mark.
        let uuid = u128::from_le_bytes(found.uuid);
        scratch::remove_at_exit(Path::new(&format!("/dev/shm/seawall-{uuid:032x}.replay")));
        limit_file_size();
        Self { dir, pool, region, layout, uuid_low, superblock, pool_file }
    }

    /// An empty pool, and files as they were long before this boot.
    pub fn reset(&mut self) {
        use rustix::fs::FallocateFlags as F;
        rustix::fs::fallocate(&self.pool_file, F::PUNCH_HOLE | F::KEEP_SIZE, 0, SIZE).expect("emptied");
        self.region.store(0, &self.superblock);
        Cell::at(Layout::retired()).format(&self.region, 0);
        for name in MANAGED.iter().chain(&OTHERS) {
            let path = self.path(name);
            let content = name.as_bytes();
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).open(path).expect("opened");
            file.set_len(content.len() as u64).expect("cut");
            file.write_all_at(content, 0).expect("written");
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).expect("old");
        }
    }

    /// A path in the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The identity of something in it.
    pub fn identity(&self, name: &str) -> Identity {
        let path = self.path(name);
        identity(File::open(path).expect("opened")).expect("an identity")
    }

    /// Content of the managed files.
    pub fn registered(&self) -> BTreeMap<&'static str, Vec<u8>> {
        MANAGED.iter().map(|name| (*name, fs::read(self.path(name)).expect("it is there"))).collect()
    }

    /// What no pool may change.
    pub fn assert_unharmed(&self) {
        for name in OTHERS {
            let content = fs::read(self.path(name)).expect("it is there");
            assert!(content == name.as_bytes(), "{name} was written");
        }
        for (link, to) in LINKS {
            assert_eq!(fs::read_link(self.path(link)).expect("a link"), Path::new(to), "{link}");
        }
        for (dir, count) in [("root", 7), ("root/sub", 1), ("outside", 2), (".", 2)] {
            let names = fs::read_dir(self.path(dir)).expect("a directory").count();
            assert_eq!(names, count, "names in {dir}");
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// EFBIG instead of SIGXFSZ, which Rust programs do not survive.
fn limit_file_size() {
    // The hard limit too: a daemon, which another target has in this process, takes all that it may.
    let limit = Rlimit { current: Some(FILE_MAX), maximum: Some(FILE_MAX) };
    setrlimit(Resource::Fsize, limit).expect("a smaller limit");
    ignore_sigxfsz();
}

fn ignore_sigxfsz() {
    // A handler cannot be set without `unsafe`; a blocked signal that is not fatal does as well.
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(nix::sys::signal::Signal::SIGXFSZ);
    set.thread_block().expect("blocked");
}
