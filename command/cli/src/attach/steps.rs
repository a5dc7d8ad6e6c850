//! What attaching and detaching do to a machine, as a list: a dry run tells the steps, any other run takes them. So the one says
//! what the other does.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seawall_core::path_text::Shown;
use serde_json::{Value, json};

use super::cached;
use super::machine::{Machine, systemctl};
use super::pools::NewPool;
use super::unit::made;

/// One step.
pub enum Step<'a> {
    /// A pool is made, and given to the database's user.
    MakePool(NewPool<'a>),
    /// A directory for the block cache is made, and given to this user.
    MakeDirectory(PathBuf, u32),
    /// A file gets this text.
    Write(PathBuf, String),
    /// A file is removed.
    Remove(PathBuf),
    /// A block cache is removed, and the directory that was made for it if nothing else is there.
    RemoveCache {
        /// Where it is.
        path: PathBuf,
        /// The directory.
        dir: PathBuf,
    },
    /// A unit that is ours is stopped.
    Stop(String),
    /// systemd reads its units again.
    Reload,
}

/// What ends and removes a unit of ours.
pub fn without_unit(machine: &Machine, unit: String) -> Vec<Step<'static>> {
    let path = made(&unit);
    let is_there = machine.at(&path).exists();
    let steps =
        [machine.is_running(&unit).then_some(Step::Stop(unit)), is_there.then_some(Step::Remove(path))];
    steps.into_iter().flatten().collect()
}

impl Step<'_> {
    /// Takes it; whether there was something to do. If a block cache cannot be removed, it says why and goes on.
    ///
    /// # Errors
    /// What could not be done.
    pub fn take(&self, machine: &Machine) -> Result<bool> {
        match self {
            Self::MakePool(pool) => pool.make(machine)?,
            Self::MakeDirectory(path, uid) => cached::make_directory(machine, path, *uid)?,
            Self::Write(path, text) => machine.write(path, text)?,
            Self::Remove(path) => machine.remove(path)?,
            Self::RemoveCache { path, dir } => return Ok(cached::remove(machine, path, dir)),
            Self::Stop(unit) => systemctl(&["stop", unit])?,
            Self::Reload => machine.reload()?,
        }
        Ok(true)
    }

    /// What is done, behind "would".
    pub fn words(&self) -> String {
        match self {
            Self::MakePool(pool) => format!("make the pool {} for {}", pool.path().display(), pool.owner()),
            Self::MakeDirectory(path, uid) => {
                format!(
                    "make the directory {} for the block cache, and give it to {}",
                    path.display(),
                    crate::user::name(*uid)
                )
            }
            Self::Write(path, text) => format!("write {}:\n\n{text}", path.display()),
            Self::Remove(path) | Self::RemoveCache { path, .. } => format!("remove {}", path.display()),
            Self::Stop(unit) => format!("stop {unit}"),
            Self::Reload => "have systemd read its units again".into(),
        }
    }

    fn made(&self) -> Option<&Path> {
        match self {
            Self::MakePool(pool) => Some(pool.path()),
            Self::MakeDirectory(path, _) => Some(path),
            _ => None,
        }
    }

    /// What is not there any more after it.
    pub fn removed(&self) -> Option<&Path> {
        match self {
            Self::Remove(path) | Self::RemoveCache { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// What is written, made, removed and stopped.
pub fn json(steps: &[Step<'_>]) -> Value {
    let files = steps.iter().filter_map(|step| match step {
        Step::Write(path, text) => Some(json!({ "path": Shown(path), "text": text })),
        _ => None,
    });
    let stopped = steps.iter().filter_map(|step| match step {
        Step::Stop(unit) => Some(unit),
        _ => None,
    });
    json!({
        "files": files.collect::<Vec<_>>(),
        "made": steps.iter().filter_map(Step::made).map(Shown).collect::<Vec<_>>(),
        "removed": steps.iter().filter_map(Step::removed).map(Shown).collect::<Vec<_>>(),
        "stopped": stopped.collect::<Vec<_>>(),
    })
}
