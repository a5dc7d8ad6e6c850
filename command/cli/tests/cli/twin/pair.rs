//! A server and its twin below `seawall twin`, and which of them is killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use seawall_media::process;
use serde_json::Value;

use crate::common::redis::{Redis, Reply};
use crate::common::{SEAWALL, wait_for};

/// A digest and the time of expiry of every key.
pub type Contents = BTreeMap<String, (Reply, Reply)>;

pub fn is_installed() -> bool {
    let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: redis-server is not installed");
    }
    found
}

pub struct Pair {
    dir: tempfile::TempDir,
    before: Vec<String>,
    options: Vec<String>,
    more: Vec<String>,
    supervisor: Option<Child>,
}

impl Pair {
    /// `before` stands before `twin` on the command line, `more` are the server's options.
    pub fn start(before: &[&str], more: &[&str]) -> Self {
        let mut pair = Self::new(before, more);
        pair.supervise();
        pair
    }

    fn new(before: &[&str], more: &[&str]) -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        for name in ["home", "state"] {
            std::fs::create_dir(dir.path().join(name)).expect("made");
        }
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self { dir, before: owned(before), options: Vec::new(), more: owned(more), supervisor: None }
    }

    /// A server that somebody else has started gets a twin, and this command runs after each takeover.
    pub fn follow(on_takeover: &str) -> (Self, Child) {
        let mut pair = Self::new(&[], &[]);
        let words = pair.server(&pair.at("home"), &pair.socket());
        let server =
            Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).spawn().expect("a server");
        drop(pair.redis());
        pair.options = ["--on-takeover", on_takeover, "--follow", &server.id().to_string()]
            .map(ToOwned::to_owned)
            .to_vec();
        pair.supervise();
        pair.options.truncate(2);
        (pair, server)
    }

    /// The state is on a file system of this size.
    pub fn with_small_state(size: &str) -> Self {
        let mut pair = Self::new(&[], &[]);
        let options = format!("size={size},mode=700");
        nix::mount::mount(
            None::<&str>,
            &pair.at("state"),
            Some("tmpfs"),
            nix::mount::MsFlags::empty(),
            Some(options.as_str()),
        )
        .expect("mounted");
        pair.supervise();
        pair
    }

    /// Nothing fits into the state any more.
    pub fn fill_state(&self) {
        let mut file = File::create(self.at("state/filler")).expect("created");
        while std::io::Write::write_all(&mut file, &[1; 1 << 16]).is_ok() {}
    }

    /// For one of a size of its own, when all have ended.
    pub fn unmount_state(&self) {
        nix::mount::umount2(&self.at("state"), nix::mount::MntFlags::MNT_DETACH).expect("unmounted");
    }

    pub fn empty_state(&self) {
        std::fs::remove_file(self.at("state/filler")).expect("removed");
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.at("s")
    }

    fn server(&self, dir: &Path, socket: &Path) -> Vec<String> {
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        let mut words: Vec<String> =
            ["redis-server", "--port", "0", "--appendonly", "yes", "--appendfsync", "always", "--save", ""]
                .map(String::from)
                .into();
        words.extend(["--enable-debug-command".into(), "yes".into(), "--dir".into(), text(dir)]);
        words.extend(["--unixsocket".into(), text(socket)]);
        words
    }

    /// Starts the supervisor, and waits until the server answers.
    pub fn supervise(&mut self) {
        let log = File::options().create(true).append(true).open(self.at("log")).expect("a log");
        let mut command = Command::new(SEAWALL);
        if !self.before.is_empty() {
            command.args(&self.before).arg(SEAWALL);
        }
        command.args(["twin", "--state"]).arg(self.at("state")).args(&self.options).arg("--");
        command.args(self.server(&self.at("home"), &self.socket())).args(&self.more);
        command.stdout(log.try_clone().expect("a log")).stderr(log).stdin(Stdio::null());
        self.supervisor = Some(command.spawn().expect("seawall starts"));
        drop(self.redis());
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    pub fn status(&self) -> Value {
        let mut ask = Command::new(SEAWALL);
        let asked = ask
            .args(["twin", "status", "--json", "--state"])
            .arg(self.at("state"))
            .output()
            .expect("it runs");
        serde_json::from_slice(&asked.stdout).unwrap_or(Value::Null)
    }

    pub fn await_ready(&self) {
        wait_for("a twin that is ready", || self.status()["ready"] == true);
    }

    /// A connection to whoever serves.
    pub fn redis(&self) -> Redis {
        let mut found = None;
        wait_for("Redis", || {
            found = Redis::open(&self.socket()).filter_map_answering();
            found.is_some()
        });
        found.expect("connected")
    }

    pub fn process(&self, name: &str) -> i32 {
        wait_for(name, || self.status()[name].is_number());
        self.status()[name].as_i64().expect("a number") as i32
    }

    fn supervisor(&self) -> i32 {
        self.supervisor.as_ref().expect("it runs").id() as i32
    }

    /// Kills it, and waits until somebody else serves.
    pub fn kill_primary(&self) {
        let before = self.process("primary");
        signal(before, 9);
        wait_for("another server", || {
            self.status()["primary"].as_i64().is_some_and(|now| now != i64::from(before))
        });
        drop(self.redis());
    }

    pub fn kill_twin(&self) {
        signal(self.process("twin"), 9);
    }

    pub fn kill_supervisor(&mut self) {
        signal(self.supervisor(), 9);
        self.supervisor.take().expect("it ran").wait().expect("waited for");
    }

    /// Server, twin and supervisor; then an ordinary start.
    pub fn kill_everything(&mut self) {
        let (primary, twin) = (self.process("primary"), self.process("twin"));
        signal(self.supervisor(), 9);
        [primary, twin].iter().for_each(|process| signal(*process, 9));
        self.supervisor.take().expect("it ran").wait().expect("waited for");
        wait_for("their end", || {
            [primary, twin].iter().all(|process| !Path::new(&format!("/proc/{process}")).exists())
        });
        self.supervise();
    }

    /// Kills the primary while supervisor and twin are stopped, so that the tail is long. Returns what an ordinary server loads
    /// from the file that is left.
    pub fn kill_primary_and_keep_its_file(&self, meanwhile: impl FnOnce(&mut Redis)) -> Contents {
        let before = self.process("primary");
        let current = self.status()["current"].as_str().map(PathBuf::from).expect("a directory");
        let twin = self.process("twin");
        [self.supervisor(), twin].iter().for_each(|process| signal(*process, 19));
        meanwhile(&mut Redis::open(&self.socket()).expect("connected"));
        std::thread::sleep(Duration::from_millis(30));
        let children = process::tree(before as u32);
        signal(before, 9);
        wait_for("its death", || is_zombie(before));
        // A child that rewrites the file ends when it sees that, and takes its own file along.
        wait_for("the end of its children", || {
            children.iter().all(|child| process::stat(*child).is_none_or(|stat| stat.has_ended()))
        });
        let copy = self.at("copy");
        let _ = std::fs::remove_dir_all(&copy);
        let copied = Command::new("cp").arg("-a").arg(&current).arg(&copy).status().expect("cp");
        assert!(copied.success());
        // The twin has much to apply when the takeover begins.
        signal(self.supervisor(), 18);
        std::thread::sleep(Duration::from_millis(100));
        signal(twin, 18);
        wait_for("another server", || {
            self.status()["primary"].as_i64().is_some_and(|now| now != i64::from(before))
        });
        self.loaded_from(&copy)
    }

    fn loaded_from(&self, dir: &Path) -> Contents {
        let socket = self.at("c");
        let words = self.server(dir, &socket);
        let mut server =
            Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).spawn().expect("a server");
        let mut redis = None;
        wait_for("an ordinary server", || {
            redis = Redis::open(&socket).filter_map_answering();
            redis.is_some()
        });
        let found = contents(&mut redis.expect("connected"));
        server.kill().and_then(|()| server.wait()).expect("ended");
        found
    }

    /// The contents of the server that serves.
    pub fn contents(&self) -> Contents {
        contents(&mut self.redis())
    }

    /// What a server says when it is started on its directory without us.
    pub fn start_on_the_former_directory(&self) -> String {
        let words = self.server(&self.at("home"), &self.at("c"));
        let ran = Command::new(&words[0]).args(&words[1..]).output().expect("it runs");
        assert!(!ran.status.success());
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// In order. True if all ended well, and nothing is left.
    pub fn stop(&mut self) -> bool {
        signal(self.supervisor(), 15);
        self.ends()
    }

    pub fn ends(&mut self) -> bool {
        let (primary, twin) = (self.status()["primary"].clone(), self.status()["twin"].clone());
        let ended = self.supervisor.take().expect("it runs").wait().expect("waited for");
        let is_gone = |process: &Value| !Path::new(&format!("/proc/{process}")).exists();
        ended.success() && is_gone(&primary) && is_gone(&twin)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // A test that failed leaves nobody behind.
        if self.supervisor.is_some() {
            let status = self.status();
            self.kill_supervisor();
            let both = ["primary", "twin"].into_iter().filter_map(|name| status[name].as_i64());
            both.for_each(|process| signal(process as i32, 9));
        }
    }
}

