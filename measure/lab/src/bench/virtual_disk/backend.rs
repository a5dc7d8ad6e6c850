//! What serves an image over vhost-user-blk: Seawall, or QEMU.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Who;
use crate::lab::Lab;
use crate::pool::Pool;
use crate::process::{self, Running, start};

const PROGRAM: &str = "qemu-storage-daemon";
const PATIENCE: Duration = Duration::from_secs(20);

/// What is missing is named before anything is measured.
pub fn find_programs() -> Result<()> {
    let is_there = Command::new(PROGRAM).arg("--version").output().is_ok();
    ensure!(is_there, "{PROGRAM} is not installed: apt-get install qemu-utils");
    Ok(())
}

/// A backend, ended when dropped.
pub struct Backend {
    running: Option<Running>,
    pub socket: PathBuf,
}

impl Backend {
    /// Starts it; Seawall's has this pool.
    pub fn start(lab: &Lab, who: Who, pool: &Pool, image: &Path) -> Result<Self> {
        let socket = image.with_extension("sock");
        let _ = std::fs::remove_file(&socket);
        let command = match who.cache() {
            Some(cache) => {
                let mut command = lab.command(PROGRAM);
                let (image, socket) = (image.display(), socket.display());
                command
                    .arg("--blockdev")
                    .arg(format!("driver=file,node-name=image,filename={image},{cache}"));
                command.arg("--export").arg(format!(
                    "type=vhost-user-blk,id=disk,node-name=image,addr.type=unix,addr.path={socket},writable=on"
                ));
                command
            }
            None => {
                let mut command = pool.seawall();
                command.args(["disk", "--quiet"]).args(pool.by_name()).arg("--pool").arg(pool.path());
                command.arg(image).arg("--socket").arg(&socket);
                command
            }
        };
        let running = start(command, "the disk's backend", libc::SIGTERM)?;
        let running = running.until_ready(PATIENCE, || socket.exists())?;
        Ok(Self { running: Some(running), socket })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, Running::pid)
    }

    /// Ends it in order.
    pub fn end(mut self) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        process::signal(running.pid(), libc::SIGTERM);
        running.wait_for(PATIENCE)?.success("the disk's backend").map(drop)
    }
}
