//! What every part of the lab works with: programs, user, directories, pool, and the medium's name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cli::Common;
use crate::identity::Identity;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::progress::Progress;
use crate::side::Side;
use crate::tools::Tools;
use crate::workdir::WorkDir;

/// The lab, set up. Fields drop in this order: the pool before the directories.
pub struct Lab {
    pub pool: Pool,
    pub work: WorkDir,
    pub tools: Tools,
    pub identity: Identity,
    pub machine: Machine,
    pub progress: Progress,
}

/// A pool unless something else is asked for.
pub const POOL_BYTES: u64 = 256 << 20;

impl Lab {
    /// Finds everything, creates the work directory and the pool. `space` is what the run needs on the disk.
    pub fn set_up(common: &Common, progress: Progress, space: u64) -> Result<Self> {
        let identity = Identity::find()?;
        ensure_writable(&common.out)?;
        let work = WorkDir::create(common.work.as_deref(), &common.out.join("work"), &identity, common.keep)?;
        work.ensure_room(space)?;
        let tools = Tools::find(common.seawall.as_deref(), &identity, &work)?;
        let machine = Machine::describe(work.path());
        let pool = Pool::create(&tools, &identity, common.pool_size.unwrap_or(POOL_BYTES), "")?;
        progress.note(&format!("medium: {}", pool.medium()));
        progress.note(&format!("data:   {} ({})", work.path().display(), machine.filesystem));
        Ok(Lab { pool, work, tools, identity, machine, progress })
    }

    /// The pool's medium, exactly as `seawall status` names it.
    pub fn medium(&self) -> &str {
        self.pool.medium()
    }

    /// Does something with a pool of `size` bytes whose log lies on the disk under test.
    pub fn on_block<R>(&mut self, size: u64, what: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let dir = self.work.data("log");
        self.identity.create_dir(&dir)?;
        let pool = Pool::on_block(&self.tools, &self.identity, size, dir.join("block.log"))?;
        self.with_pool(pool, what)
    }

    /// Does something with another pool.
    pub fn with_pool<R>(&mut self, pool: Pool, what: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let usual = std::mem::replace(&mut self.pool, pool);
        let done = what(self);
        self.pool = usual;
        done
    }

    /// A command as the databases' user, in the work directory, in a plain environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.identity.command(program.as_ref());
        command.current_dir(self.work.path());
        command
    }

    /// Nothing dirty is left behind: neither in the pool nor in the page cache. Called between runs, so
    /// that no side pays for the one before it.
    pub fn settle(&self) -> Result<()> {
        self.pool.drain_if_running()?;
        self.work.sync()
    }

    /// A directory for data of a side, not created: on the mount's side it is below the mountpoint.
    pub fn data(&self, side: Side, name: &str) -> PathBuf {
        if side == Side::Mount { self.work.mountpoint().join(name) } else { self.work.data(name) }
    }

    /// Creates an empty directory for data of the measured user.
    pub fn fresh_dir(&self, path: &Path) -> Result<()> {
        if path == self.work.mountpoint() {
            return Ok(()); // whoever mounts begins with an empty one
        }
        if path.exists() {
            std::fs::remove_dir_all(path)?;
        }
        self.identity.create_dir(path)
    }
}

/// The lab writes its results at the very end, but finds out at the beginning whether it can.
fn ensure_writable(out: &Path) -> Result<()> {
    let probe = out.join(".probe");
    let tried = std::fs::create_dir_all(out).and_then(|()| std::fs::write(&probe, ""));
    let _ = std::fs::remove_file(&probe);
    tried.with_context(|| format!("cannot write results to {} (choose another --out)", out.display()))
}