trait Answering {
    fn filter_map_answering(self) -> Option<Redis>;
}

impl Answering for Option<Redis> {
    /// One that loads does not count; one that wants a password does.
    fn filter_map_answering(self) -> Option<Redis> {
        let mut redis = self?;
        let answer = redis.ask("PING")?;
        let loads = matches!(&answer, Reply::Error(text) if text.starts_with("LOADING") || text.starts_with("MASTERDOWN"));
        (!loads).then_some(redis)
    }
}

/// What a server has in every database: keys with their digests. Those that are about to expire are waited for.
fn contents(redis: &mut Redis) -> Contents {
    let mut found = Contents::new();
    for db in 0..3 {
        redis.call(&["SELECT", &db.to_string()]).expect("an answer");
        wait_for("short-lived keys to expire", || {
            redis.call(&["KEYS", "short:*"]) == Some(Reply::List(Vec::new()))
        });
        let Some(Reply::List(keys)) = redis.call(&["KEYS", "*"]) else { panic!("no keys") };
        for key in keys {
            let Reply::Text(key) = key else { panic!("{key:?}") };
            let digest = redis.call(&["DEBUG", "DIGEST-VALUE", &key]).expect("an answer");
            let expires = redis.call(&["PEXPIRETIME", &key]).expect("an answer");
            found.insert(format!("{db} {key}"), (digest, expires));
        }
    }
    found
}

fn is_zombie(process: i32) -> bool {
    process::stat(process as u32).is_some_and(|stat| stat.state == 'Z')
}

fn signal(process: i32, signal: i32) {
    let process = nix::unistd::Pid::from_raw(process);
    let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::try_from(signal).expect("a signal"));
}
