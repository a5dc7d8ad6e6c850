//! A database's server in a machine: started in its place, and ended in order.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use crate::boot::Boot;
use crate::place::Place;
use crate::program::{self, Ended, LIMIT, Running};
use crate::user;

/// A running server.
pub struct Server {
    process: Running,
    place: Place,
}

impl Server {
    /// Starts it and waits until it serves.
    pub fn start(place: Place, command: Command, what: &str, serves: impl FnMut() -> bool) -> Result<Self> {
        let mut process = program::start(command, what)?;
        process.wait_ready(LIMIT, serves)?;
        Ok(Server { process, place })
    }

    /// An error if it has ended, or one of its loads has.
    pub fn must_serve(&mut self, loads: &mut [Running]) -> Result<()> {
        self.process.must_run()?;
        loads.iter_mut().try_for_each(Running::must_run)
    }

    /// Shuts down in order. `seawall run` passes the signal on.
    pub fn stop(self, boot: &Boot, signal: Signal) -> Result<()> {
        self.process.stop_in_order(signal, LIMIT)?;
        self.place.leave(boot)
    }

    /// The same of one that ends itself by the signal when everything is closed.
    pub fn stop_by(self, boot: &Boot, signal: Signal) -> Result<Ended> {
        let ended = self.process.stop(signal, LIMIT)?;
        self.place.leave(boot)?;
        Ok(ended)
    }
}

/// For the check of what is installed: an error if there is no such user, or no such server.
pub fn installed(user: &str, server: &str) -> Result<()> {
    user::named(user)?;
    ensure!(Path::new(server).is_file(), "{server} is not installed: make deps");
    Ok(())
}
