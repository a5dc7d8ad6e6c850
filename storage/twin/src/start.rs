//! An ordinary start on the current directory, unless its server runs already.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;

use crate::address::Address;
use crate::guard;
use crate::process::{User, users_of};
use crate::server::{Server, primary_addition};
use crate::settings::Settings;
use crate::state::{Directory, State, replace};

/// A server that loads, or what a dead one forked, is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What an ordinary start needs.
pub struct Start<'a> {
    /// The server's command.
    pub command: &'a [OsString],
    /// What it will find in its configuration.
    pub settings: &'a Settings,
    /// What clients connect to.
    pub address: &'a Address,
    /// Where the state is.
    pub directory: &'a Directory,
    /// Which directory is the current one.
    pub state: &'a State,
}

impl Start<'_> {
    /// Starts the server on the current directory.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self) -> Result<Server> {
        // Raised by a takeover that came no further.
        guard::lower(&self.settings.place(&self.state.current))?;
        let addition = self.directory.path().join("primary.conf");
        replace(&addition, primary_addition(&self.state.current, self.address).as_bytes())?;
        Server::start(self.command, &addition)
    }

    /// The server that works in the current directory, or a new one. True if it was there.
    ///
    /// # Errors
    /// If it cannot be started, or somebody else is in the way.
    pub fn or_find(&self, follow: Option<i32>) -> Result<(Server, bool)> {
        let current = self.state.current.display();
        let log = self.settings.place(&self.state.current).directory;
        let patience = Instant::now() + PATIENCE;
        loop {
            let users = users_of(&self.state.current, &log);
            let leads =
                |user: &&User| follow.map_or(user.number == user.group, |follow| user.number == follow);
            match (users.iter().find(leads), follow, users.first()) {
                (Some(one), ..) if one.has_log => return Ok((Server::adopt(one.number)?, true)),
                (None, Some(follow), _) => {
                    bail!("process {follow} is not a Redis server that works in {current}")
                }
                (None, None, None) => return Ok((self.start()?, false)),
                // It loads, or it is what a dead server forked; or another one's. A second server on one append-only file
                // would destroy it.
                (_, _, user) if Instant::now() > patience => bail!(
                    "process {} works in {current}, and does not have this server's append-only file: the \
                     directory must be this server's alone",
                    user.map_or(0, |user| user.number)
                ),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Ends what a supervisor that was killed left behind: its twin, and one that was about to take over.
///
/// # Errors
/// If that cannot be noted.
pub fn end_orphans(directory: &Directory, settings: &Settings, state: &mut State) -> Result<()> {
    let is_over = |path: &PathBuf| *path != state.current || state.is_promoting;
    for path in directory.twins().into_iter().filter(is_over) {
        for user in users_of(&path, &settings.place(&path).directory) {
            let Ok(mut server) = Server::adopt(user.number) else { continue };
            server.signal(Signal::KILL);
            server.wait();
        }
    }
    state.is_promoting = false;
    directory.store(state)
}
