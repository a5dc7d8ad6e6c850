//! Registered directories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;

use seawall_core::table::{self, RootEntry, TableError};
use seawall_media::identity;
use seawall_media::locks::lock;
use seawall_wire::shm::{Policy, Preset};
use serde::{Deserialize, Serialize};

use crate::errors::DaemonError;
use crate::guard::{self, Claim, GuardError};
use crate::state::Daemon;
use crate::{closing, evict, register};

/// The body of an AddRoot request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddRoot {
    /// Name of the preset.
    pub preset: String,
    /// Name of the policy.
    pub policy: String,
    /// The directory whose files are managed.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// The database's directory, where the guard lives.
    #[serde(with = "seawall_core::path_text")]
    pub data: PathBuf,
}

/// Roots by number.
#[derive(Default)]
pub(crate) struct Roots(Mutex<BTreeMap<u32, RootEntry>>);

impl Roots {
    /// The roots of a pool.
    pub fn new(roots: Vec<(u32, RootEntry)>) -> Self {
        Self(Mutex::new(roots.into_iter().collect()))
    }

    pub fn get(&self, i: u32) -> Option<RootEntry> {
        lock(&self.0).get(&i).cloned()
    }

    pub fn all(&self) -> BTreeMap<u32, RootEntry> {
        lock(&self.0).clone()
    }
}

/// Registers a directory, in the pool and in the run-time memory, for the process `by`; a tablespace
/// is there for whoever named its database.
pub(crate) fn add(daemon: &Daemon, wanted: &AddRoot, by: Option<u32>) -> Result<u32, DaemonError> {
    let (root, dev) = examine(wanted)?;
    refuse_other_pool(&root, &daemon.claim())?;
    let _alone = lock(&daemon.registering);
    withdraw_other_policies(daemon, &root, by)?;
    withdraw_replaced(daemon, &root);
    withdraw_unnamed(daemon);
    let i = match table::add_root(&daemon.pool, &root) {
        Err(TableError::Full(_)) if forget_gone(daemon)? > 0 => table::add_root(&daemon.pool, &root)?,
        done => done?,
    };
    if let Some(pid) = by {
        daemon.namers.add(&root, pid);
    }
    if let Some(slot) = daemon.engine.shm().root(i).filter(|slot| slot.kind().is_none()) {
        slot.publish(root.preset, root.policy, root.path.as_os_str().as_bytes(), dev);
    }
    lock(&daemon.roots.0).insert(i, root);
    Ok(i)
}

/// Files below these are managed. The pool's table has more: what was ever registered, for recovery.
pub(crate) fn in_use(daemon: &Daemon) -> Vec<(u32, RootEntry)> {
    let shm = daemon.engine.shm();
    let is_in_use = |i: u32| shm.root(i).is_some_and(|slot| slot.kind().is_some());
    daemon.roots.all().into_iter().filter(|(i, _)| is_in_use(*i)).collect()
}

/// Frees the entries of directories that were removed, or replaced by others of their name: nothing can be
/// registered below them any more. Those that a file's entry refers to stay. Returns how many it freed.
fn forget_gone(daemon: &Daemon) -> Result<usize, DaemonError> {
    let used: BTreeSet<u32> = table::files(&daemon.pool)?.iter().map(|file| file.root).collect();
    let is_there = |root: &RootEntry| {
        File::open(&root.path).is_ok_and(|dir| identity(&dir).is_ok_and(|found| found == root.identity))
    };
    let mut entries = lock(&daemon.roots.0);
    let gone = entries.iter().filter(|(i, root)| !used.contains(i) && !is_there(root));
    let gone: Vec<u32> = gone.map(|(i, _)| *i).collect();
    for i in &gone {
        withdraw(daemon, *i);
        table::forget_root(&daemon.pool, *i)?;
        entries.remove(i);
    }
    Ok(gone.len())
}

fn withdraw(daemon: &Daemon, i: u32) {
    if let Some(slot) = daemon.engine.shm().root(i) {
        slot.withdraw();
    }
}

