//! Registered directories.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use seawall_core::table::{self, RootEntry, TableError};
use seawall_media::identity;
use seawall_wire::shm::{Policy, Preset, Shm};
use serde::{Deserialize, Serialize};

use crate::errors::DaemonError;
use crate::guard::{self, Claim, GuardError};
use crate::parts::roots::{RecoveryGoal, Roots, withdraw};
use crate::state::Daemon;
use crate::{evict, forget, users};

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
    /// How long the recovery of the database may take, if its user said so.
    #[serde(default)]
    pub recovery: Option<RecoveryGoal>,
}

/// Registers a directory, in the pool and in the run-time memory, for the process `by`; a tablespace
/// is there for whoever named its database.
pub(crate) fn add(daemon: &Daemon, wanted: &AddRoot, by: Option<u32>) -> Result<u32, DaemonError> {
    let (root, dev) = examine(wanted)?;
    refuse_other_pool(&root, &daemon.claim())?;
    let _alone = daemon.registering.turn();
    withdraw_other_policies(daemon, &root, by)?;
    withdraw_replaced(&daemon.roots, daemon.engine.shm(), &root);
    if let Some(pid) = by {
        // Before others are withdrawn: a database that was killed and starts again finds its files as they were.
        daemon.namers.add(&root, pid);
    }
    withdraw_unnamed(daemon);
    let i = match table::add_root(&daemon.pool, &root) {
        Err(TableError::Full(_)) if daemon.roots.forget_gone(&daemon.pool, daemon.engine.shm())? > 0 => {
            table::add_root(&daemon.pool, &root)?
        }
        done => done?,
    };
    if let Some(slot) = daemon.engine.shm().root(i).filter(|slot| slot.kind().is_none()) {
        slot.publish(root.preset, root.policy, root.path.as_os_str().as_bytes(), dev);
    }
    daemon.roots.insert(i, root);
    daemon.roots.set_goal(i, wanted.recovery);
    daemon.synced.ask();
    Ok(i)
}

/// A database has one policy at a time: roots of it with another one are withdrawn, their files forgotten.
/// Refused while a process may use them, or a living one other than `by` named them.
fn withdraw_other_policies(daemon: &Daemon, root: &RootEntry, by: Option<u32>) -> Result<(), DaemonError> {
    let others = |r: &RootEntry| r.data == root.data && r.policy != root.policy;
    for (i, other) in daemon.roots.in_use(daemon.engine.shm()).into_iter().filter(|(_, r)| others(r)) {
        let files: Vec<_> = daemon.files.all().into_iter().filter(|file| file.root == i).collect();
        let mut users = if files.is_empty() { Vec::new() } else { users::users(daemon) };
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
            forget::forget(daemon, file.reference.slot);
        }
        withdraw(daemon.engine.shm(), i);
    }
    Ok(())
}

/// A directory that was made again takes the place of the one that had its name: a file below it must not be
/// registered as that one's, where recovery would look for it in vain.
fn withdraw_replaced(roots: &Roots, shm: &Shm, root: &RootEntry) {
    let is_replaced = |r: &RootEntry| r.path == root.path && r.identity != root.identity;
    roots.in_use(shm).iter().filter(|(_, r)| is_replaced(r)).for_each(|(i, _)| withdraw(shm, *i));
}

/// Withdraws the directories that nobody who runs has named. One that a process may use after all stays, and so
/// does one with a file that cannot be given up. The caller has the turn of `registering`.
pub(crate) fn withdraw_unnamed(daemon: &Daemon) {
    let roots = daemon.roots.in_use(daemon.engine.shm());
    let unnamed: Vec<u32> =
        roots.iter().filter(|(_, root)| daemon.namers.of(root).is_empty()).map(|(i, _)| *i).collect();
    if unnamed.is_empty() || !are_all_accounted_for(daemon) {
        return;
    }
    for i in unnamed {
        let mut files = daemon.files.all().into_iter().filter(|file| file.root == i);
        if files.all(|file| evict::evict(daemon, file.reference.slot)) {
            withdraw(daemon.engine.shm(), i);
        }
    }
}

