//! A lab of a test's own: directories, a small pool, the programs of this build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use seawall_lab::cli::Common;
use seawall_lab::lab::Lab;
use seawall_lab::pg::Template;
use seawall_lab::pool::Pool;
use seawall_lab::process;
use seawall_lab::progress::Progress;
use seawall_lab::tools::postgres_bin;
use seawall_load::ledger::Verdict;
use tempfile::TempDir;

/// Small, so that the log wraps and is destaged while a test runs.
const POOL_SIZE: u64 = 16 << 20;

/// Holds a whole small database.
const CACHE: u64 = 128 << 20;

/// The sides of a test's case: the file system, and Seawall on it.
pub const SIDES: &str = r#"
[[configuration]]
name = "fs"
title = "the file system"
role = "baseline"

[[configuration]]
name = "preload"
title = "Seawall, log in RAM"
front = "preload"
medium = "emulated"
pool = "16M"
"#;

/// Everything below the test's process belongs to one test: only one may run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A directory of a test's own and the programs of this build, where a test sets up labs itself.
pub struct Alone {
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Alone {
    pub fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        process::adopt_orphans();
        build_programs();
        Self { dir: directory(), _alone: alone }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn program(&self, name: &str) -> PathBuf {
        program(name)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        process::kill_leftovers();
    }
}

/// On a disk: /tmp may be memory, which has no stable file handles everywhere.
fn directory() -> TempDir {
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).expect("others may pass");
    dir
}

/// The lab. What a failed test left running ends with it.
pub struct Place {
    pub lab: Lab,
    // After the lab.
    _alone: Alone,
}

impl Place {
    pub fn new() -> Self {
        let alone = Alone::new();
        let common = Common {
            seawall: Some(program("seawall")),
            work: Some(alone.dir().to_owned()),
            out: alone.dir().join("out"),
            pool_size: Some(POOL_SIZE),
            keep: false,
        };
        let lab = Lab::set_up(&common, Progress::silent(), 1 << 30).expect("a lab");
        Self { lab, _alone: alone }
    }

    /// The same with a block cache.
    pub fn cached() -> Self {
        let mut place = Self::new();
        let pool = Pool::create(&place.lab.tools, &place.lab.identity, POOL_SIZE, "-cached").expect("a pool");
        place.lab.pool = pool.with_cache(CACHE);
        place
    }

    /// The same with the log on the disk.
    pub fn on_block() -> Self {
        let mut place = Self::new();
        let log = place.lab.work.path().join("block.log");
        let pool = Pool::on_block(&place.lab.tools, &place.lab.identity, POOL_SIZE, log).expect("a log");
        place.lab.pool = pool;
        place
    }

    /// Takes what a power cut takes of a log on a block device, when everybody is dead: all but the device. The page
    /// cache stays: that nothing is missing without it, too, is for the power cuts to show (`proof/powercut`).
    pub fn lose_memory(&self) {
        for memory in self.lab.pool.memory() {
            std::fs::remove_file(&memory).unwrap_or_else(|e| panic!("{}: {e}", memory.display()));
        }
    }

    /// PostgreSQL's programs, and a cluster with pgbench's tables.
    pub fn postgres(&self) -> (PathBuf, PathBuf) {
        let bin = postgres_bin().expect("PostgreSQL, which `make deps` installs");
        let template = Template::create(&self.lab, &bin, 1).expect("a cluster");
        (bin, template.into_data())
    }

    pub fn ledger(&self) -> PathBuf {
        self.lab.work.log("ledger")
    }

    pub fn daemon(&self) -> u32 {
        self.lab.pool.daemon().expect("a daemon")
    }

    /// Waits until another daemon than this one serves the pool.
    pub fn wait_for_another_daemon(&self, than: u32) {
        wait_for_another_daemon(&self.lab.pool, than);
    }

    /// Kills the daemon. The database commits without one, and under the next one.
    pub fn replace_daemon(&self, commits: impl Fn() -> anyhow::Result<()>) {
        let first = self.daemon();
        process::signal(first, libc::SIGKILL);
        commits().expect("the database goes on");
        self.wait_for_another_daemon(first);
        commits().expect("the new one took the log over");
    }

    /// Claims a commit that never was.
    pub fn claim_one_more(&self) {
        let ledger = seawall_load::ledger::Writer::open(&self.ledger()).expect("the ledger");
        ledger.acknowledge(seawall_load::ledger::Entry { client: 1, seq: i64::MAX }).expect("appended");
    }

    /// Replays the log into the files.
    pub fn recover_with_replay(&self) {
        recover_with_replay(&self.lab.pool);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        process::kill_leftovers();
    }
}

/// Waits until another daemon than this one serves the pool.
pub fn wait_for_another_daemon(pool: &Pool, than: u32) {
    let begin = Instant::now();
    while pool.daemon().is_none_or(|pid| pid == than) {
        assert!(begin.elapsed() < Duration::from_secs(20), "nobody started another daemon");
        process::pause(Duration::from_millis(20)).expect("not interrupted");
    }
}

/// `seawall recover`, replaying although the machine did not restart: what it would do after a power cut.
pub fn recover_with_replay(pool: &Pool) {
    let mut recover = pool.seawall();
    recover.args(["recover", "--replay", "--json", "--pool"]).arg(pool.path());
    let said = process::run(recover, "seawall recover").expect("recovered");
    let said: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
    assert_eq!(said["replayed"], true, "{said}");
}

/// Something was acknowledged, and all of it is there.
#[track_caller]
pub fn assert_complete(verdict: &Verdict) {
    assert!(verdict.acknowledged > 0 && verdict.is_clean(), "{verdict:#?}");
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_seawall-lab")).with_file_name(name)
}

/// They are other packages' products; cargo has not built them when only this one is tested.
fn build_programs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let products = [
            ("seawall-cli", "seawall"),
            ("seawall-load", "seawall-load"),
            ("seawall-preload", "libseawall_preload.so"),
        ];
        for (package, _) in products.into_iter().filter(|(_, name)| !program(name).exists()) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", package]).current_dir(env!("CARGO_MANIFEST_DIR"));
            if !cfg!(debug_assertions) {
                build.arg("--release");
            }
            assert!(build.status().expect("cargo").success(), "{package} was not built");
        }
    });
}
