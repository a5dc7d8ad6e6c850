//! The work directory: on the disk under test, reachable by the databases' user, gone afterwards.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::FlockOperation;

use crate::identity::Identity;

const FALLBACK: &str = "/var/tmp/seawall-demo";

/// The work directory; its databases are removed on drop, its logs stay.
pub struct WorkDir {
    path: PathBuf,
    sockets: PathBuf,
    keep: bool,
    _lock: File,
}

impl WorkDir {
    /// Creates it at `asked`, or else at `default`, or where the user can reach it.
    pub fn create(asked: Option<&Path>, default: &Path, identity: &Identity, keep: bool) -> Result<Self> {
        let first = asked.unwrap_or(default);
        let mut path = prepare(first, identity)?;
        if !identity.can_write(&path) {
            let _ = fs::remove_dir(&path); // empty, if it was made just now
            ensure!(
                asked.is_none(),
                "user {} cannot reach {}: choose another --work",
                identity.name,
                path.display()
            );
            path = prepare(Path::new(FALLBACK), identity)?;
            ensure!(
                identity.can_write(&path),
                "user {} can reach neither {} nor {FALLBACK}: choose one with --work",
                identity.name,
                first.display()
            );
        }
        let lock = lock(&path)?;
        for name in ["bin", "data", "log", "state"] {
            let dir = path.join(name);
            let _ = fs::remove_dir_all(&dir);
            identity.create_dir(&dir)?;
        }
        // Socket addresses have 107 characters at most: too short for a deep work directory.
        let sockets = PathBuf::from(format!("/tmp/seawall-lab-{}", std::process::id()));
        identity.create_dir(&sockets)?;
        Ok(WorkDir { path, sockets, keep, _lock: lock })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the lab's mount is, not created.
    pub fn mountpoint(&self) -> PathBuf {
        self.data("mount")
    }

    /// A directory for one side's data, not created.
    pub fn data(&self, name: &str) -> PathBuf {
        self.path.join("data").join(name)
    }

    /// A log file.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("log").join(name)
    }

    /// Our own programs, where another user can run them.
    pub fn bin(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// What Seawall keeps from one run of a program to the next, below `seawall`.
    pub fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// The directory of PostgreSQL's sockets.
    pub fn sockets(&self) -> &Path {
        &self.sockets
    }

    /// An error if this disk has less room than `bytes`: found now, not in the middle of a measurement.
    pub fn ensure_room(&self, bytes: u64) -> Result<()> {
        let free = free_bytes(&self.path)?;
        ensure!(
            free >= bytes,
            "{} has {} MB free, and this run needs about {} MB: make room, or choose another disk with --work",
            self.path.display(),
            free >> 20,
            bytes >> 20
        );
        Ok(())
    }

    /// Writes everything dirty to this disk, so that no side pays for the one before it.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(File::open(&self.path)?)
            .with_context(|| format!("cannot sync {}", self.path.display()))
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.sockets);
        if !self.keep {
            let _ = fs::remove_dir_all(self.path.join("data"));
            let _ = fs::remove_dir_all(self.path.join("bin"));
            let _ = fs::remove_dir_all(self.state());
        }
    }
}

/// Room for ordinary users on the file system of `path`, which answers itself.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path)
        .with_context(|| format!("cannot tell how much room is in {}", path.display()))?;
    Ok(found.f_bavail * found.f_frsize)
}

fn prepare(path: &Path, identity: &Identity) -> Result<PathBuf> {
    identity.create_dir(path)?;
    fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
}

fn lock(path: &Path) -> Result<File> {
    let file = File::create(path.join("lock"))
        .with_context(|| format!("cannot create a file in {}", path.display()))?;
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    ensure!(locked.is_ok(), "{} is in use by another run: choose another --work", path.display());
    Ok(file)
}