/// True if every process that uses the log, or is about to, named a directory or was started by one that did.
fn are_all_accounted_for(daemon: &Daemon) -> bool {
    let known = daemon.namers.with_descendants();
    let joining = daemon.strangers().into_iter().filter(|pid| daemon.will_join(*pid));
    users::users(daemon).into_iter().chain(joining).all(|pid| known.contains(&pid))
}

/// What the directory is, if its files can be managed at all.
fn examine(wanted: &AddRoot) -> Result<(RootEntry, u64), DaemonError> {
    let bad = |why: String| DaemonError::Directory { path: wanted.path.clone(), why };
    let preset = Preset::from_name(&wanted.preset)
        .ok_or_else(|| bad(format!("there is no preset {:?}", wanted.preset)))?;
    let policy = Policy::from_name(&wanted.policy)
        .ok_or_else(|| bad(format!("there is no policy {:?}", wanted.policy)))?;
    let missing = |e| {
        bad(format!("cannot find it (if the directory has moved, give the present one with --data): {e}"))
    };
    let path = std::fs::canonicalize(&wanted.path).map_err(missing)?;
    let data = std::fs::canonicalize(&wanted.data).map_err(missing)?;
    let dir = File::open(&path).map_err(missing)?;
    let stat = dir.metadata().map_err(missing)?;
    if !stat.is_dir() {
        return Err(bad("it is not a directory".into()));
    }
    let identity = identity(&dir).map_err(|e| {
        bad(format!(
            "{e}, so its files could not be found again after a crash: put the data on ext4, XFS or btrfs"
        ))
    })?;
    let me = rustix::process::geteuid().as_raw();
    if me != 0 && stat.uid() != me {
        return Err(bad(format!(
            "it belongs to user {}, but Seawall runs as user {me} and could not recover its files: run \
             Seawall as their owner (as root: --user NAME)",
            stat.uid()
        )));
    }
    Ok((RootEntry { preset, policy, path, uid: stat.uid(), data, identity }, stat.dev()))
}

/// Of virtual disks each has its guard, and a directory may have those of several logs: on shared storage, of several hosts.
fn refuse_other_pool(root: &RootEntry, claim: &Claim) -> Result<(), GuardError> {
    if root.preset == Preset::Disk {
        return Ok(());
    }
    for at in guard::find(root.preset, &root.data) {
        let found = guard::claimed(&at);
        if let Some(other) = found.filter(|other| other.uuid != claim.uuid) {
            return Err(GuardError::OtherPool { at, pool: other.pool.display().to_string() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::{closing, register, start};

    fn named(dir: &tempfile::TempDir) -> AddRoot {
        let path = dir.path().to_owned();
        AddRoot {
            preset: "sqlite".into(),
            policy: "tail".into(),
            path: path.clone(),
            data: path,
            recovery: None,
        }
    }

    fn sleeping() -> Child {
        Command::new("sleep").arg("60").spawn().expect("started")
    }

    fn end(process: &mut Child) {
        process.kill().expect("killed");
        process.wait().expect("reaped");
    }

    /// The time from a crash to the first transaction included syncs of all files, one after the other.
    #[test]
    fn regression_a_database_that_starts_again_after_a_kill_finds_its_files_as_they_were() {
        let ram = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let [data, other] = [(); 2].map(|()| tempfile::tempdir_in("/var/tmp").expect("a directory"));
        let mut daemon = start::without_threads(&ram);
        // Nobody would answer.
        daemon.watch = crate::parts::watch::Watch::Blind;
        let mut first = sleeping();
        add(&daemon, &named(&data), Some(first.id())).expect("added");
        let file = File::create(data.path().join("a-wal")).expect("created");
        let is_known =
            register::register(&daemon, &file.try_clone().expect("a copy").into()).ok().expect("managed");
        drop(file);
        let is_there = || daemon.files.get(is_known.slot).is_some_and(|file| file.reference == is_known);
        end(&mut first);
        let mut second = sleeping();
        add(&daemon, &named(&data), Some(second.id())).expect("added again");
        assert!(is_there(), "nobody else could have used it meanwhile");
        end(&mut second);
        add(&daemon, &named(&other), Some(std::process::id())).expect("added");
        assert!(!is_there(), "nobody who lives has named it");
        closing::forget_boot(&daemon);
        start::release(&daemon);
    }
}
