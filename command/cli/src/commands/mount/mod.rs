//! `seawall mount`, `seawall umount`.
//!
//! ```text
//! look at backing and mountpoint (a dead mount is detached) ─ find pool ─ start or join the daemon (it recovers)
//!   ─ register the directories ─ start the process that mounts and serves ─ say so, let go of the terminal
//!   ─ replace a dead daemon ─ unmounted ─ drain and close if nobody else is left
//! ```
//!
//! Three processes, one after the other of this program: the one in the terminal, which ends when the mount is
//! there; the supervisor; the server, which is the log's client. The supervisor is not: it can say when nobody is.
//!
//! Every check that can fail comes before the mount is there.

mod finder;
pub mod helper;
pub mod served;
mod syncfs;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signalfd::SignalFd;
use seawall_daemon::AddRoot;
use seawall_mount::mountpoint;
use seawall_mount::{Flag, FuseUring, Mount as Mounted, Options};
use seawall_wire::shm::{Policy, Preset};

use self::finder::Finder;
use super::serving::{self, close};
use crate::cache::WantedCache;
use crate::run::database;
use crate::run::join::{self, Link};
use crate::{interrupt, pool};

/// What the child says when the mount is there.
const READY: &str = "mounted";
/// Exit code when the process that served has died: systemd mounts again. After a refusal it does not.
const DIED: i32 = 3;

/// Mount a directory with Seawall's promises, for programs that cannot be preloaded
#[derive(clap::Args)]
pub struct Mount {
    /// The directory that holds the files
    backing: PathBuf,
    /// An empty directory, where programs use the files
    mountpoint: PathBuf,
    #[command(flatten)]
    wanted: pool::Wanted,
    #[command(flatten)]
    cache: WantedCache,
    /// The kind of database, once for each kind. Databases that are created in it later are found
    #[arg(long, required = true, value_parser = database::presets())]
    preset: Vec<String>,
    /// tail: the log that commits wait for. atomic: every data file, so that no page can tear
    #[arg(long, default_value = "tail", value_parser = ["tail", "atomic"])]
    policy: String,
    /// Let other users than the one who mounts it use it
    #[arg(long)]
    allow_other: bool,
    /// Take requests by io_uring: where the kernel allows it (auto), always, or refuse to mount (on), or never (off)
    #[arg(long, default_value = "auto", value_parser = FuseUring::ALL.map(FuseUring::name))]
    fuse_uring: String,
    /// What the kernel must forbid, as with any file system. Several times, or separated by commas
    #[arg(long = "option", value_delimiter = ',', value_parser = Flag::ALL.map(Flag::name))]
    options: Vec<String>,
    /// Do not recover the log when this machine starts after a crash, only when this is mounted again
    #[arg(long)]
    no_boot: bool,
    /// Stay in the foreground, for systemd and containers
    #[arg(long)]
    foreground: bool,
    /// The process that serves the mount
    #[arg(long, hide = true)]
    serving: bool,
    /// Nobody waits for messages once the mount is there
    #[arg(long, hide = true)]
    background: bool,
    /// Show only important messages
    #[arg(long, short)]
    quiet: bool,
}

/// Unmount what `seawall mount` mounted, and wait until the log is closed
#[derive(clap::Args)]
pub struct Umount {
    /// Where it is mounted
    mountpoint: PathBuf,
}

/// Mounts.
pub fn mount(how: &Mount) -> Result<()> {
    match (how.serving, how.foreground) {
        (true, _) => serve(how),
        (false, true) => supervise(how),
        (false, false) => in_background(),
    }
}

