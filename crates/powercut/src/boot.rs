//! A machine from the inside: what its first process does from power-on to shutdown.
//!
//! Input: a [`Boot`] on the command line. Output: a line of JSON for each [`Said`] on standard output.
//! What the machine has: memory of its own (`/tmp`, `/dev/shm`), which a power cut takes; the disk's file
//! system below [`DATA`]; and what stands beside the machine and survives it, below [`BASE`]: the log's
//! medium, the ledger, the programs and what they print.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use seawall_load::ledger::Verdict;
use serde::{Deserialize, Serialize};

use crate::cell;
use crate::plan::{Database, Plan, Trouble};
use crate::program::{self, Ended};
use crate::rng::Rng;
use crate::writeback::Writeback;
use crate::{balloon, etcd, mariadb, medium, murder, postgres, redis, sqlite, store};

/// Everything outside the machine, in a tmpfs of the campaign's own.
pub const BASE: &str = "/run/seawall-powercut";
/// Where the disk's file system is mounted.
pub const DATA: &str = "/run/seawall-powercut/data";

/// What a machine is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Make the database, without Seawall, and shut down in order.
    Install,
    /// Run the load until the power fails.
    Load,
    /// Recover, check everything, shut down in order.
    Check,
}

/// One start of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Boot {
    /// The disk.
    pub disk: PathBuf,
    /// What random/boot_id says.
    pub boot_id: String,
    /// What to do.
    pub task: Task,
    /// With what.
    pub plan: Plan,
}

/// What a check found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    /// The ledger against the database.
    pub verdict: Verdict,
    /// Everything else that was wrong.
    pub problems: Vec<String>,
    /// Records replayed from the log, where that was told.
    pub replayed: Option<u64>,
}

/// What the machine tells the campaign.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// The first commit of this boot was acknowledged.
    Working,
    /// Checked, and shut down.
    Checked(Checked),
    /// Installed, and shut down.
    Installed,
    /// It cannot go on, and why.
    Failed(String),
}

impl Boot {
    /// A program of ours.
    pub fn program(&self, name: &str) -> PathBuf {
        Path::new(BASE).join("bin").join(name)
    }

    /// `seawall WORD --pool POOL`.
    pub fn seawall(&self, word: &str) -> Command {
        let mut command = Command::new(self.program("seawall"));
        command.arg(word).arg("--pool").arg(self.plan.pool());
        command
    }

    /// `seawall run`, up to its `--`.
    pub fn seawall_run(&self) -> Command {
        let mut command = Command::new(self.program("seawall"));
        command.args(["run", "--quiet"]);
        self.with_log(&mut command);
        command
    }
}

/// The life of a machine, from its first process's point of view.
pub fn live(boot: &Boot) -> Result<()> {
    let said = match start(boot).and_then(|()| work(boot)) {
        Ok(said) => said,
        Err(error) => Said::Failed(format!("{error:#}")),
    };
    say(&said)
}

/// Tells the campaign.
pub fn say(said: &Said) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(said)?)?;
    Ok(out.flush()?)
}

