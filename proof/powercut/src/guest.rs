//! A database in a virtual machine, whose disk this machine serves: installed, put under load, recovered, checked.
//!
//! The machine whose power is cut is the host here: the guest's image is on its disk, `seawall disk` and QEMU are its
//! processes. The guest knows nothing of Seawall; it has a bare database, a disk, and ports to files beside the host: the
//! ledger, and what it has to tell ([`seawall_vmtest`] has its kernel, its file system and its session). The sides without a
//! log give the guest the same image by QEMU's own virtio-blk, with its flushes and without.

mod disk;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};
use seawall_vmtest::boot::{Boot as Start, Data, ledgers};
use seawall_vmtest::guest::found;
use seawall_vmtest::machine::Machine;
use seawall_vmtest::parts::{More, Parts};
use seawall_vmtest::tool;

use crate::boot::{Acts, Boot, Checked, Task};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{is_guard, judge};
use crate::murder;
use crate::outside::{BASE, DATA};
use crate::plan::{Database, Side, Trouble};
use crate::program::{self, command};
use disk::{Disk, SOCKET};

/// Longer than the database in a guest has ever taken for any step.
const LIMIT: Duration = Duration::from_secs(400);
const IMAGE_BYTES: u64 = 320 << 20;
/// What stands where the image was while the log has more is at most a disk of two sectors.
const GUARD_BYTES: u64 = 1024;
/// Some twenty commits in the ledger.
const LEDGER_BYTES: u64 = 150;

/// The image's directory on the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join("images")
}

fn image() -> PathBuf {
    directory().join("guest.img")
}

/// What guests are made of, beside the machines, and what they print.
fn parts() -> PathBuf {
    Path::new(BASE).join("guest")
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// A guest's file system, with the database in it.
fn install(boot: &Boot) -> Result<()> {
    fs::create_dir(directory()).context("cannot create the image's directory")?;
    File::create(image()).and_then(|file| file.set_len(IMAGE_BYTES)).context("cannot create the image")?;
    let mut guest = Guest::start(boot, Side::Unsafe)?;
    guest.end()
}

/// Commits until the power fails. What is killed before the cut is killed once more, earlier: a guest that does not go on would
/// look like one that is cut.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut guest = Guest::start(boot, boot.plan.side)?;
    match boot.plan.trouble {
        Trouble::DiskKilled => guest.must_outlive(boot, murder::of_disk)?,
        Trouble::DaemonKilled => guest.must_outlive(boot, murder::of_daemon)?,
        _ => {}
    }
    until_the_cut(boot, before, || guest.look_after(boot))
}

/// Recovers and checks, in the guest and from outside.
fn check(boot: &Boot) -> Result<Checked> {
    judge(
        boot,
        &directory(),
        || is_guard(&image()),
        guard_problem,
        |side, problems| {
            let mut guest = Guest::start(boot, side)?;
            let ended = guest.end();
            let Some(verdict) = found(&guest.machine.lines()?, name(boot))?.verdict else {
                ended?;
                bail!("the guest did its work and gave no verdict");
            };
            problems.extend(ended.err().map(|why| format!("{why:#}")));
            drop(guest);
            problems.extend(file_system_problem()?);
            Ok(verdict)
        },
    )
}

/// Whoever starts a machine from the guard finds next to nothing.
fn guard_problem() -> Result<Option<String>> {
    let bytes = fs::metadata(image())?.len();
    Ok((bytes > GUARD_BYTES).then(|| format!("the guard is too long: {bytes} bytes")))
}

/// The image at rest is a file system that a bare check finds sound.
fn file_system_problem() -> Result<Option<String>> {
    let mut fsck = command("e2fsck", &["-fn"]);
    fsck.arg(image());
    Ok(program::finish(fsck, "e2fsck of the image", LIMIT)?.problem("e2fsck of the image"))
}

/// As the guest's session calls it.
fn name(boot: &Boot) -> &'static str {
    if boot.plan.database == Database::Sqlite { "sqlite" } else { "postgres" }
}

/// The same.
fn phase(task: Task) -> &'static str {
    match task {
        Task::Install => "install",
        Task::Load => "load",
        Task::Check => "check",
    }
}

/// A guest, and who serves its disk.
struct Guest {
    machine: Machine,
    disk: Option<Disk>,
    phase: &'static str,
}

