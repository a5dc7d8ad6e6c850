//! A directory under `seawall mount`.

use super::bounded;
use super::seawall::{Pool, binary};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SETTING: &str = "/sys/module/fuse/parameters/enable_uring";
const LIMIT: Duration = Duration::from_secs(60);

/// Gives this thread, and what it starts, a mount namespace of its own. A namespace that somebody else makes while we
/// have something mounted would keep a copy of it, and keep it in use.
pub fn isolate() {
    // SAFETY: plain calls with constant strings.
    let alone = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
    };
    if !alone {
        eprintln!("no mount namespace of our own: {}", std::io::Error::last_os_error());
    }
}

/// Allows FUSE over io_uring as long as it lives, which must be as long as a mount begins; then it is as it was. One at a
/// time on this machine: whoever changes the setting has it locked.
struct Allowed {
    before: String,
    setting: File,
}

impl Allowed {
    fn new() -> Option<Self> {
        let mut setting = File::options().read(true).write(true).open(SETTING).ok()?;
        setting.lock().ok()?;
        let mut before = String::new();
        setting.read_to_string(&mut before).ok()?;
        std::fs::write(SETTING, "Y").ok()?;
        Some(Self { before, setting })
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        let _ = std::fs::write(SETTING, self.before.trim());
        let _ = self.setting.unlock();
    }
}

/// A mount; unmounted when dropped.
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts `backing` at the empty directory `at`; `None`, with the reason printed, where that is not possible.
    pub fn new(pool: &Pool, backing: &Path, at: &Path) -> Option<Mount> {
        Self::with("off", pool, backing, at)
    }

    /// The same, with requests by io_uring.
    pub fn by_uring(pool: &Pool, backing: &Path, at: &Path) -> Option<Mount> {
        let Some(_allowed) = Allowed::new() else {
            eprintln!("skipped: needs root, and a kernel with FUSE over io_uring: {SETTING}");
            return None;
        };
        Self::with("on", pool, backing, at)
    }

    fn with(fuse_uring: &str, pool: &Pool, backing: &Path, at: &Path) -> Option<Mount> {
        if let Err(error) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
            eprintln!("skipped: what needs FUSE: /dev/fuse: {error}");
            return None;
        }
        // SAFETY: plain call.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("skipped: mounting for the cases needs root");
            return None;
        }
        let mut command = Command::new(binary());
        command.arg("mount").arg(backing).arg(at).args([
            "--emulated",
            "--size",
            pool.size(),
            "--preset",
            "sqlite",
        ]);
        command
            .args(pool.cache())
            .args(["--fuse-uring", fuse_uring, "--allow-other", "--pool"])
            .arg(pool.path());
        bounded::run(&mut command, "seawall mount", LIMIT).expect_success("seawall mount");
        Some(Mount { at: at.to_owned() })
    }

    /// Where programs use it.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Unmounts, and waits until the log is closed.
    pub fn unmount(&self) -> bounded::Finished {
        bounded::run(Command::new(binary()).arg("umount").arg(&self.at), "seawall umount", LIMIT)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A test that failed is about to say so: nothing here may panic.
        let mut command = Command::new(binary());
        let done = command.arg("umount").arg(&self.at).stderr(std::process::Stdio::null()).status();
        if !done.is_ok_and(|status| status.success()) {
            let _ =
                Command::new("umount").arg("-l").arg(&self.at).stderr(std::process::Stdio::null()).status();
        }
    }
}
