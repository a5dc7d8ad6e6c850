//! The two sides of every comparison, and the `seawall` command.

use super::bounded::{self, Finished, Running};
use super::processes;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long recover, status and their like may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// The `seawall` binary: SEAWALL_BIN, or the one of this workspace, built if it is absent.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(find_or_build).clone()
}

fn find_or_build() -> PathBuf {
    if let Some(path) = std::env::var_os("SEAWALL_BIN") {
        return PathBuf::from(path);
    }
    // The contract program lies where `seawall` is built to: the profile's directory.
    let profile = Path::new(env!("CARGO_BIN_EXE_contract")).parent().expect("a file lies in a directory");
    let binary = profile.join("seawall");
    if !binary.exists() || !profile.join("libseawall_preload.so").exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        cargo.args(["build", "--bins", "--lib", "-p", "seawall-cli", "-p", "seawall-preload"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        bounded::run(&mut cargo, "cargo build of seawall", Duration::from_secs(1200))
            .expect_success("cargo build of seawall");
    }
    assert!(binary.exists(), "{} does not exist after a build: set SEAWALL_BIN", binary.display());
    binary
}

/// Only the cases themselves are being tested: nothing runs under Seawall.
pub fn bare_only() -> bool {
    std::env::var_os("SEAWALL_CONTRACT_BARE").is_some()
}

/// A setting in the environment that is a number.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The contract program with its arguments, without Seawall.
pub fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contract"));
    command.args(arguments);
    command
}

/// What a pool lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// RAM.
    Emulated,
    /// A file on a disk, with an image in memory.
    Block,
}

impl Medium {
    /// SEAWALL_CONTRACT_MEDIUM=block: every test that names none runs there.
    fn wanted() -> Medium {
        match std::env::var("SEAWALL_CONTRACT_MEDIUM").as_deref() {
            Ok("block") => Medium::Block,
            _ => Medium::Emulated,
        }
    }
}

/// A pool of its own, in memory or on a disk; when dropped, its daemon is ended and the pool removed.
pub struct Pool {
    path: PathBuf,
    size: &'static str,
    medium: Medium,
    has_cache: bool,
    preset: &'static [&'static str],
}

impl Pool {
    /// Names a pool; `seawall run` makes it.
    pub fn new(name: &str, size: &'static str) -> Pool {
        Pool::on(Medium::wanted(), name, size)
    }

    /// The same on this medium.
    pub fn on(medium: Medium, name: &str, size: &'static str) -> Pool {
        let directory = match medium {
            Medium::Emulated => "/dev/shm",
            Medium::Block => "/var/tmp",
        };
        // Tests of one name run side by side: each has a pool of its own.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let path = format!("{directory}/seawall-contract-{name}-{medium:?}-{id}-{number}.pool");
        let path = PathBuf::from(path.to_lowercase());
        let _ = std::fs::remove_file(&path);
        Pool { path, size, medium, has_cache: false, preset: &["sqlite"] }
    }

    /// One in memory whose daemon has a block cache, of small blocks: few programs read larger ones.
    pub fn cached(name: &str, size: &'static str) -> Pool {
        let mut pool = Pool::on(Medium::Emulated, name, size);
        pool.has_cache = true;
        pool
    }

    /// One for any program's files, whose names are in the log where the file system keeps their order.
    pub fn with_names(name: &str, size: &'static str) -> Pool {
        let mut pool = Pool::new(name, size);
        pool.preset = &["any", "--unguarded"];
        pool
    }

    /// The options of `run` and `mount` for the block cache.
    pub fn cache(&self) -> &'static [&'static str] {
        if self.has_cache { &["--cache", "256M", "--cache-block", "4K"] } else { &[] }
    }

    /// Its size.
    pub fn size(&self) -> &'static str {
        self.size
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `seawall run` around `program`.
    pub fn around(&self, data: &Path, program: &Command) -> Command {
        let mut command = Command::new(binary());
        command.args(["run", "--size", self.size]).args(self.cache());
        match self.medium {
            Medium::Emulated => command.args(["--emulated", "--pool"]).arg(&self.path),
            Medium::Block => command.arg("--block").arg(&self.path),
        };
        command.arg("--preset").args(self.preset).arg("--data").arg(data).arg("--");
        command.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }

    /// `seawall WORDS --pool P`, which must end in time; its caller judges the result.
    pub fn command(&self, words: &[&str]) -> Finished {
        let mut command = Command::new(binary());
        command.args(words).arg("--pool").arg(&self.path);
        bounded::run(&mut command, &format!("seawall {}", words.join(" ")), COMMAND_LIMIT)
    }

    /// `seawall recover --replay`, which must succeed.
    pub fn replay(&self) -> Finished {
        self.command(&["recover", "--replay"]).expect_success("seawall recover --replay")
    }

    /// The processes that serve this pool: its daemon, and `run` itself while it lasts.
    pub fn processes(&self) -> Vec<i32> {
        let path = self.path.to_string_lossy();
        processes::descendants_naming(&path)
    }

    /// The daemon alone: what names the pool but is not `seawall run`.
    pub fn daemon(&self, run: &Running) -> Vec<i32> {
        self.processes().into_iter().filter(|pid| *pid != run.pid()).collect()
    }

    /// Memory is lost in a power cut: what the log's device holds is all there is. The pool in memory stands for one
    /// that keeps everything.
    pub fn lose_memory(&self) {
        if self.medium == Medium::Block {
            self.remove_memory();
        }
    }

    fn remove_memory(&self) {
        let inspected = Command::new(binary()).args(["inspect", "--json"]).arg(&self.path).output();
        if let Some(uuid) = inspected.ok().and_then(|said| uuid_in(&said.stdout)) {
            for what in ["rt", "image"] {
                let _ = std::fs::remove_file(format!("/dev/shm/seawall-{uuid}.{what}"));
            }
        }
    }

    /// kill -9 for everything that names the pool.
    pub fn kill_everything(&self) {
        let pids = self.processes();
        for pid in &pids {
            processes::signal(*pid, libc::SIGKILL);
        }
        processes::reap(&pids);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.kill_everything();
        // A daemon that was killed leaves its run-time memory; without the pool nobody asks for it again.
        self.remove_memory();
        for behind in ["", ".cache", ".cache.policies"] {
            let mut path = self.path.clone().into_os_string();
            path.push(behind);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The pool's UUID, in what `seawall inspect --json` said.
fn uuid_in(json: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(json).ok()?;
    let uuid = text.split_once("\"uuid\":")?.1.split('"').nth(1)?;
    (uuid.len() == 32).then(|| uuid.to_owned())
}