/// A database has one policy at a time: roots of it with another one are withdrawn, their files forgotten.
/// Refused while a process may use them, or a living one other than `by` named them.
fn withdraw_other_policies(daemon: &Daemon, root: &RootEntry, by: Option<u32>) -> Result<(), DaemonError> {
    let others = |r: &RootEntry| r.data == root.data && r.policy != root.policy;
    for (i, other) in in_use(daemon).into_iter().filter(|(_, r)| others(r)) {
        let files: Vec<_> = daemon.files.all().into_iter().filter(|file| file.root == i).collect();
        let mut users = if files.is_empty() { Vec::new() } else { closing::users(daemon) };
        users.extend(daemon.namers.of(&other).into_iter().filter(|pid| Some(*pid) != by));
        if !users.is_empty() {
            let why = format!(
                "processes {users:?} use it with --policy {}: stop them first, or use that policy",
                other.policy.name()
            );
            return Err(DaemonError::Directory { path: root.data.clone(), why });
        }
        for file in files {
            daemon.without_log(&file, || ());
            if daemon.engine.is_dirty(file.reference) {
                return Err(DaemonError::Undrained { files: vec![file.path.display().to_string()] });
            }
            register::forget(daemon, file.reference.slot);
        }
        withdraw(daemon, i);
    }
    Ok(())
}

/// A directory that was made again takes the place of the one that had its name: a file below it must not be
/// registered as that one's, where recovery would look for it in vain.
fn withdraw_replaced(daemon: &Daemon, root: &RootEntry) {
    let is_replaced = |r: &RootEntry| r.path == root.path && r.identity != root.identity;
    in_use(daemon).iter().filter(|(_, r)| is_replaced(r)).for_each(|(i, _)| withdraw(daemon, *i));
}

/// Withdraws the directories that nobody who runs has named. One that a process may use after all stays, and so
/// does one with a file that cannot be given up. The caller holds `registering`.
pub(crate) fn withdraw_unnamed(daemon: &Daemon) {
    let roots = in_use(daemon);
    let unnamed: Vec<u32> =
        roots.iter().filter(|(_, root)| daemon.namers.of(root).is_empty()).map(|(i, _)| *i).collect();
    if unnamed.is_empty() || !daemon.namers.account_for_all(daemon) {
        return;
    }
    for i in unnamed {
        let mut files = daemon.files.all().into_iter().filter(|file| file.root == i);
        if files.all(|file| evict::evict(daemon, file.reference.slot)) {
            withdraw(daemon, i);
        }
    }
}

/// What the directory is, if its files can be managed at all.
fn examine(wanted: &AddRoot) -> Result<(RootEntry, u64), DaemonError> {
    let bad = |why: String| DaemonError::Directory { path: wanted.path.clone(), why };
    let preset =
        Preset::from_name(&wanted.preset).ok_or_else(|| bad(format!("no preset {:?}", wanted.preset)))?;
    let policy =
        Policy::from_name(&wanted.policy).ok_or_else(|| bad(format!("no policy {:?}", wanted.policy)))?;
    let missing = |e| bad(format!("{e}: has the directory moved? Give the present one with --data"));
    let path = std::fs::canonicalize(&wanted.path).map_err(missing)?;
    let data = std::fs::canonicalize(&wanted.data).map_err(missing)?;
    let dir = File::open(&path).map_err(missing)?;
    let stat = dir.metadata().map_err(missing)?;
    if !stat.is_dir() {
        return Err(bad("is not a directory".into()));
    }
    let identity = identity(&dir).map_err(|e| {
        bad(format!(
            "{e}, so its files could not be found again after a crash: put the data on ext4, XFS or btrfs"
        ))
    })?;
    let me = rustix::process::geteuid().as_raw();
    if me != 0 && stat.uid() != me {
        return Err(bad(format!(
            "belongs to user {}, but Seawall runs as user {me} and could not recover its files: run it as \
             their owner (as root: --user NAME)",
            stat.uid()
        )));
    }
    Ok((RootEntry { preset, policy, path, uid: stat.uid(), data, identity }, stat.dev()))
}

fn refuse_other_pool(root: &RootEntry, claim: &Claim) -> Result<(), GuardError> {
    for at in guard::find(root.preset, &root.data) {
        let found = guard::claimed(&at);
        if let Some(other) = found.filter(|other| other.uuid != claim.uuid) {
            return Err(GuardError::OtherPool { at, pool: other.pool.display().to_string() });
        }
    }
    Ok(())
}
