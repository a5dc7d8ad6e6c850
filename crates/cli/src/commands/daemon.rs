//! `seawall daemon`: what `run` starts. Ends by itself when nobody needs it.
//!
//! Until it listens it says on stderr what is wrong; then it lets go of stderr, which tells whoever started
//! it that it is ready. Exit code 3: the pool is in use by another daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use seawall_core::pool::PoolError;
use seawall_daemon::{DaemonError, Options, serve};

use crate::user;

/// Exit code when another daemon has the pool.
pub const BUSY: u8 = 3;

/// The daemon itself
#[derive(clap::Args)]
pub struct Daemon {
    /// The pool
    #[arg(long)]
    pool: PathBuf,
    /// Stay when the last client has gone
    #[arg(long)]
    keep: bool,
}

/// Runs it.
pub fn daemon(how: &Daemon) -> ExitCode {
    if let Err(e) = user::become_owner(&how.pool) {
        eprintln!("{e:#}");
        return ExitCode::FAILURE;
    }
    // Away from the terminal's signals. It fails for a process group's leader, which a shell's job is: fine.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let options = Options { pool: how.pool.clone(), keep: how.keep };
    match serve(&options, detach) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            let busy = matches!(e, DaemonError::Pool(PoolError::InUse(_)));
            if busy { ExitCode::from(BUSY) } else { ExitCode::FAILURE }
        }
    }
}

/// Lets go of the starter's descriptors.
fn detach() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        // If this fails the starter waits for its time-out and then finds the socket.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
