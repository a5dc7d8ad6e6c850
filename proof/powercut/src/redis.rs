//! Redis in a machine: installed, put under load, recovered, checked.
//!
//! `appendfsync always`: a reply comes after the append-only file's fsync. Beside the ledger's clients the log is
//! rewritten over and over: a child writes a new base, the server begins a new part and replaces the manifest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use seawall_load::redis::Connection;

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, guard_problem, is_guard, judge};
use crate::outside::DATA;
use crate::place::{Place, Preset};
use crate::plan::Side;
use crate::program::{self, FOREVER, LIMIT};
use crate::server::{self, Server};
use crate::user;

const USER: &str = "redis";
const SOCKET: &str = "/tmp/redis/socket";
const SERVER: &str = "/usr/bin/redis-server";
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

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty database: with its first log, so that a cut takes what is in the log and not the log.
fn install(boot: &Boot) -> Result<()> {
    user::directory(USER, &directory())?;
    start(boot, Side::Synced)?.stop(boot, Signal::SIGTERM)
}

/// Executes transactions until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = start(boot, boot.plan.side)?;
    let commits = boot.load(&["ledger-redis", "--seconds", FOREVER, "--socket", SOCKET]);
    let mut loads = vec![program::start(commits, "the ledger load")?];
    // A rewrite syncs whatever the settings: a side that must lose goes without.
    if !boot.plan.side.must_lose() {
        let mut rewrite = Command::new("redis-cli");
        rewrite.args(["-s", SOCKET, "-r", "-1", "-i", REWRITE_EVERY, "BGREWRITEAOF"]);
        loads.push(program::start(rewrite, "the rewrites")?);
    }
    until_the_cut(boot, before, || server.must_serve(&mut loads))
}

/// Recovers, starts, checks, stops, and checks the log at rest.
fn check(boot: &Boot) -> Result<Checked> {
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
        |side, problems| {
            let server = start(boot, side)?;
            let verdict = judge::verdict(boot.load(&["check-redis", "--socket", SOCKET]))?;
            server.stop(boot, Signal::SIGTERM)?;
            problems.extend(log_problem()?);
            Ok(verdict)
        },
    )
}

/// redis-check-aof on all parts of the log, which lets redis-check-rdb look at a base that is one.
fn log_problem() -> Result<Option<String>> {
    let mut check = user::command(USER, "redis-check-aof")?;
    check.arg(manifest());
    Ok(program::finish(check, "redis-check-aof", LIMIT)?.problem("redis-check-aof"))
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
    user::directory(USER, Path::new(SOCKET).parent().context("the socket has no directory")?)
}

/// Starts the server and waits until it answers.
fn start(boot: &Boot, side: Side) -> Result<Server> {
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
    let answers = || Connection::open(Path::new(SOCKET)).and_then(|mut redis| redis.call(&["PING"]));
    Server::start(place, command, "Redis", || answers().is_ok())
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    server::installed(USER, SERVER)
}
