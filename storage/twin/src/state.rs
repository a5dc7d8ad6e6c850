//! What must be known after a crash: which directory is the current one.
//!
//! ```text
//! STATE/lock         held by the supervisor
//! STATE/state.json   this, replaced as a whole, durable before anybody acts on it
//! STATE/N/           the directory of the N-th server that was started as a twin
//! STATE/N.conf       what was added to that server's configuration (with its token: mode 0600)
//! ```

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

/// The contents of `state.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    format: u32,
    /// The directory that the server's configuration names.
    pub home: PathBuf,
    /// The directory that has everything that was acknowledged.
    pub current: PathBuf,
    /// The number of the last twin.
    pub last_twin: u64,
    /// How often a twin took over.
    pub takeovers: u64,
    /// The twin in the current directory was not seen to serve yet: it may still be a replica.
    pub is_promoting: bool,
}

/// The state's directory, while this process alone may change it.
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes it if it is not there, and takes its lock.
    ///
    /// # Errors
    /// If another supervisor has it.
    pub fn open(path: &Path) -> Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| path.display().to_string())?;
        let path = std::fs::canonicalize(path)?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join("lock"));
        let lock = lock.with_context(|| path.join("lock").display().to_string())?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("another `seawall twin` runs with {}", path.display());
        }
        Ok(Self { path, _lock: lock })
    }

    /// True if a supervisor has it.
    pub fn is_used(path: &Path) -> bool {
        File::open(path.join("lock"))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the state; a new one begins with the directory `home` as the current one.
    ///
    /// # Errors
    /// If it cannot be read, or is of a server with another directory.
    pub fn load(&self, home: &Path) -> Result<State> {
        let Some(state) = read(&self.path)? else {
            let home = home.to_owned();
            let state = State {
                format: FORMAT,
                current: home.clone(),
                home,
                last_twin: 0,
                takeovers: 0,
                is_promoting: false,
            };
            self.store(&state)?;
            return Ok(state);
        };
        ensure!(
            state.home == home,
            "{} belongs to the server whose `dir` is {}, not {}",
            self.path.display(),
            state.home.display(),
            home.display()
        );
        Ok(state)
    }

    /// Replaces the state. It is durable when this returns.
    ///
    /// # Errors
    /// If it is not.
    pub fn store(&self, state: &State) -> Result<()> {
        let text = serde_json::to_vec_pretty(state)?;
        replace(&self.path.join("state.json"), &text)
            .context("cannot note which directory is the current one")
    }

    /// The directory of a twin, and what is added to its configuration.
    pub fn twin(&self, number: u64) -> (PathBuf, PathBuf) {
        (self.path.join(number.to_string()), self.path.join(format!("{number}.conf")))
    }

    /// The directories of twins.
    pub fn twins(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_twins = |path: &PathBuf| path.file_name().is_some_and(is_number);
        entries.filter(is_twins).collect()
    }

    /// Removes what former twins left, but the current directory.
    pub fn tidy(&self, state: &State) {
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_twins = path.file_stem().is_some_and(is_number);
            if is_twins && path != state.current && path != state.current.with_extension("conf") {
                let _ =
                    if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            }
        }
    }
}

fn is_number(name: &OsStr) -> bool {
    name.to_string_lossy().parse::<u64>().is_ok()
}

/// The state in a directory, if there is one.
///
/// # Errors
/// If it cannot be read.
pub fn read(directory: &Path) -> Result<Option<State>> {
    let path = directory.join("state.json");
    let text = match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| path.display().to_string())?,
    };
    let state: State = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    ensure!(state.format == FORMAT, "{} is of another version of Seawall", path.display());
    Ok(Some(state))
}

/// Puts a durable file in the place of another one, as a whole.
///
/// # Errors
/// If it is not durable.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    sync_directory(path.parent().context("the file is not in a directory")?)
}

/// The names in a directory are durable.
///
/// # Errors
/// If they are not.
pub fn sync_directory(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).with_context(|| path.display().to_string())
}

/// Random hexadecimal digits.
///
/// # Errors
/// If the kernel has none.
pub fn random_hex(digits: usize) -> Result<String> {
    let mut bytes = vec![0; digits / 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_supervisor_has_it_and_finds_what_was_noted() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("state");
        let opened = Directory::open(&at).expect("opened");
        assert!(Directory::open(&at).is_err() && Directory::is_used(&at));
        let mut state = opened.load(Path::new("/home")).expect("made");
        (state.current, state.last_twin) = (opened.twin(3).0, 4);
        opened.store(&state).expect("stored");
        assert!(opened.load(Path::new("/other")).is_err(), "it is another server's");
        for n in 2..=4 {
            std::fs::create_dir(opened.twin(n).0).expect("made");
        }
        let path = opened.path().to_owned();
        drop(opened);
        let opened = Directory::open(&at).expect("opened again");
        let state = opened.load(Path::new("/home")).expect("read");
        assert_eq!((&state.current, state.last_twin), (&path.join("3"), 4));
        opened.tidy(&state);
        assert!(path.join("3").exists() && !path.join("2").exists() && !path.join("4").exists());
    }
}
