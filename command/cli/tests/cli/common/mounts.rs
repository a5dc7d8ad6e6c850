//! A directory under `seawall mount`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::{Place, Said, is_root, wait_for};

/// Nobody else sees what this thread mounts from now on.
pub fn have_a_namespace() {
    unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .expect("private");
}

/// A place with a backing directory and a mountpoint in it. The test's thread has a mount namespace of its own: one
/// that somebody else makes meanwhile would keep a copy of the mount, and keep it in use.
pub struct Mounts {
    pub place: Place,
}

impl Mounts {
    /// `None` where nothing can be mounted.
    pub fn new() -> Option<Self> {
        Self::of(Place::new)
    }

    /// Without a pool.
    pub fn bare() -> Option<Self> {
        Self::of(Place::bare)
    }

    fn of(place: fn() -> Place) -> Option<Self> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: needs root and /dev/fuse");
            return None;
        }
        have_a_namespace();
        let place = place();
        for name in ["backing", "at"] {
            fs::create_dir(place.file(name)).expect("made");
        }
        Some(Self { place })
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.place.file("at").join(name)
    }

    pub fn behind(&self, name: &str) -> PathBuf {
        self.place.file("backing").join(name)
    }

    pub fn mount_on(&self, backing: &str, at: &str) -> Said {
        self.mount_with(backing, at, "sqlite", &[])
    }

    pub fn mount_with(&self, backing: &str, at: &str, preset: &str, more: &[&str]) -> Said {
        let mount = ["mount", backing, at, "--pool", self.place.pool(), "--preset", preset, "--quiet"];
        self.place.seawall(&[&mount, more].concat())
    }

    /// With a block cache.
    pub fn mount_cached(&self, preset: &str, size: &str) -> &Self {
        self.mount_with("backing", "at", preset, &["--cache", size]).succeeds();
        self
    }

    /// The same with the cache on a disk.
    pub fn mount_stored(&self, preset: &str, size: &str, store: &str) -> &Self {
        self.mount_with("backing", "at", preset, &["--cache", size, "--cache-path", store]).succeeds();
        self
    }

    pub fn mount(&self) -> &Self {
        self.mount_on("backing", "at").succeeds();
        self
    }

    pub fn umount(&self) -> Said {
        self.place.seawall(&["umount", "at"])
    }

    /// What `status` says of a file.
    pub fn state(&self, name: &str) -> serde_json::Value {
        let status = self.place.status();
        let files = status["files"].as_array().expect("files").clone();
        let named = |file: &serde_json::Value| file["path"].as_str().is_some_and(|path| path.ends_with(name));
        files.into_iter().find(named).unwrap_or_else(|| panic!("{name} is not managed: {status}"))
    }

    /// Waits until the server has let go of a closed file: the kernel does not wait for that with its answer to close(2).
    pub fn wait_released(&self, name: &str) {
        let fds = format!("/proc/{}/fd", self.server());
        let is_it = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|file| file.ends_with(name));
        // One stays, by which it knows the file.
        wait_for("the release", || {
            fs::read_dir(&fds).expect("it serves").flatten().filter(is_it).count() < 2
        });
    }

    /// The process that serves.
    pub fn server(&self) -> u64 {
        let wanted = self.place.pool();
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let serves = |pid: &u64| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains(wanted) && line.contains("--serving")
        };
        pids.into_iter().find(serves).expect("it serves")
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        // Before the directory is removed, which would go into whatever is mounted there.
        for name in ["at", "backing"] {
            let _ = umount2(&self.place.file(name), MntFlags::MNT_DETACH);
        }
    }
}

/// A file that is in the log: written, synced, written again.
pub fn tracked(path: &Path) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).expect("made");
    for fill in [1, 2] {
        file.write_all_at(&[fill; 8192], 0).expect("written");
        file.sync_all().expect("synced");
    }
    file
}
