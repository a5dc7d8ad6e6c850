//! etcd in a machine: a cluster of one member, installed, put under load, recovered, checked.
//!
//! No preload can serve it: with Seawall it is on a mount, whatever the front of the others. A small number of
//! transactions between two snapshots, so that a short load writes several, and large values, so that the log's
//! segments (64 MB each) change.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seawall_load::etcd::Connection;
use seawall_load::ledger::Verdict;

use crate::boot::{Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, guard_problem, is_guard, judge};
use crate::outside::DATA;
use crate::place::Place;
use crate::plan::Side;
use crate::program::{self, Running};

const NAME: &str = "etcd";
/// Each machine is alone with its network's ports only if nobody else uses them: not the usual ones.
const CLIENTS: &str = "127.0.0.1:23790";
const PEERS: &str = "127.0.0.1:23800";
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than any round.
const FOREVER: &str = "600";

fn directory() -> PathBuf {
    Path::new(DATA).join(NAME)
}

/// What a guard stands in for.
fn store() -> PathBuf {
    directory().join("member/snap/db")
}

/// An empty member.
pub fn install(boot: &Boot) -> Result<()> {
    std::fs::create_dir_all(directory()).context("create etcd's directory")?;
    // It refuses one that others may read.
    std::fs::set_permissions(directory(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Server::start(boot, Side::Synced)?.stop(boot)
}

/// Puts until the power fails.
pub fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = Server::start(boot, boot.plan.side)?;
    let mut puts = Command::new(boot.program("seawall-load"));
    puts.args(["ledger-etcd", "--connect", CLIENTS, "--seconds", FOREVER, "--bytes", "8192", "--ledger"]);
    puts.arg(boot.plan.ledger());
    let mut puts = program::start(puts, "the ledger load")?;
    until_the_cut(boot, before, || {
        server.process.must_run()?;
        puts.must_run()
    })
}

/// Recovers, starts, checks, stops, and checks the store at rest.
pub fn check(boot: &Boot) -> Result<Checked> {
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
        |side, checked| {
            let server = Server::start(boot, side)?;
            checked.verdict = verdict(boot)?;
            server.stop(boot)?;
            checked.problems.extend(store_problem()?);
            Ok(())
        },
    )
}

/// etcdctl's look at the store at rest.
fn store_problem() -> Result<Option<String>> {
    let mut status = Command::new("etcdctl");
    status.env("ETCDCTL_API", "3").args(["snapshot", "status"]).arg(store());
    let ended = program::finish(status, "etcdctl snapshot status", LIMIT)?;
    Ok((!ended.status.success()).then(|| format!("etcdctl snapshot status: {ended}")))
}

fn verdict(boot: &Boot) -> Result<Verdict> {
    let mut check = Command::new(boot.program("seawall-load"));
    check.args(["check-etcd", "--connect", CLIENTS, "--ledger"]).arg(boot.plan.ledger());
    judge::verdict(check)
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

/// A running member.
struct Server {
    process: Running,
    place: Place,
}

impl Server {
    /// Starts it and waits until it serves.
    fn start(boot: &Boot, side: Side) -> Result<Self> {
        let place = Place::of(boot, side, NAME, NAME)?;
        let mut server = Server { process: program::start(command(place.path()), "etcd")?, place };
        let deadline = Instant::now() + LIMIT;
        let answers = || Connection::open(CLIENTS).and_then(|mut etcd| etcd.count("nothing/"));
        while answers().is_err() {
            server.process.must_run()?;
            ensure!(Instant::now() < deadline, "etcd does not get ready: {}", server.process.said());
            sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Shuts down in order.
    fn stop(self, boot: &Boot) -> Result<()> {
        kill(Pid::from_raw(self.process.pid()), Signal::SIGTERM).context("ask etcd to end")?;
        // It ends itself by that signal when everything is closed.
        self.process.wait(LIMIT)?;
        self.place.leave(boot)
    }
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    for program in ["etcd", "etcdctl"] {
        let found = Command::new(program).arg("--help").output();
        ensure!(found.is_ok(), "{program} is not installed: make deps");
    }
    Ok(())
}
