//! A mount of the lab's own: `seawall mount` on a directory in the work directory, with a pool of its own.
//!
//! Programs on [`Side::Mount`](crate::side::Side::Mount) run bare, on data below [`place`]. The lab's own
//! user mounts, not the databases': where that is root, the kernel may go past the mount for files that no preset
//! wants.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::identity::Identity;
use crate::lab::Lab;
use crate::pool::Pool;
use crate::process::{self, Running, run, start_captured};
use crate::side::Preset;
use crate::workdir::free_bytes;

/// Nothing that is waited for here takes longer, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the lab's mount is: data of the mount's side is below.
pub fn place(lab: &Lab) -> PathBuf {
    lab.work.mountpoint()
}

/// A mount; dropping it unmounts.
pub struct Mount<'a> {
    lab: &'a Lab,
    preset: Preset,
    /// The directory that is mounted.
    behind: PathBuf,
    pool: Pool,
    /// `None` while nothing is mounted.
    supervisor: Option<Running>,
}

impl<'a> Mount<'a> {
    /// Mounts an empty directory, with a block cache if the lab's own pool has one.
    pub fn start(lab: &'a Lab, preset: Preset) -> Result<Self> {
        Self::start_on(lab, preset, lab.work.data("behind-mount"))
    }

    /// The same with the files in `behind`, on another disk.
    pub fn start_on(lab: &'a Lab, preset: Preset, behind: PathBuf) -> Result<Self> {
        lab.fresh_dir(&behind)?;
        lab.identity.create_dir(&place(lab))?;
        let pool = Pool::create(&lab.tools, &Identity::ourselves(), lab.pool.size(), "-mount")?;
        let pool = pool.with_cache(lab.pool.cache());
        let mut mount = Self { lab, preset, behind, pool, supervisor: None };
        mount.again()?;
        Ok(mount)
    }

    /// Mounts again what was killed, with the log it left: `seawall mount` recovers first.
    pub fn again(&mut self) -> Result<()> {
        if let Some(old) = self.supervisor.take() {
            // It says that its server is gone, closes the log, and gives the directory up.
            old.wait_for(LIMIT)?;
        }
        let mut command = self.pool.seawall();
        command.arg("mount").arg(&self.behind).arg(place(self.lab));
        command.args(["--foreground", "--quiet", "--emulated", "--preset", self.preset.name()]);
        command.args(self.pool.cache_options()).args(["--policy", self.preset.policy(), "--pool"]);
        command.arg(self.pool.path());
        if self.lab.identity.is_other() {
            command.arg("--allow-other");
        }
        let supervisor = start_captured(command, "seawall mount", libc::SIGTERM)?;
        self.supervisor = Some(supervisor.until_ready(LIMIT, || is_mounted(&place(self.lab)))?);
        Ok(())
    }

    /// Unmounts in order: the log is drained and closed. The files are below [`behind`](Self::behind).
    pub fn end(mut self) -> Result<()> {
        let mut umount = self.pool.seawall();
        umount.arg("umount").arg(place(self.lab));
        run(umount, "seawall umount")?;
        let supervisor = self.supervisor.take().context("nothing is mounted")?;
        supervisor.wait_for(LIMIT)?.success("seawall mount").map(drop)
    }

    /// The directory that holds the files.
    pub fn behind(&self) -> &Path {
        &self.behind
    }

    /// Its pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The daemon of its pool.
    pub fn daemon(&self) -> Result<u32> {
        self.pool.daemon().context("the mount's daemon is not running")
    }

    /// The process that serves it.
    pub fn server(&self) -> Result<u32> {
        let pool = self.pool.path().to_string_lossy().into_owned();
        let serves = |&pid: &u32| {
            let line = process::command_line(pid);
            line.contains(" --serving") && line.contains(&pool)
        };
        let found = process::descendants(std::process::id()).into_iter().find(serves);
        found.context("the mount's process is not running")
    }

    /// All of Seawall's processes, to be killed in this order: one that starts others comes first.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let supervisor = self.supervisor.as_ref().context("nothing is mounted")?.pid();
        Ok(vec![supervisor, self.server()?, self.daemon()?])
    }

    /// Nothing is left to do in somebody else's time.
    pub fn settle(&self) -> Result<()> {
        self.pool.drain_if_running()
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // Unmounts, if it lives.
        drop(self.supervisor.take());
        // A dead one. Before the directory it hides is removed.
        detach(&place(self.lab));
    }
}

/// Asks the mount, if there is one: so its server answers, too. What stat(2) says may be remembered from one that
/// has died.
fn is_mounted(place: &Path) -> bool {
    if free_bytes(place).is_err() {
        return false;
    }
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let (here, above) = (device(place), place.parent().and_then(device));
    here.is_some() && here != above
}

fn detach(place: &Path) {
    let Ok(name) = CString::new(place.as_os_str().as_bytes()) else { return };
    // SAFETY: `name` is NUL-terminated; nothing else is passed.
    let done = unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH) };
    if done != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
        let _ = Command::new("fusermount3").args(["-u", "-z", "-q", "--"]).arg(place).output();
    }
}
