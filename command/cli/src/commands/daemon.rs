//! `seawall daemon`: what `run` and systemd start. It ends by itself when nobody needs it, unless it is to stay.
//!
//! Started by `run`: until it listens it says on stderr what is wrong; then it lets go of stderr, which tells
//! whoever started it that it is ready. As a service it goes on talking to systemd's journal, and says that it is
//! ready as systemd wants to hear it. Exit code 3: the pool is in use by another daemon.

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use seawall_core::pool::PoolError;
use seawall_daemon::cache::CacheOptions;
use seawall_daemon::{DaemonError, Options, place, privileged_watch, serve};

use crate::{cache, user};

/// Exit code when another daemon has the pool.
pub const BUSY: u8 = 3;

/// The daemon itself
#[derive(clap::Args)]
pub struct Daemon {
    /// The pool
    #[arg(long)]
    pool: PathBuf,
    /// Keep running when the last client has gone
    #[arg(long)]
    keep: bool,
    /// Do not register the pool for recovery at the start of the machine
    #[arg(long)]
    no_boot: bool,
    /// Run as a systemd service: keep running, log to systemd's journal, serve the pool's owner from /run/seawalld
    #[arg(long)]
    service: bool,
    #[command(flatten)]
    cache: cache::WantedCache,
}

/// Runs it.
pub fn daemon(how: &Daemon) -> ExitCode {
    let prepared = if how.service { prepare_service(how) } else { user::become_owner(&how.pool) };
    if let Err(e) = prepared {
        errln!("{e:#}");
        return ExitCode::FAILURE;
    }
    // Away from the terminal's signals. It fails for a process group's leader, which a shell's job is: fine.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let options = Options {
        pool: how.pool.clone(),
        keep: how.keep || how.service,
        boot: !how.no_boot,
        journal: how.service,
        // A service comes up without it: its users wait for the database, not for its cache.
        cache: how.cache.options().map(|cache| CacheOptions { is_needed: !how.service, ..cache }),
        watchdog: Some(watchdog),
    };
    let ready: fn() = if how.service { tell_systemd } else { detach };
    match serve(&options, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            errln!("{e}");
            let busy = matches!(e, DaemonError::Pool(PoolError::InUse(_)));
            if busy { ExitCode::from(BUSY) } else { ExitCode::FAILURE }
        }
    }
}

/// This program, as the watchdog.
fn watchdog() -> std::process::Command {
    let exe = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = std::process::Command::new(exe.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    command.arg("watchdog");
    command
}

/// What only root can do, then becomes the pool's owner.
fn prepare_service(how: &Daemon) -> Result<()> {
    let owner = std::fs::metadata(&how.pool)
        .with_context(|| {
            format!(
                "cannot find the pool {}. If it was in RAM, the restart removed it, with everything that \
                 only it held: make a new one with `seawall init`, or `seawall detach` the service",
                how.pool.display()
            )
        })?
        .uid();
    if rustix::process::geteuid().is_root() {
        place::make_for_service(owner)?;
    }
    let watch = (owner != 0).then(privileged_watch).flatten();
    user::become_owner(&how.pool)?;
    if let Some(watch) = watch {
        hand_over(&watch)?;
    }
    Ok(())
}

/// The watch on foreign writers, made with root's rights, becomes the daemon's stdin.
fn hand_over(watch: &OwnedFd) -> Result<()> {
    rustix::stdio::dup2_stdin(watch).context("cannot hand the watch over to the daemon")
}

/// sd_notify(3).
pub fn tell_systemd() {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let name = name.as_bytes();
    let address = match name.strip_prefix(b"@") {
        Some(hidden) => SocketAddr::from_abstract_name(hidden),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
    };
    let told = address.and_then(|to| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &to));
    if let Err(e) = told {
        errln!("cannot tell systemd that the daemon is ready: {e}");
    }
}

/// Lets go of the starter's descriptors.
pub fn detach() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        // If this fails the starter waits for its time-out and then finds the socket.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
