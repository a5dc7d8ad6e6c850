//! `seawall disk` in a machine: the guest's image, served.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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
        let mut disk = Self(Self::run(boot)?);
        let deadline = Instant::now() + LIMIT;
        while !Path::new(SOCKET).exists() {
            disk.0.must_run()?;
            ensure!(Instant::now() < deadline, "seawall disk does not get ready: {}", disk.0.said());
            sleep(Duration::from_millis(5));
        }
        Ok(disk)
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
        kill(Pid::from_raw(self.0.pid()), Signal::SIGTERM).context("ask seawall disk to end")?;
        let ended = self.0.wait(LIMIT)?;
        ensure!(ended.status.success(), "seawall disk ended with {ended}");
        Ok(())
    }
}
