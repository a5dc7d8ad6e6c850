//! A PostgreSQL whose disk goes from host to host, and that runs under Seawall wherever that is.
//!
//! A host that is lost keeps what it had: its page cache, and a disk that nobody else sees any more. The next one gets a copy
//! of the disk, as the volume of a cloud is detached and attached. So what was acknowledged and not flushed is in the log alone.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::disk::LoopDevice;
use super::hosts::Host;
use super::postgres::copy_seawall;
use super::{Said, has, server, wait_for};

/// The pool's file, on each host's own disk.
const POOL: &str = "/run/db/log";
const RUN: &str = "/run/db";
const USER: &str = "postgres";
const BYTES: u64 = 2 << 30;
/// Small ones: they are made, recycled and renamed all the time.
const SEGMENT: &str = "--wal-segsize=1";
/// A start takes no longer, with a recovery.
const LONGEST: Duration = Duration::from_secs(60);

/// The database, its disk, and where its clients meet it.
pub struct Database {
    bin: PathBuf,
    /// All hosts see it: programs, sockets, and where the disk is mounted.
    shared: PathBuf,
    disk: LoopDevice,
    keepers: Vec<String>,
}

impl Database {
    /// Nothing is on its disk yet. `None`, and a word about it, where it cannot be had.
    pub fn new(shared: &Path, keepers: &[&str]) -> Option<Self> {
        let found = server::programs().filter(|_| server::user().is_some() && has("mkfs.ext4"));
        let Some((bin, disk)) = found.zip(LoopDevice::in_memory(BYTES)) else {
            eprintln!("skipped: PostgreSQL, mkfs.ext4 and loop devices are needed");
            return None;
        };
        let made = Command::new("mkfs.ext4").args(["-q", "-F", disk.path()]).status();
        assert!(made.expect("mkfs.ext4 starts").success());
        fs::set_permissions(shared, Permissions::from_mode(0o755)).expect("it is ours");
        copy_seawall(shared);
        let database = Self {
            bin,
            shared: shared.to_owned(),
            disk,
            keepers: keepers.iter().map(|k| (*k).into()).collect(),
        };
        fs::create_dir(database.volume()).expect("made");
        Some(database)
    }

    fn volume(&self) -> PathBuf {
        self.shared.join("volume")
    }

    pub fn data(&self) -> String {
        self.volume().join("pg").display().to_string()
    }

    fn sockets(&self, host: &Host) -> PathBuf {
        self.shared.join(format!("sockets-{}", host.name))
    }

    /// A command on a host, as the database's user.
    fn command(&self, host: &Host, program: &[&str]) -> Command {
        let user = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups"];
        let mut command = host.command("/", &[&user, program].concat());
        // Not /tmp, which all hosts have in common here.
        command.env("XDG_RUNTIME_DIR", RUN);
        command
    }

    /// `seawall` there, as that user.
    fn seawall(&self, host: &Host, arguments: &[&str]) -> Command {
        let program = self.shared.join("seawall").display().to_string();
        self.command(host, &[&[program.as_str()], arguments].concat())
    }

    /// `--keeper …`, for all of them.
    fn keepers(&self) -> Vec<&str> {
        self.keepers.iter().flat_map(|keeper| ["--keeper", keeper]).collect()
    }

    /// Its disk is this host's.
    pub fn attach(&self, host: &Host) {
        let volume = self.volume().display().to_string();
        // Nothing is written back that nobody asks for.
        host.with_all_rights(&["mount", "-o", "commit=600", self.disk.path(), &volume]).succeeds();
        let data = self.data();
        host.with_all_rights(&["install", "-d", "-o", USER, "-g", USER, "-m", "700", &data, RUN]).succeeds();
    }

    /// The disk is another one from now on, with what was flushed. The former host, which is stopped, keeps this one.
    pub fn is_taken_away(&mut self) -> LoopDevice {
        let copy = self.disk.copy();
        std::mem::replace(&mut self.disk, copy)
    }

    /// A former host has no process any more, and gives up what it kept.
    pub fn detach(&self, host: &Host, kept: LoopDevice) {
        let volume = self.volume().display().to_string();
        wait_for("a disk that is not used", || host.with_all_rights(&["umount", &volume]).code == Some(0));
        drop(kept);
    }

    /// Makes it on this host.
    pub fn install(&self, host: &Host) {
        let initdb = self.bin.join("initdb").display().to_string();
        let mut initdb =
            self.command(host, &[&initdb, "--data-checksums", "--auth=trust", SEGMENT, "-D", &self.data()]);
        Said::from(initdb.output().expect("initdb starts")).succeeds();
    }