impl Guest {
    /// Boots it on the disk of this side.
    fn start(boot: &Boot, side: Side) -> Result<Self> {
        let disk = side.is_under_seawall().then(|| Disk::start(boot)).transpose()?;
        let machine = switch_on(boot, side)?.up("session", || switch_on(boot, side))?;
        Ok(Self { machine, disk, phase: phase(boot.task) })
    }

    /// What systemd does for the disk, and a look at the guest.
    fn look_after(&mut self, boot: &Boot) -> Result<()> {
        if let Some(disk) = &mut self.disk {
            disk.look_after(boot)?;
        }
        self.machine.must_run()
    }

    /// It commits, and goes on when something behind its disk was killed.
    fn must_outlive(&mut self, boot: &Boot, kill: fn() -> Result<()>) -> Result<()> {
        self.must_commit(boot).context("the guest failed before anything was killed")?;
        kill()?;
        self.must_commit(boot).context("the guest failed after a process of its disk was killed")
    }

    /// Waits for more commits than can have been under way.
    fn must_commit(&mut self, boot: &Boot) -> Result<()> {
        let enough = ledger_length(boot) + LEDGER_BYTES;
        let deadline = Instant::now() + LIMIT;
        while ledger_length(boot) < enough {
            self.look_after(boot)?;
            ensure!(Instant::now() < deadline, "the guest does not commit");
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until the guest has switched itself off, and ends its disk; its work must be done.
    fn end(&mut self) -> Result<()> {
        self.machine.wait_off(LIMIT)?;
        self.disk.take().map_or(Ok(()), Disk::end)?;
        let problems = self.machine.failures()?;
        ensure!(problems.is_empty(), "the guest failed: {}", problems.join("\n"));
        ensure!(self.machine.has("done", self.phase)?, "the guest has not done its work");
        Ok(())
    }
}

/// One boot of the guest.
fn switch_on(boot: &Boot, side: Side) -> Result<Machine> {
    let (name, phase, plan) = (name(boot), phase(boot.task), &boot.plan);
    let ledger = fs::read_to_string(plan.ledger()).unwrap_or_default();
    let settings: Vec<_> = plan.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let settings = settings.join(",");
    let options = [
        ("phase", phase),
        ("side", "bare"),
        ("log", "host"),
        ("database", name),
        ("data", "ext4"),
        ("journal", plan.journal.pragma()),
        ("settings", &settings),
    ];
    let dir = parts().join("boots");
    let files = format!("{:016x}-{name}-{phase}-{}", plan.seed, &boot.boot_id[..8]);
    // The port called like the database goes on where the last boot's ended.
    let port = dir.join(&files).with_extension(name);
    let _ = fs::remove_file(&port);
    symlink(plan.ledger(), &port).context("cannot link a port to the ledger")?;
    Machine::start(&Start {
        options: options.to_vec(),
        ports: std::slice::from_ref(if name == "sqlite" { &"sqlite" } else { &"postgres" }),
        over: ledgers([(name, &ledger)]),
        ..Start::of(&Parts::at(&parts()), &dir, files, data(side))
    })
}

/// How the guest's disk is made from the image.
fn data(side: Side) -> Data {
    match side {
        _ if side.is_under_seawall() => Data::Served { socket: SOCKET.into() },
        Side::Unsafe => Data::File { image: image(), cache: "unsafe" },
        _ => Data::File { image: image(), cache: "none" },
    }
}

/// Makes what guests are made of, in `out`, and has it beside the machines.
///
/// # Errors
/// What is missing.
pub fn build(programs: &Path, out: &Path) -> Result<()> {
    let made = out.join("vm");
    // What an earlier campaign's guests told is not what these will: the names are the same.
    let _ = fs::remove_dir_all(made.join("boots"));
    tool::directory(&made.join("boots"))?;
    let made = made.canonicalize()?;
    Parts::build(programs, &made, &More::default())?;
    tool::directory(&parts())?;
    mount(Some(&made), &parts(), None::<&Path>, MsFlags::MS_BIND, None::<&Path>)
        .with_context(|| format!("cannot mount {} beside the machines", made.display()))
}

/// What guests need, for the check of what is installed.
///
/// # Errors
/// What is missing.
pub fn installed(databases: &[Database]) -> Result<()> {
    let all = databases.iter().all(|database| matches!(database, Database::Postgres | Database::Sqlite));
    ensure!(all, "a guest can run only postgres and sqlite");
    tool::need("qemu-system-x86_64", "qemu-system-x86").map(drop)
}
