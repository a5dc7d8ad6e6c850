//! The machine that is set up: its files, its programs, its kernel. Behind a trait, so that a plan can be tried on a
//! directory that stands for a machine.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use seawall_doctor::{Kernel, Root, Running};

/// Where programs of an administrator are, beyond PATH.
const MORE: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// This program, in a plan.
const US: &str = "seawall";

/// What a plan needs of a machine.
pub trait Host {
    /// Its files.
    fn root(&self) -> &Root;

    /// Runs a program with this input, and gives what it printed.
    ///
    /// # Errors
    /// What it said, if it failed.
    fn run(&self, words: &[String], input: &str) -> Result<String, String>;

    /// True if it has a program of this name.
    fn has_program(&self, name: &str) -> bool;

    /// What no file says.
    fn kernel(&self) -> &dyn Kernel;

    /// Waits.
    fn pause(&self, time: Duration);
}

/// The machine we run on.
pub struct This(Root);

impl Default for This {
    fn default() -> Self {
        Self(Root::at("/".as_ref()))
    }
}

impl Host for This {
    fn root(&self) -> &Root {
        &self.0
    }

    fn run(&self, words: &[String], input: &str) -> Result<String, String> {
        let (name, arguments) = words.split_first().ok_or("no program is named")?;
        let program = program(name).ok_or_else(|| format!("{name} is not installed"))?;
        // It may be asked for as another user's, too.
        let ours = |word: &String| if word == US { this_program() } else { word.into() };
        let mut child = Command::new(program)
            .args(arguments.iter().map(ours))
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{name}: {e}"))?;
        // One that reads nothing closes its end.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().map_err(|e| format!("{name}: {e}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = [text(&output.stderr), text(&output.stdout)].into_iter().find(|said| !said.is_empty());
        // Some print all they know about their options behind it.
        let said = said.map_or_else(
            || "it printed no message".into(),
            |said| said.lines().take(3).collect::<Vec<_>>().join("; "),
        );
        Err(format!("{said} ({})", output.status))
    }

    fn has_program(&self, name: &str) -> bool {
        program(name).is_some()
    }

    fn kernel(&self) -> &dyn Kernel {
        &Running
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| US.into())
}

fn program(name: &str) -> Option<PathBuf> {
    if name == US {
        return Some(this_program());
    }
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(MORE.iter().map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}