/// Unmounts.
pub fn umount(how: &Umount) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    /// After this time `umount` says what it waits for.
    const SILENCE: Duration = Duration::from_secs(2);
    let backing = mountpoint::unmount(&how.mountpoint)?;
    // The claim on the backing directory is given up when the log is closed.
    let begin = std::time::Instant::now();
    let mut told = false;
    while backing.exists() && mountpoint::claim(&backing).is_err() {
        if begin.elapsed() > PATIENCE {
            bail!("{} is unmounted here, but {}", how.mountpoint.display(), goes_on(&backing));
        }
        if begin.elapsed() > SILENCE && !told {
            errln!("seawall: waiting: {}", goes_on(&backing));
            told = true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Why the process of a mount that is gone from here is not.
fn goes_on(backing: &Path) -> String {
    match mountpoint::holders(backing).as_slice() {
        [] => "its process still runs: it brings the log to a slow disk".into(),
        pids => {
            let name = |pid: &u32| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                format!("{pid} ({})", name.trim())
            };
            let names = pids.iter().map(name).collect::<Vec<_>>().join(", ");
            format!(
                "another mount namespace (a container) still has it, and keeps it in use: that of process {names}"
            )
        }
    }
}

/// Starts ourselves again, away from the terminal, and waits until the mount is there or has failed.
fn in_background() -> Result<()> {
    let mut command = ourselves()?;
    command.args(["--foreground", "--background"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("cannot start the mount's process")?;
    if says_ready(&mut child)? {
        return Ok(());
    }
    let status = child.wait().context("cannot wait for the mount's process")?;
    // It has said why on the stderr that it shares with us.
    std::process::exit(status.code().unwrap_or(1));
}

/// This program, with the words it was given.
fn ourselves() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(helper::words(std::env::args_os()).map_err(anyhow::Error::msg)?.iter().skip(1));
    Ok(command)
}

/// The directories of all presets, as they are now.
fn roots(how: &Mount, backing: &Path) -> Result<Vec<AddRoot>> {
    let policy = Policy::from_name(&how.policy).unwrap_or_default();
    let mut roots = Vec::new();
    let named = how.preset.iter().filter_map(|name| Preset::from_name(name));
    let wanted: BTreeSet<Preset> = named.flat_map(database::kinds).collect();
    for preset in wanted {
        database::check_policy(preset, policy)?;
        // A PGDATA that is not there yet is found when it is made (`Finder`).
        if preset != Preset::Postgres || backing.join("PG_VERSION").exists() {
            if preset == Preset::Postgres {
                syncfs::check(backing)?;
            }
            roots.push(database::root(preset, policy, backing)?);
        }
    }
    Ok(roots)
}

/// Prepares, starts the process that serves, and looks after it and the daemon until it is unmounted.
fn supervise(how: &Mount) -> Result<()> {
    let signals = interrupt::block()?;
    let (backing, place) = mountpoint::check(&how.backing, &how.mountpoint)?;
    let claim = mountpoint::claim(&backing)?;
    let pool = pool::for_run(&how.wanted, &backing)?;
    crate::run::say_what_it_survives(&pool, how.quiet)?;
    let roots = roots(how, &backing)?;
    let cache = how.cache.options();
    let mut link = Link::new(
        pool,
        roots,
        join::How { keep: false, boot: !how.no_boot, watch: None, cache: cache.clone() },
    )?;
    crate::run::say_what_cache(&link, cache.as_ref());
    let ended = start_server(claim.try_clone().context("cannot keep the claim")?).and_then(|mut server| {
        outln!("{READY}");
        super::daemon::tell_systemd();
        let_go(how);
        look_after(&mut link, &mut server, &signals, &place)
    });
    // Only now the directory may be mounted again.
    close(&mut link, "mount", how.quiet);
    drop(claim);
    let status = ended?;
    if !status.success() {
        errln!(
            "seawall: the mount's process ended ({status}): {} answers ENOTCONN. Nothing is lost; mount it again",
            place.display()
        );
        std::process::exit(DIED);
    }
    Ok(())
}

/// Starts the process that serves. The claim on the backing directory becomes its stdin: it lasts as long as either
/// of us.
fn start_server(claim: std::fs::File) -> Result<Child> {
    let mut command = ourselves()?;
    command.arg("--serving").stdin(claim).stdout(Stdio::piped());
    command.env_remove("LD_PRELOAD").env_remove("SEAWALL_SOCKET");
    let mut server = command.spawn().context("cannot start the mount's process")?;
    if says_ready(&mut server)? {
        return Ok(server);
    }
    let status = server.wait().context("cannot wait for the mount's process")?;
    // It has said why on the stderr that it shares with us.
    bail!("nothing is mounted ({status})")
}

/// Of the terminal, or whatever else the command that has returned was given.
fn let_go(how: &Mount) {
    if how.background {
        super::daemon::detach();
    }
}

fn says_ready(child: &mut Child) -> Result<bool> {
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).context("cannot wait for the mount")?;
    }
    Ok(line.trim() == READY)
}

/// Serves, in a process of its own: when it has ended nobody uses the log any more.
fn serve(how: &Mount) -> Result<()> {
    // To end it, it is unmounted.
    interrupt::block()?;
    let real = |path: &Path| std::fs::canonicalize(path).with_context(|| path.display().to_string());
    let (backing, place) = (real(&how.backing)?, real(&how.mountpoint)?);
    let pool = pool::for_run(&how.wanted, &backing)?;
    let finder = Finder::new(how, &pool, &backing);
    let flags = how.options.iter().filter_map(|name| Flag::from_name(name)).collect();
    let fuse_uring = FuseUring::from_name(&how.fuse_uring).unwrap_or_default();
    let options = Options { backing, mountpoint: place, allow_other: how.allow_other, fuse_uring, flags };
    let mounted = Mounted::new(&options, &pool, Box::new(move |path| finder.find(path)))?;
    if !how.quiet {
        errln!("seawall: {}: {}", options.mountpoint.display(), mounted.ways());
    }
    outln!("{READY}");
    let_go(how);
    mounted.serve().context("cannot serve the mount")
}

/// Looks after the process that serves, and after the daemon, until the server has ended.
fn look_after(link: &mut Link, server: &mut Child, signals: &SignalFd, place: &Path) -> Result<ExitStatus> {
    let ended = rustix::process::pidfd_open(
        rustix::process::Pid::from_child(server),
        rustix::process::PidfdFlags::empty(),
    )
    .context("cannot watch the mount's process")?;
    let over = || server.try_wait().context("cannot wait for the mount's process");
    let told = || {
        if let Err(e) = mountpoint::unmount_at_last(place) {
            errln!("seawall: cannot unmount {}: {e}", place.display());
        }
    };
    serving::look_after(Some(link), signals, ended, over, told)
}
