//! `seawall disk` in a machine: the guest's image, served.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::{LIMIT, image};
use crate::boot::Boot;
use crate::outside::session;
use crate::plan::Trouble;
use crate::program::{self, Running};

/// Where QEMU finds it: in the machine's own memory.
pub const SOCKET: &str = "/tmp/disk";

/// A process that serves it.
pub struct Disk(Running);

impl Disk {
    /// Starts it, and waits until it has recovered and listens.
    pub fn start(boot: &Boot) -> Result<Self> {
        let mut disk = Self::run(boot)?;
        disk.wait_ready(LIMIT, || Path::new(SOCKET).exists())?;
        Ok(Self(disk))
    }

    fn run(boot: &Boot) -> Result<Running> {
        let mut disk = Command::new(boot.program("seawall"));
        disk.arg("disk").arg(image()).args(["--quiet", "--socket", SOCKET]);
        boot.with_log(&mut disk);
        disk.env("XDG_RUNTIME_DIR", session()?);
        program::start(disk, "seawall disk")
    }

    /// Starts it again if it was killed.
    pub fn look_after(&mut self, boot: &Boot) -> Result<()> {
        if let Some(ended) = self.0.ended()? {
            ensure!(boot.plan.trouble == Trouble::DiskKilled, "seawall disk ended with {ended}");
            self.0 = Self::run(boot)?;
        }
        Ok(())
    }

    /// Ends it in order: everything is in the image then.
    pub fn end(self) -> Result<()> {
        self.0.stop_in_order(Signal::SIGTERM, LIMIT)
    }
}