    /// Takes its log over to this host, where its disk is.
    pub fn take_over(&self, host: &Host) -> Said {
        let data = self.data();
        let words = [&["takeover", POOL, "--data", &data, "--json"][..], &self.keepers()].concat();
        self.seawall(host, &words).output().expect("it runs").into()
    }

    /// What `seawall status` says there.
    pub fn status(&self, host: &Host) -> serde_json::Value {
        let said = self.seawall(host, &["status", "--json", "--pool", POOL]).output().expect("it runs");
        serde_json::from_slice(&said.stdout).unwrap_or_default()
    }

    /// Starts it on this host, and waits until it answers.
    pub fn start(&self, host: &Host) -> Child {
        let (data, sockets) = (self.data(), self.sockets(host));
        // Process numbers of another host, or of processes that are gone: here they may be anybody's.
        host.with_all_rights(&["rm", "-f", &format!("{data}/postmaster.pid")]).succeeds();
        let _ = fs::remove_dir_all(&sockets);
        host.with_all_rights(&["install", "-d", "-o", USER, "-g", USER, &sockets.display().to_string()])
            .succeeds();
        let postgres = self.bin.join("postgres").display().to_string();
        let run = ["run", "--pool", POOL, "--size", "16M", "--acks", "2"];
        let server = ["--", &postgres, "-D", &data, "-k", &sockets.display().to_string()].map(str::to_owned);
        let settings =
            ["listen_addresses=", "shared_buffers=16MB", "min_wal_size=2MB", "checkpoint_timeout=30s"];
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let words: Vec<&str> = run
            .into_iter()
            .chain(self.keepers())
            .chain(server.iter().map(String::as_str))
            .chain(settings)
            .collect();
        let said = File::create(self.said(host)).expect("a file");
        let seawall = self.shared.join("seawall").display().to_string();
        // A shell of the test's own waits for it: a pause of the host does not stop that one.
        let waits = ["sh", "-c", "\"$@\" & wait $!", "sh", &seawall];
        let mut run = self.command(host, &[&waits[..], &words].concat());
        let mut run = run.stdout(Stdio::null()).stderr(said).spawn().expect("seawall starts");
        let begin = Instant::now();
        while self.sql(host, "SELECT 1").is_none() {
            let (ended, took) = (run.try_wait().expect("a child"), begin.elapsed());
            assert!(ended.is_none() && took < LONGEST, "no server after {took:?}: {}", self.last_words(host));
            std::thread::sleep(Duration::from_millis(50));
        }
        run
    }

    fn said(&self, host: &Host) -> PathBuf {
        self.shared.join(format!("said-{}", host.name))
    }

    /// What it, `seawall run` and the daemon said on this host, and what its processes wait for.
    pub fn last_words(&self, host: &Host) -> String {
        let said = fs::read_to_string(self.said(host)).unwrap_or_default();
        let daemon = host.run(&["sh", "-c", &format!("tail -n 30 {RUN}/seawall/*.log")]).out;
        let waits = "SELECT pid, state, wait_event, left(query, 40) FROM pg_stat_activity";
        let waits = self.sql(host, waits).unwrap_or_default().join("\n");
        [said, daemon, waits].join("\n")
    }

    /// A program of its clients, outside of all hosts, for the server on this one.
    pub fn client(&self, host: &Host, program: &str) -> Command {
        let mut client = Command::new(self.bin.join(program));
        client.env("PGHOST", self.sockets(host)).env("PGUSER", USER).env("PGDATABASE", "postgres");
        client.env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null());
        client
    }

    /// Runs a statement there: the lines of its answer.
    pub fn sql(&self, host: &Host, sql: &str) -> Option<Vec<String>> {
        let mut psql = self.client(host, "psql");
        let said = psql.args(["-X", "-q", "-A", "-t", "-c", sql]).output().expect("psql");
        let lines = || String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect();
        said.status.success().then(lines)
    }

    /// The server's first process, by its number there.
    pub fn postmaster(&self, host: &Host) -> u64 {
        let text = host.run(&["cat", &format!("{}/postmaster.pid", self.data())]).out;
        text.lines().next().and_then(|pid| pid.parse().ok()).expect("a pid")
    }

    /// One that serves a client, by its number there.
    pub fn backend(&self, host: &Host) -> u64 {
        let sql =
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY random() LIMIT 1";
        let found = self.sql(host, sql).expect("it answers");
        found.first().and_then(|pid| pid.parse().ok()).expect("pgbench is connected")
    }

    /// What its own checkers find: nothing.
    pub fn check(&self, host: &Host) {
        let mut check = self.client(host, "pg_amcheck");
        let said = check.args(["--heapallindexed", "--no-dependent-toast"]).output().expect("pg_amcheck");
        Said::from(said).succeeds();
    }
}
