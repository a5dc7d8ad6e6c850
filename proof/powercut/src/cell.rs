//! Namespaces: the walls around everything that is done here.
//!
//! The campaign runs in a cell, and each machine it boots in another one inside it. A cell has its own
//! process ids and mounts, and ends with the process that made it: the kernel then kills whatever runs
//! inside, takes the mounts away, and frees the loop devices behind them. So nothing can be left behind,
//! however a test ends; and a machine's power is cut by one SIGKILL that hits all its processes at once.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};

/// CLONE_NEWTIME, which nix has no name for.
const NEW_TIME: CloneFlags = CloneFlags::from_bits_retain(0x80);
/// How long a machine that has just started says it has been running.
const UPTIME_NS: i64 = 1_000_000;

/// What kind of walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    /// Own processes and mounts.
    Campaign,
    /// The same, and a clock that says the machine has just started.
    Machine,
}

/// Builds a cell around this process's children, starts this program with `arguments` as its first process,
/// and waits. When this process dies, so does everything in the cell.
///
/// # Errors
/// If we may not make namespaces.
pub fn run(walls: Walls, arguments: &[&OsStr]) -> Result<ExitStatus> {
    let mut flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    if walls == Walls::Machine {
        flags |= NEW_TIME;
    }
    unshare(flags).context("cannot make namespaces (needs root, and a kernel with time namespaces: 5.6)")?;
    let nothing: Option<&Path> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .context("cannot make our mounts private")?;
    if walls == Walls::Machine {
        start_clock()?;
    }
    let mut child = Command::new("/proc/self/exe")
        .args(arguments)
        .spawn()
        .context("cannot start the first process of a cell")?;
    child.wait().context("cannot wait for the first process of a cell")
}

/// What the first process in a cell does first: it shares its maker's fate, and sees its own processes.
///
/// # Errors
/// If the kernel does not let us.
pub fn enter() -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).context("cannot tie our life to our parent's")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&Path>).context("cannot mount /proc")
}

/// A file system in memory on `at`.
///
/// # Errors
/// If it cannot be mounted.
pub fn memory(at: &Path, mode: u32) -> Result<()> {
    let options = format!("mode={mode:o}");
    mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(options.as_str()))
        .with_context(|| format!("cannot mount a tmpfs on {}", at.display()))
}

/// How a cell's end looks from outside.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Lets the time since boot begin now: what runs in the cell must believe that the machine was restarted,
/// and that every file it finds is older than that.
fn start_clock() -> Result<()> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).context("cannot read the clock")?;
    let offset = UPTIME_NS - (now.tv_sec() * 1_000_000_000 + now.tv_nsec());
    let (seconds, rest) = (offset.div_euclid(1_000_000_000), offset.rem_euclid(1_000_000_000));
    std::fs::write("/proc/self/timens_offsets", format!("boottime {seconds} {rest}"))
        .context("cannot set the clock of a time namespace")
}
