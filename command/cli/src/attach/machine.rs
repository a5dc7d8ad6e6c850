//! The machine that services are attached on: its files below a root, its systemd if it runs.
//!
//! With `--root DIR` everything is read and written below DIR and no systemd is asked: for images, and tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use seawall_media::durable;

/// Where units are looked for, the first one found wins (systemd.unit(5)).
pub const UNIT_DIRS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A machine.
pub struct Machine {
    root: Option<PathBuf>,
}

impl Machine {
    /// This one, or what lies below `root`.
    pub fn new(root: Option<&Path>) -> Self {
        Self { root: root.map(Path::to_owned) }
    }

    /// Where a path of the machine is found by us.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match &self.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    /// The real path of something on the machine, as the machine sees it.
    ///
    /// # Errors
    /// If it is not there.
    pub fn real(&self, path: &Path) -> std::io::Result<PathBuf> {
        let real = fs::canonicalize(self.at(path))?;
        let Some(root) = &self.root else { return Ok(real) };
        let root = fs::canonicalize(root)?;
        Ok(Path::new("/").join(real.strip_prefix(root).unwrap_or(&real)))
    }

    /// True for this machine, whose systemd can be asked.
    pub fn is_live(&self) -> bool {
        self.root.is_none()
    }

    /// A file's text; `None` if there is none.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        let at = self.at(path);
        match fs::read_to_string(&at) {
            Ok(text) => Ok(Some(text)),
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(e) => Err(e).with_context(|| format!("cannot read {}", at.display())),
        }
    }

    /// Replaces a file as a whole, keeping the owner of one that is there, and makes its directory.
    ///
    /// # Errors
    /// What could not be done.
    pub fn write(&self, path: &Path, text: &str) -> Result<()> {
        let at = self.at(path);
        let doing = || format!("cannot write {}", at.display());
        let dir = at.parent().with_context(doing)?;
        fs::create_dir_all(dir).with_context(doing)?;
        let like_the_old = |file: &fs::File| {
            use std::os::unix::fs::{MetadataExt, fchown};
            let Ok(old) = fs::metadata(&at) else { return Ok(()) };
            fchown(file, Some(old.uid()), Some(old.gid()))?;
            file.set_permissions(old.permissions())
        };
        durable::replace(&at, &at.with_extension("seawall-new"), text.as_bytes(), like_the_old)
            .with_context(doing)
    }

    /// Removes a file, and its directory if that is empty then.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self, path: &Path) -> Result<()> {
        let at = self.at(path);
        match fs::remove_file(&at) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("cannot remove {}", at.display()));
            }
            _ => {}
        }
        if let Some(dir) = at.parent() {
            // It is not empty if others have drop-ins there.
            let _ = fs::remove_dir(dir);
        }
        Ok(())
    }

    /// systemd reads its units again.
    ///
    /// # Errors
    /// What systemctl said.
    pub fn reload(&self) -> Result<()> {
        if self.is_live() { systemctl(&["daemon-reload"]) } else { Ok(()) }
    }

    /// True while the service runs, starts or stops.
    pub fn is_running(&self, unit: &str) -> bool {
        let state = ["active", "activating", "reloading", "deactivating"];
        self.is_live() && state.contains(&show(unit, "ActiveState").as_str())
    }

    /// The service's main process.
    pub fn main_pid(&self, unit: &str) -> Option<u32> {
        let pid = if self.is_live() { show(unit, "MainPID").parse().ok() } else { None };
        pid.filter(|pid| *pid != 0)
    }

    /// Changes need root and, here, a systemd that runs.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn check_may_change(&self) -> Result<()> {
        if !self.is_live() {
            return Ok(());
        }
        // sd_booted(3).
        if !Path::new("/run/systemd/system").is_dir() {
            bail!(
                "no systemd runs here, so there is no service to attach to: start the database with `seawall run`, \
                 or give --root for an image"
            );
        }
        if !rustix::process::geteuid().is_root() {
            bail!("only root may change units: use sudo");
        }
        Ok(())
    }
}

fn show(unit: &str, property: &str) -> String {
    let output = Command::new("systemctl").args(["show", "--value", "-p", property, "--", unit]).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// Runs systemctl.
///
/// # Errors
/// If it fails, or is not there.
pub fn systemctl(arguments: &[&str]) -> Result<()> {
    let status = Command::new("systemctl").args(arguments).status().context("cannot start systemctl")?;
    if !status.success() {
        bail!("systemctl {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}
