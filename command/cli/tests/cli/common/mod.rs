//! A pool and a data directory of a test's own, and `seawall` on them.

pub mod cluster;
pub mod database;
pub mod disk;
pub mod disks;
pub mod front;
pub mod hosts;
pub mod image;
pub mod keepers;
pub mod ledger;
pub mod mariadb;
pub mod mirrors;
pub mod mounts;
pub mod pair;
pub mod pgbench;
pub mod postgres;
pub mod redis;
pub mod scene;
pub mod served;
pub mod server;
pub mod volume;
pub mod writer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

pub use writer::{Writer, kill_everything};

pub const SEAWALL: &str = env!("CARGO_BIN_EXE_seawall");

/// The line that `run` prints on a pool in RAM.
pub const EMULATED: &str = "SEAWALL EMULATED:";

/// What a command said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Asserts that it failed with this code, and that the message names all of these.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self.says(words)
    }

    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in:\n{}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub fn succeeds(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Its output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        self.succeeds();
        serde_json::from_str(&self.out).expect("JSON")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A place to try things.
pub struct Place {
    /// On a file system with stable handles.
    pub data: tempfile::TempDir,
    ram: tempfile::TempDir,
    pub pool: PathBuf,
}

impl Place {
    /// Without a pool.
    pub fn bare() -> Self {
        build_preload();
        let data = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let ram = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let pool = ram.path().join("test.pool");
        Self { data, ram, pool }
    }

    /// With a pool of 16 MiB in RAM.
    pub fn new() -> Self {
        Self::with_pool("16M")
    }

    /// With a pool in RAM of this size.
    pub fn with_pool(size: &str) -> Self {
        let place = Self::bare();
        place.seawall(&["init", place.pool(), "--size", size, "--emulated"]).succeeds();
        place
    }

    /// With a log of this size on a disk.
    pub fn on_disk(size: &str) -> Self {
        let mut place = Self::bare();
        place.pool = place.data.path().join("seawall.log");
        place.seawall(&["init", "--block", place.pool(), "--size", size]).succeeds();
        place
    }

    pub fn pool(&self) -> &str {
        self.pool.to_str().expect("a path of ASCII")
    }

    /// Another path in RAM.
    pub fn ram(&self, name: &str) -> String {
        self.ram.path().join(name).display().to_string()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SEAWALL);
        command.args(arguments).env_remove("LD_PRELOAD").current_dir(self.data.path());
        command
    }

    pub fn seawall(&self, arguments: &[&str]) -> Said {
        self.command(arguments).stdin(Stdio::null()).output().expect("seawall starts").into()
    }

    /// `seawall run` of a command on the data directory as SQLite's.
    pub fn run_command(&self, command: &[&str]) -> Command {
        let mut run = self.command(&["run", "--pool", self.pool(), "--preset", "sqlite", "--data", "."]);
        run.arg("--").args(command);
        run
    }

    pub fn run(&self, command: &[&str]) -> Said {
        self.run_command(command).stdin(Stdio::null()).output().expect("seawall starts").into()
    }

    pub fn status(&self) -> serde_json::Value {
        self.seawall(&["status", "--json", "--pool", self.pool()]).json()
    }

    pub fn daemon(&self) -> Option<u64> {
        self.status()["daemon_pid"].as_u64()
    }

    /// What the pool has in memory: its run-time memory and, of a log on a disk, the image.
    pub fn in_memory(&self) -> Vec<PathBuf> {
        let inspected = self.seawall(&["inspect", self.pool(), "--json"]);
        let json = serde_json::from_str::<serde_json::Value>(&inspected.out).unwrap_or_default();
        let Some(uuid) = json["uuid"].as_str() else { return Vec::new() };
        let of = |kind| PathBuf::from(format!("/dev/shm/seawall-{uuid}.{kind}"));
        ["rt", "image"].map(of).into_iter().filter(|path| path.exists()).collect()
    }

    /// The index in memory of the block cache that has its blocks here.
    pub fn index_of(&self, store: &Path) -> PathBuf {
        let mut header = [0; 32];
        let read = std::fs::File::open(store)
            .and_then(|mut store| std::io::Read::read_exact(&mut store, &mut header));
        read.expect("a store");
        let uuid = u128::from_le_bytes(header[16..].try_into().expect("16 bytes"));
        format!("/dev/shm/seawall-cache-{uuid:032x}").into()
    }

    pub fn guard(&self) -> PathBuf {
        self.file("x-journal/.seawall")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whatever a failed test left behind ends here; most have ended it themselves.
        let _ = self.command(&["stop", "--pool", self.pool()]).output();
        // The pool goes with its directory: nobody will ask for the run-time memory of a killed daemon again.
        for path in self.in_memory() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The child of this process that runs this program.
pub fn child(parent: u32, program: &str) -> u32 {
    let children =
        std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("children");
    let name = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let found = children.split_whitespace().find(|pid| name(pid).trim_end() == program);
    found.expect("it runs").parse().expect("a pid")
}

/// SIGKILL.
pub fn kill(pid: u64) {
    signal(pid, "KILL");
}

/// Any signal.
pub fn signal(pid: u64, name: &str) {
    let done = Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill");
    assert!(done.success());
}

/// Waits until a killed process is gone with all its threads: until then it holds its locks.
#[track_caller]
pub fn wait_for_end(pid: u64) {
    wait_for("a killed process", || !seawall_media::process::is_alive(pid as u32));
}

/// Waits for something that takes a moment, or half a minute on a machine that has other work.
#[track_caller]
pub fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    wait_at_most(Duration::from_secs(60), what, is_so, String::new);
}

/// The same for something that takes longer; `tell` adds to the message if it never comes. Returns how long it took.
#[track_caller]
pub fn wait_at_most(
    limit: Duration,
    what: &str,
    mut is_so: impl FnMut() -> bool,
    tell: impl Fn() -> String,
) -> Duration {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < limit, "waited for {what} in vain\n{}", tell());
        std::thread::sleep(Duration::from_millis(5));
    }
    begin.elapsed()
}

