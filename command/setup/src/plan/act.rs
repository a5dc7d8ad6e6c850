//! What a step does: a program, a file, a setting of the kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::host::Host;
use crate::{file, shell};

/// How long a device may take to appear, and how often one looks.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A program, with its input.
    Run {
        /// The command.
        words: Vec<String>,
        /// What it reads.
        input: String,
    },
    /// A new file. Nothing is replaced.
    Write {
        /// Where.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// A file that a [`Write`](Self::Write) made is removed.
    Remove {
        /// Where.
        path: PathBuf,
    },
    /// A line at a file's end.
    AddLine {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// Such a line is removed.
    RemoveLine {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// A directory, with those above it.
    Directory {
        /// Where.
        path: PathBuf,
    },
    /// A directory is removed if nothing is in it.
    RemoveDirectory {
        /// Where.
        path: PathBuf,
    },
    /// A setting of the kernel.
    Set {
        /// Its file.
        path: PathBuf,
        /// The value.
        value: String,
    },
    /// Somebody else makes it: udev, or the kernel.
    Await {
        /// What.
        path: PathBuf,
    },
    /// A file in there gets MAP_SYNC, or the step fails.
    ProveDax {
        /// The directory.
        directory: PathBuf,
    },
    /// Several, one after the other.
    All(Vec<Act>),
}

impl Act {
    /// A program without input.
    pub fn run(words: impl IntoIterator<Item: Into<String>>) -> Self {
        Self::Run { words: words.into_iter().map(Into::into).collect(), input: String::new() }
    }

    /// What one would type for it.
    pub fn lines(&self) -> Vec<String> {
        let path_of = |path: &Path| shell::quoted(&path.to_string_lossy());
        match self {
            Self::Run { words, input } if input.is_empty() => vec![shell::line(words)],
            Self::Run { words, input } => here_document(&shell::line(words), input),
            Self::Write { path, text } => here_document(&format!("cat > {}", path_of(path)), text),
            Self::Remove { path } => vec![format!("rm {}", path_of(path))],
            Self::AddLine { path, line } => {
                vec![format!("echo {} >> {}", shell::quoted(line), path_of(path))]
            }
            Self::RemoveLine { path, line } => {
                vec![format!("# remove the line {} from {}", shell::quoted(line), path.display())]
            }
            Self::Directory { path } => vec![format!("mkdir -p {}", path_of(path))],
            Self::RemoveDirectory { path } => vec![format!("rmdir {}", path_of(path))],
            Self::Set { path, value } => vec![format!("echo {} > {}", shell::quoted(value), path_of(path))],
            Self::Await { path } => vec![format!("until [ -e {} ]; do sleep 0.1; done", path_of(path))],
            Self::ProveDax { directory } => {
                vec![format!("# a file in {} must get MAP_SYNC (seawall doctor {0})", directory.display())]
            }
            Self::All(acts) => acts.iter().flat_map(Self::lines).collect(),
        }
    }

    /// Does it.
    pub(crate) fn carry_out(&self, host: &dyn Host) -> Result<(), Error> {
        let at = |path: &Path| host.root().host_path(path);
        match self {
            Self::Run { words, input } => {
                let failed = |why| Error::Step { step: shell::line(words), why };
                host.run(words, input).map(drop).map_err(failed)
            }
            Self::Write { path, text } => file::create(&at(path), text),
            Self::Remove { path } => gone(fs::remove_file(at(path))).map_err(Error::file(path)),
            Self::AddLine { path, line } => add_line(&at(path), line),
            Self::RemoveLine { path, line } => remove_line(&at(path), line),
            Self::Directory { path } => fs::create_dir_all(at(path)).map_err(Error::file(path)),
            Self::RemoveDirectory { path } => emptied(fs::remove_dir(at(path))).map_err(Error::file(path)),
            Self::Set { path, value } => fs::write(at(path), value).map_err(Error::file(path)),
            Self::Await { path } => wait(host, path),
            Self::ProveDax { directory } => prove_dax(host, directory),
            Self::All(acts) => acts.iter().try_for_each(|act| act.carry_out(host)),
        }
    }
}

fn here_document(command: &str, text: &str) -> Vec<String> {
    let mut lines = vec![format!("{command} <<'END'")];
    lines.extend(text.lines().map(str::to_owned));
    lines.push("END".to_owned());
    lines
}

/// Somebody removed it before us.
fn gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// Something else lies in there, so it stays.
fn emptied(done: io::Result<()>) -> io::Result<()> {
    gone(done).or_else(|e| if e.kind() == io::ErrorKind::DirectoryNotEmpty { Ok(()) } else { Err(e) })
}

fn add_line(path: &Path, line: &str) -> Result<(), Error> {
    let mut text = file::text(path)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    file::replace(path, &format!("{text}{line}\n"))
}

fn remove_line(path: &Path, line: &str) -> Result<(), Error> {
    let text = file::text(path)?;
    let kept: String =
        text.split_inclusive('\n').filter(|there| there.trim_end_matches('\n') != line).collect();
    if kept == text { Ok(()) } else { file::replace(path, &kept) }
}

fn wait(host: &dyn Host, path: &Path) -> Result<(), Error> {
    let mut waited = Duration::ZERO;
    while !host.root().has(path) {
        if waited >= PATIENCE {
            let why = format!("it has not appeared after {} s", PATIENCE.as_secs());
            return Err(Error::Step { step: path.display().to_string(), why });
        }
        host.pause(LOOK);
        waited += LOOK;
    }
    Ok(())
}

/// A mount may have the option and no file of it be accessed directly: XFS on a namespace in mode raw is mounted all the
/// same.
fn prove_dax(host: &dyn Host, directory: &Path) -> Result<(), Error> {
    let path = host.root().host_path(&directory.join(".seawall-dax"));
    let granted = fs::write(&path, [0; 4096]).and_then(|()| host.kernel().grants_map_sync(&path));
    let removed = fs::remove_file(&path);
    let step = || format!("DAX in {}", directory.display());
    match granted.and_then(|granted| removed.map(|()| granted)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Step {
            step: step(),
            why: "a file there gets no MAP_SYNC: the file system is not accessed directly".into(),
        }),
        Err(e) => Err(Error::Step { step: step(), why: e.to_string() }),
    }
}
