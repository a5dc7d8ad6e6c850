//! A database's server in a machine: started in its place, and ended in order.

use std::process::Command;

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::boot::Boot;
use crate::place::Place;
use crate::program::{self, Ended, LIMIT, Running};

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

    /// An error if it has ended.
    pub fn must_run(&mut self) -> Result<()> {
        self.process.must_run()
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
