//! The user that the databases run as.
//!
//! PostgreSQL refuses root. On a machine where we are root, everything measured (on every side, the
//! raw writes too) runs as the distribution's `postgres` user; otherwise as ourselves.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The user of all measured programs.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Set when we are root and step down.
    other: Option<(u32, u32)>,
    /// The user's name.
    pub name: String,
}

impl Identity {
    /// Finds out.
    pub fn find() -> Result<Self> {
        // SAFETY: takes and returns integers.
        let uid = unsafe { libc::geteuid() };
        if uid != 0 {
            return Ok(Identity { other: None, name: format!("uid {uid}") });
        }
        let (uid, gid) = lookup("postgres").context(
            "there is no user `postgres`, and PostgreSQL refuses root: install it \
             (apt-get install postgresql) or run this as an ordinary user",
        )?;
        Ok(Identity { other: Some((uid, gid)), name: "postgres".to_owned() })
    }

    /// Ourselves, whoever that is.
    pub fn ourselves() -> Self {
        Identity { other: None, name: "own".to_owned() }
    }

    /// Whether programs run as somebody else than us.
    pub fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// The user and group that programs step down to, where we are root.
    pub fn ids(&self) -> Option<(u32, u32)> {
        self.other
    }

    /// Makes a command run as this user.
    pub fn apply(&self, command: &mut Command) {
        if let Some((uid, gid)) = self.other {
            command.uid(uid).gid(gid);
        }
    }

    /// A command as this user, without variables that would steer databases or loaders.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let steering = name.as_encoded_bytes().starts_with(b"PG") || name == "LD_PRELOAD";
            if steering {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").current_dir("/");
        self.apply(&mut command);
        command
    }

    /// Gives a file or directory to this user.
    pub fn own(&self, path: &Path) -> Result<()> {
        match self.other {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot change the owner of {}", path.display())),
            None => Ok(()),
        }
    }

    /// Whether this user can write in `dir` (each directory above it counts).
    pub fn can_write(&self, dir: &Path) -> bool {
        let mut test = Command::new("/usr/bin/test");
        test.arg("-w").arg(dir).arg("-a").arg("-x").arg(dir).stdin(Stdio::null()).current_dir("/");
        self.apply(&mut test);
        test.status().is_ok_and(|status| status.success())
    }

    /// Creates a directory of this user.
    pub fn create_dir(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        self.own(dir)
    }
}

fn lookup(name: &str) -> Option<(u32, u32)> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is NUL-terminated; called before this program has a second thread.
    let entry = unsafe { libc::getpwnam(name.as_ptr()) };
    // SAFETY: a non-null result points to a static struct that is valid until the next call.
    unsafe { entry.as_ref() }.map(|e| (e.pw_uid, e.pw_gid))
}