/// A number that looks like one drawn by lot; the same in each run of a round.
pub fn lot(round: u64, of: u64, choices: u64) -> u64 {
    let mut x =
        round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) ^ 0x2545_f491;
    for shift in [33, 29, 32] {
        x = (x ^ x >> shift).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }
    x % choices
}

/// How many rounds of a campaign this variable asks for; two without it.
pub fn rounds(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// The names in a directory, in order.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).exists())
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a program of these bytes that can be started at once.
///
/// Not by this process: a child that another test starts has every descriptor until its exec, and the kernel does not start
/// what somebody has open for writing (ETXTBSY).
pub fn program(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path.as_ref()).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("sh starts");
    writer.stdin.take().expect("a pipe").write_all(bytes.as_ref()).expect("written");
    assert!(writer.wait().expect("ends").success(), "{} is not made", path.as_ref().display());
}

/// The same of another program.
pub fn copied_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    program(to, std::fs::read(from).expect("a program"));
}

/// Compiles C. `None` without a compiler.
pub fn cc(place: &Place, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compiled("cc", place, name, source, flags)
}

/// The same by another compiler.
pub fn compiled(cc: &str, place: &Place, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (from, to) = (place.file(&format!("{name}.c")), place.file(name));
    std::fs::write(&from, source).expect("written");
    let done = Command::new(cc).args(flags).arg("-o").arg(&to).arg(&from).output().ok()?;
    done.status.success().then_some(to)
}

/// The library is another package's product; cargo has not built it when only this one is tested.
fn build_preload() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let beside = Path::new(SEAWALL).with_file_name("libseawall_preload.so");
        if beside.exists() {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--quiet", "--package", "seawall-preload"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo").success(), "the preload library was not built");
    });
}
