//! etcd in a machine: a cluster of one member, installed, put under load, recovered, checked.
//!
//! No preload can serve it: with Seawall it is on a mount, whatever the front of the others. A small number of
//! transactions between two snapshots, so that a short load writes several, and large values, so that the log's
//! segments (64 MB each) change.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use seawall_load::etcd::Connection;

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, guard_problem, is_guard, judge};
use crate::outside::DATA;
use crate::place::Place;
use crate::plan::Side;
use crate::program::{self, FOREVER, LIMIT};
use crate::server::Server;

const NAME: &str = "etcd";
/// Each machine is alone with its network's ports only if nobody else uses them: not the usual ones.
const CLIENTS: &str = "127.0.0.1:23790";
const PEERS: &str = "127.0.0.1:23800";

fn directory() -> PathBuf {
    Path::new(DATA).join(NAME)
}

/// What a guard stands in for.
fn store() -> PathBuf {
    directory().join("member/snap/db")
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty member.
fn install(boot: &Boot) -> Result<()> {
    std::fs::create_dir_all(directory()).context("cannot create etcd's directory")?;
    // It refuses one that others may read.
    std::fs::set_permissions(directory(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    start(boot, Side::Synced)?.stop_by(boot, Signal::SIGTERM).map(drop)
}

/// Puts until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = start(boot, boot.plan.side)?;
    let puts = ["ledger-etcd", "--connect", CLIENTS, "--seconds", FOREVER, "--bytes", "8192"];
    let mut loads = [program::start(boot.load(&puts), "the ledger load")?];
    until_the_cut(boot, before, || server.must_serve(&mut loads))
}

/// Recovers, starts, checks, stops, and checks the store at rest.
fn check(boot: &Boot) -> Result<Checked> {
    let bare = || {
        let ended =
            program::finish(command(&directory()), "a bare start behind the guard", Duration::from_secs(20));
        Ok(guard_problem(ended, "invalid database"))
    };
    judge(
        boot,
        &directory(),
        || is_guard(&store()),
        bare,
        |side, problems| {
            let server = start(boot, side)?;
            let verdict = judge::verdict(boot.load(&["check-etcd", "--connect", CLIENTS]))?;
            server.stop_by(boot, Signal::SIGTERM)?;
            problems.extend(store_problem()?);
            Ok(verdict)
        },
    )
}

/// etcdctl's look at the store at rest.
fn store_problem() -> Result<Option<String>> {
    let mut status = Command::new("etcdctl");
    status.env("ETCDCTL_API", "3").args(["snapshot", "status"]).arg(store());
    Ok(program::finish(status, "etcdctl snapshot status", LIMIT)?.problem("etcdctl snapshot status"))
}

fn command(data: &Path) -> Command {
    let mut command = Command::new("etcd");
    command.args(["--name=machine", "--snapshot-count=200", "--log-level=error"]);
    for (role, address) in [
        ("listen-client-urls", CLIENTS),
        ("advertise-client-urls", CLIENTS),
        ("listen-peer-urls", PEERS),
        ("initial-advertise-peer-urls", PEERS),
        ("initial-cluster=machine", PEERS),
    ] {
        command.arg(format!("--{role}=http://{address}"));
    }
    command.arg(format!("--data-dir={}", data.display())).current_dir("/tmp");
    command.env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH);
    command
}

/// Starts the member and waits until it serves.
fn start(boot: &Boot, side: Side) -> Result<Server> {
    let place = Place::of(boot, side, NAME, NAME)?;
    let command = command(place.path());
    let answers = || Connection::open(CLIENTS).and_then(|mut etcd| etcd.count("nothing/"));
    Server::start(place, command, "etcd", || answers().is_ok())
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    ["etcd", "etcdctl"].iter().try_for_each(|program| program::installed(program, "--help"))
}
