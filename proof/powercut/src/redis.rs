//! Redis in a machine: installed, put under load, recovered, checked.
//!
//! `appendfsync always`: a reply comes after the append-only file's fsync. Beside the ledger's clients the log is
//! rewritten over and over: a child writes a new base, the server begins a new part and replaces the manifest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seawall_load::ledger::Verdict;
use seawall_load::redis::Connection;

use crate::boot::{Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, guard_problem, is_guard, judge};
use crate::outside::DATA;
use crate::place::{Place, Preset};
use crate::plan::Side;
use crate::program::{self, Running};
use crate::user;

const USER: &str = "redis";
const SOCKET: &str = "/tmp/redis/socket";
const SERVER: &str = "/usr/bin/redis-server";
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than any round.
const FOREVER: &str = "600";
/// Between two rewrites, in seconds: some happen in every round.
const REWRITE_EVERY: &str = "0.1";

const NAME: &str = "redis";

/// On the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join(NAME)
}

fn manifest() -> PathBuf {
    directory().join("appendonlydir/appendonly.aof.manifest")
}

/// An empty database: with its first log, so that a cut takes what is in the log and not the log.
pub fn install(boot: &Boot) -> Result<()> {
    fs::create_dir_all(directory()).context("create Redis's directory")?;
    user::give(USER, &directory())?;
    Server::start(boot, Side::Synced)?.stop(boot)
}

/// Executes transactions until the power fails.
pub fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = Server::start(boot, boot.plan.side)?;
    let mut commits = Command::new(boot.program("seawall-load"));
    commits.args(["ledger-redis", "--seconds", FOREVER, "--socket", SOCKET]);
    commits.arg("--ledger").arg(boot.plan.ledger());
    let mut loads = vec![program::start(commits, "the ledger load")?];
    // A rewrite syncs whatever the settings: a side that must lose goes without.
    if !boot.plan.side.must_lose() {
        let mut rewrite = Command::new("redis-cli");
        rewrite.args(["-s", SOCKET, "-r", "-1", "-i", REWRITE_EVERY, "BGREWRITEAOF"]);
        loads.push(program::start(rewrite, "the rewrites")?);
    }
    until_the_cut(boot, before, || {
        server.process.must_run()?;
        loads.iter_mut().try_for_each(Running::must_run)
    })
}

/// Recovers, starts, checks, stops, and checks the log at rest.
pub fn check(boot: &Boot) -> Result<Checked> {
    let bare = || {
        make_sockets()?;
        let mut bare = user::command(USER, SERVER)?;
        bare.args(settings(boot, Side::Synced, &directory()));
        let ended = program::finish(bare, "a bare start behind the guard", Duration::from_secs(20));
        Ok(guard_problem(ended, "run-seawall-recover"))
    };
    judge(
        boot,
        &directory(),
        || is_guard(&manifest()),
        bare,
        |side, checked| {
            let server = Server::start(boot, side)?;
            checked.verdict = verdict(boot)?;
            server.stop(boot)?;
            checked.problems.extend(log_problem()?);
            Ok(())
        },
    )
}

fn verdict(boot: &Boot) -> Result<Verdict> {
    let mut check = Command::new(boot.program("seawall-load"));
    check.args(["check-redis", "--socket", SOCKET, "--ledger"]).arg(boot.plan.ledger());
    judge::verdict(check)
}

/// redis-check-aof on all parts of the log, which lets redis-check-rdb look at a base that is one.
fn log_problem() -> Result<Option<String>> {
    let mut check = user::command(USER, "redis-check-aof")?;
    check.arg(manifest());
    let ended = program::finish(check, "redis-check-aof", LIMIT)?;
    Ok((!ended.status.success()).then(|| format!("redis-check-aof: {ended}")))
}

fn settings(boot: &Boot, side: Side, data: &Path) -> Vec<String> {
    let fsync = if side == Side::Unsafe { "no" } else { "always" };
    let mut all = ["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", fsync]
        .map(str::to_owned)
        .to_vec();
    all.extend(["--dir".to_owned(), data.display().to_string()]);
    all.extend(["--unixsocket".to_owned(), SOCKET.to_owned()]);
    for (name, value) in &boot.plan.settings {
        all.extend([format!("--{name}"), value.clone()]);
    }
    all
}

/// The directory of the socket, in the machine's own memory.
fn make_sockets() -> Result<()> {
    let sockets = Path::new(SOCKET).parent().context("a socket is in a directory")?;
    if !sockets.exists() {
        fs::create_dir(sockets)?;
        user::give(USER, sockets)?;
    }
    Ok(())
}

/// A running server.
struct Server {
    process: Running,
    place: Place,
}

impl Server {
    /// Starts it and waits until it answers.
    fn start(boot: &Boot, side: Side) -> Result<Self> {
        make_sockets()?;
        let place = Place::of(boot, side, NAME, "redis")?;
        let mut command = match place.seawall_run(boot, side, Preset::Found) {
            Some(mut run) => {
                run.args(["--user", USER, "--", SERVER]);
                run
            }
            None => user::command(USER, SERVER)?,
        };
        command.args(settings(boot, side, place.path()));
        let mut server = Server { process: program::start(command, "Redis")?, place };
        let deadline = Instant::now() + LIMIT;
        let answers = || Connection::open(Path::new(SOCKET)).and_then(|mut redis| redis.call(&["PING"]));
        while answers().is_err() {
            server.process.must_run()?;
            ensure!(Instant::now() < deadline, "Redis does not get ready: {}", server.process.said());
            sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Shuts down in order.
    fn stop(self, boot: &Boot) -> Result<()> {
        // `seawall run` passes it on.
        kill(Pid::from_raw(self.process.pid()), Signal::SIGTERM).context("ask Redis to end")?;
        let ended = self.process.wait(LIMIT)?;
        ensure!(ended.status.success(), "Redis ended with {ended}");
        self.place.leave(boot)
    }
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    user::named(USER)?;
    ensure!(Path::new(SERVER).is_file(), "{SERVER} is not installed: make deps");
    Ok(())
}