/// Memory, identity, disk.
fn start(boot: &Boot) -> Result<()> {
    cell::memory(Path::new("/tmp"), 0o1777)?;
    cell::memory(Path::new("/dev/shm"), 0o1777)?;
    let boot_id = Path::new("/tmp/boot_id");
    fs::write(boot_id, format!("{}\n", boot.boot_id))?;
    mount(Some(boot_id), "/proc/sys/kernel/random/boot_id", None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .context("give the machine its boot id")?;
    // As boots do: what ext4 noted of an error before the cut is repaired, or it soon mounts itself read-only.
    check(boot, "-p")?;
    if attach(boot).is_err() {
        // A cut may tear ext4's own superblock, which is two sectors long. There are copies of it.
        let repaired = check(boot, "-y")?;
        attach(boot).with_context(|| format!("after e2fsck: {repaired}"))?;
    }
    balloon::deflate()
}

/// The file system's own check, which replays its journal first. What it could not do the mount will say.
fn check(boot: &Boot, how: &str) -> Result<Ended> {
    let mut check = command("e2fsck", &[how]);
    check.arg(&boot.disk);
    program::finish(check, "e2fsck", Duration::from_secs(60))
}

fn attach(boot: &Boot) -> Result<()> {
    let mut attach = Command::new("mount");
    attach.args(["-t", "ext4", "-o", "loop,errors=remount-ro"]).arg(&boot.disk).arg(DATA);
    program::run(attach, "mount the disk", Duration::from_secs(60)).map(drop)
}

/// What a machine does with a database.
struct Acts {
    install: fn(&Boot) -> Result<()>,
    load: fn(&Boot) -> Result<()>,
    check: fn(&Boot) -> Result<Checked>,
}

fn acts(database: Database) -> Acts {
    match database {
        Database::Postgres => {
            Acts { install: postgres::install, load: postgres::load, check: postgres::check }
        }
        Database::Sqlite => Acts { install: sqlite::install, load: sqlite::load, check: sqlite::check },
        Database::Mariadb => Acts { install: mariadb::install, load: mariadb::load, check: mariadb::check },
        Database::Redis => Acts { install: redis::install, load: redis::load, check: redis::check },
        Database::Etcd => Acts { install: etcd::install, load: etcd::load, check: etcd::check },
        Database::Rocksdb | Database::Lmdb => {
            Acts { install: store::install, load: store::load, check: store::check }
        }
    }
}

fn work(boot: &Boot) -> Result<Said> {
    let acts = acts(boot.plan.database);
    let said = match boot.task {
        Task::Install => {
            medium::make_place()?;
            (acts.install)(boot).map(|()| Said::Installed)?
        }
        Task::Load => {
            (acts.load)(boot)?;
            Said::Failed("the load ended before the power did".to_owned())
        }
        Task::Check => {
            let mut checked = (acts.check)(boot)?;
            if boot.plan.side.is_logged() {
                checked.problems.extend(pool_problems(boot)?);
            }
            Said::Checked(checked)
        }
    };
    if boot.task != Task::Load {
        program::run(command("umount", &[DATA]), "unmount the disk", Duration::from_secs(60))?;
    }
    Ok(said)
}

/// After an orderly end nothing of Seawall's may be left to do.
fn pool_problems(boot: &Boot) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct State {
        live: u64,
    }
    if !boot.plan.pool().exists() {
        return Ok(Vec::new());
    }
    let mut verify = Command::new(boot.program("seawall"));
    verify.arg("verify").arg(boot.plan.pool()).arg("--json");
    let verified = program::finish(verify, "seawall verify", Duration::from_secs(60))?;
    let state = serde_json::from_str::<State>(&verified.stdout);
    let clean = verified.status.success() && state.is_ok_and(|state| state.live == 0);
    Ok(if clean { Vec::new() } else { vec![format!("the pool after an orderly end: {verified}")] })
}

/// Waits until the ledger has grown past what it held before, then says so, and waits for the power cut.
///
/// `check` looks whether the load still runs. It may end when something goes wrong on purpose: a database
/// that stops is no loss, one that goes on and forgets is.
///
/// # Errors
/// If the load ends for no such reason.
pub fn until_the_cut(boot: &Boot, before: u64, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    while ledger_length(boot) <= before {
        check()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&Said::Working)?;
    std::thread::sleep(boot.plan.cut_after / 2);
    match boot.plan.trouble {
        Trouble::Full => balloon::inflate()?,
        Trouble::DaemonKilled => murder::of_daemon()?,
        Trouble::DatabaseKilled => murder::of_database(&mut Rng::new(boot.plan.seed))?,
        Trouble::MountKilled => murder::of_mount()?,
        Trouble::None | Trouble::WriteErrors | Trouble::FlushErrors => {}
    }
    let mut writeback = Writeback::new(boot.plan.seed);
    loop {
        if boot.plan.trouble == Trouble::None {
            check()?;
        }
        if boot.plan.writeback {
            writeback.stir();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where a daemon of root's has its socket: in the machine's own memory.
///
/// # Errors
/// If it cannot be made.
pub fn session() -> Result<&'static Path> {
    let session = Path::new("/tmp/session");
    match fs::DirBuilder::new().mode(0o700).create(session) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).context("make a session"),
        _ => Ok(session),
    }
}

/// Bytes in the ledger.
pub fn ledger_length(boot: &Boot) -> u64 {
    fs::metadata(boot.plan.ledger()).map_or(0, |found| found.len())
}

/// A command of a few words.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
