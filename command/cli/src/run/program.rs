//! The program to run: found, and looked at before it is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::elf::{self, Kind};

/// Debian keeps PostgreSQL's server programs here, off the PATH: one directory per version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A command that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct NotRunnable {
    /// Exit code, as shells have it.
    pub code: u8,
    text: String,
}

impl NotRunnable {
    /// The kernel would not execute it.
    pub fn new(text: String) -> Self {
        Self { code: 126, text }
    }
}

/// A program.
pub struct Program {
    /// As it was called.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Why it cannot be preloaded, if so.
    pub unprotected: Option<&'static str>,
}

impl Program {
    /// Finds the command's program as a shell would, and PostgreSQL's where Debian has it.
    ///
    /// # Errors
    /// [`NotRunnable`].
    pub fn find(command: &[OsString]) -> Result<Self> {
        let called = command.first().context("no command")?;
        let path = locate(called)?;
        let unprotected = elf::why_not(&path).or_else(|| interpreter_trouble(&path));
        let name = Path::new(called).file_name().unwrap_or(called).to_string_lossy().into_owned();
        Ok(Self { name, path, unprotected })
    }

    /// Says that the program goes without Seawall, and what that means.
    pub fn warn(&self) {
        if let Some(why) = self.unprotected {
            errln!(
                "seawall: WARNING: {} cannot use Seawall: {why}. It runs as it would without Seawall: its \
                 fsyncs wait for the disk. Programs that it starts can be protected.",
                self.path.display()
            );
        }
    }
}

fn interpreter_trouble(path: &Path) -> Option<&'static str> {
    match elf::kind(path) {
        Ok(Kind::Script(interpreter)) => elf::why_not(&interpreter),
        _ => None,
    }
}

fn locate(called: &OsStr) -> Result<PathBuf, NotRunnable> {
    let text = Path::new(called).display();
    if Path::new(called).components().count() > 1 || called.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(called);
        return match is_executable(&path) {
            true => Ok(path),
            false if path.exists() => Err(NotRunnable {
                code: 126,
                text: format!("{text} is not an executable file (for this user)"),
            }),
            false => Err(NotRunnable { code: 127, text: format!("{text}: there is no such file") }),
        };
    }
    on_path(called).or_else(|| debian(called)).ok_or_else(|| NotRunnable {
        code: 127,
        text: format!("{text}: not found on PATH: give its full path"),
    })
}

fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| is_executable(path))
}

/// The newest version's.
fn debian(name: &OsStr) -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).ok()?.flatten();
    let version = |dir: &Path| dir.file_name()?.to_str()?.parse::<u32>().ok();
    let with = |dir: PathBuf| Some((version(&dir)?, dir.join("bin").join(name)));
    let found = versions.filter_map(|e| with(e.path())).filter(|(_, path)| is_executable(path));
    found.max().map(|(_, path)| path)
}

fn is_executable(path: &Path) -> bool {
    let any = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    any && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let find = |name: &str| Program::find(&[name.into()]);
        assert_eq!(find("/bin/sh").expect("found").name, "sh");
        assert!(find("true").expect("found").path.is_absolute());
        let code = |name: &str| {
            let error = find(name).err().expect("an error");
            error.downcast_ref::<NotRunnable>().expect("of this kind").code
        };
        assert_eq!(code("no-such-program-here"), 127);
        assert_eq!(code("/no/such/program"), 127);
        assert_eq!(code("/etc/passwd"), 126);
    }
}
