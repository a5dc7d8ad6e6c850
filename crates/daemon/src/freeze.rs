//! Freeze: for as long as somebody copies the files, or takes a snapshot of their file system, nothing of them is in the
//! log and no guard is up. So what is copied is what the bare database's own crash recovery understands, on any host.
//!
//! ```text
//!            new files are told to ask later
//!            every file leaves the log (a real sync), marked FROZEN         guards up again
//!   in use ───────────────────────────────────────────────────▶ frozen ───────────────────▶ in use
//!            guards down                                         fsyncs are real      the mark is taken off
//! ```
//!
//! Invariant: a frozen file has no live record and gets none, whoever dies, until its guard is up again. The mark lies in
//! the run-time memory, so it outlives this daemon: the next one raises the guards and ends the freeze.
//!
//! The database never sees it: its syncs go to the disk meanwhile, which is never worse than without Seawall.
//!
//! Not handled here: data under the policy `atomic`, whose databases may rely on pages that cannot be torn: refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall_core::file::KeptOut;
use seawall_core::table::RootEntry;
use seawall_wire::shm::{Policy, Shm};
use serde::{Deserialize, Serialize};

use crate::errors::DaemonError;
use crate::parts::freeze::{Freeze, Frozen};
use crate::parts::roots::Roots;
use crate::state::Daemon;
use crate::{aside, destaging};

/// The body of a Freeze request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Asked {
    /// Freeze.
    Freeze(Wanted),
    /// End it.
    Thaw,
}

/// What is to be frozen, and for how long.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// One database's directory; `None`: everything in the pool.
    #[serde(with = "seawall_core::path_text::option", default)]
    pub directory: Option<PathBuf>,
    /// It ends by itself after so many seconds.
    pub seconds: Option<u64>,
    /// It ends with the connection.
    pub bound: bool,
}

/// The reply to both.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answered {
    /// It is frozen, or was until now.
    pub frozen: bool,
    /// The databases' directories.
    #[serde(with = "seawall_core::path_text::list")]
    pub directories: Vec<PathBuf>,
    /// Files that cannot go back into the log, because their guard cannot be raised.
    pub left_out: Vec<String>,
}

/// For `status`.
#[derive(Debug, Serialize, Deserialize)]
pub struct FrozenStatus {
    /// The databases' directories.
    #[serde(with = "seawall_core::path_text::list")]
    pub directories: Vec<PathBuf>,
    /// For how long they have been.
    pub seconds: u64,
    /// When it ends by itself; `None`: with whoever asked for it.
    pub seconds_left: Option<u64>,
}

/// Freezes. The number of the freeze is for [`thaw_own`].
///
/// # Errors
/// There is nothing to freeze, it is frozen already, or the disk did not take a file: then all is as before.
pub(crate) fn freeze(daemon: &Daemon, wanted: Wanted) -> Result<(u64, Answered), DaemonError> {
    let _turn = daemon.freeze.turn();
    let directories = check(&daemon.roots, daemon.engine.shm(), wanted.directory.as_deref())?;
    // What can be done while nobody waits.
    destaging::round(daemon);
    let id = begin(daemon, wanted)?;
    let covered = |root: u32| daemon.roots.get(root).is_some_and(|root| daemon.freeze.covers(&root));
    let done =
        aside::take_out(daemon, covered, KeptOut::Frozen).and_then(|()| aside::lower_guards(daemon, covered));
    if let Err(e) = done {
        end_if(daemon, |_| true);
        return Err(e);
    }
    daemon.log.say(format!("frozen: {} out of the log, guards down", list(&directories)));
    Ok((id, Answered { frozen: true, directories, left_out: Vec::new() }))
}

/// The directories that are to be frozen.
fn check(roots: &Roots, shm: &Shm, directory: Option<&Path>) -> Result<Vec<PathBuf>, DaemonError> {
    let wanted = |root: &&RootEntry| {
        directory.is_none_or(|dir| root.data.starts_with(dir) || root.path.starts_with(dir))
    };
    let all = roots.all();
    let chosen: Vec<&RootEntry> = all.values().filter(wanted).collect();
    let refuse = |path: &Path, why: &str| DaemonError::Directory { path: path.into(), why: why.into() };
    if let (Some(dir), []) = (directory, chosen.as_slice()) {
        return Err(refuse(dir, "nothing of it is in this pool: `seawall status` names the directories"));
    }
    // Roots of a policy that a database had once are withdrawn, and stay in the table.
    let in_use = roots.in_use(shm);
    let is_atomic =
        |root: &&&RootEntry| root.policy == Policy::Atomic && in_use.iter().any(|(_, used)| used == **root);
    if let Some(root) = chosen.iter().find(is_atomic) {
        return Err(refuse(
            &root.data,
            "it runs with the policy atomic: out of the log its pages could be torn, which the database may rely on not \
             to happen. Switch on what protects them (PostgreSQL: full_page_writes = on and a CHECKPOINT; MariaDB: \
             innodb_doublewrite = ON), start it with --policy tail, then freeze",
        ));
    }
    let mut directories: Vec<PathBuf> = chosen.into_iter().map(|root| root.data.clone()).collect();
    directories.sort();
    directories.dedup();
    Ok(directories)
}

/// From now on nothing new comes.
fn begin(daemon: &Daemon, wanted: Wanted) -> Result<u64, DaemonError> {
    let _alone = daemon.registering.turn();
    let lasts = wanted.seconds.map(Duration::from_secs);
    let id = daemon.freeze.begin(wanted.directory, lasts).map_err(|frozen| DaemonError::Directory {
        path: frozen.directory().unwrap_or(&daemon.pool.path).to_owned(),
        why: "it is frozen already: `seawall thaw` first".into(),
    })?;
    // Whoever copies needs the daemon, though the database may end meanwhile.
    daemon.lifetime.hold();
    Ok(id)
}

/// Ends the freeze, if there is one: guards up, then the files may go back into the log.
pub(crate) fn thaw(daemon: &Daemon) -> Answered {
    thaw_if(daemon, |_| true)
}

/// Ends this freeze.
pub(crate) fn thaw_own(daemon: &Daemon, id: u64) -> Answered {
    thaw_if(daemon, |frozen| frozen.id() == id)
}

/// Ends a freeze whose time is over.
pub(crate) fn review(daemon: &Daemon) {
    let is_over = daemon.freeze.now().as_ref().is_some_and(Frozen::is_over);
    if is_over && thaw_if(daemon, Frozen::is_over).frozen {
        daemon.log.say("the freeze had reached its limit (--for)");
    }
}

fn thaw_if(daemon: &Daemon, wanted: impl FnOnce(&Frozen) -> bool) -> Answered {
    let _turn = daemon.freeze.turn();
    end_if(daemon, wanted)
}

fn end_if(daemon: &Daemon, wanted: impl FnOnce(&Frozen) -> bool) -> Answered {
    let _alone = daemon.registering.turn();
    let frozen = daemon.freeze.now().filter(wanted);
    let Some(frozen) = frozen else {
        return Answered { frozen: false, directories: Vec::new(), left_out: Vec::new() };
    };
    let left_out = aside::let_back(daemon, KeptOut::Frozen);
    daemon.freeze.end();
    daemon.lifetime.release();
    let roots = daemon.roots.all();
    let mut directories: Vec<_> =
        roots.values().filter(|root| frozen.covers(root)).map(|root| root.data.clone()).collect();
    directories.sort();
    directories.dedup();
    daemon.log.say(format!("thawed: {}", list(&directories)));
    Answered { frozen: true, directories, left_out }
}

/// After a take-over: a freeze of the former daemon's is over.
pub(crate) fn end_former(daemon: &Daemon) {
    let _alone = daemon.registering.turn();
    aside::let_back(daemon, KeptOut::Frozen);
}

/// For `status`.
pub(crate) fn status(freeze: &Freeze, roots: &Roots) -> Option<FrozenStatus> {
    let frozen = freeze.now()?;
    let roots = roots.all();
    let covered = roots.values().filter(|root| frozen.covers(root));
    let mut directories: Vec<_> = covered.map(|root| root.data.clone()).collect();
    directories.dedup();
    let (since, left) = frozen.age();
    Some(FrozenStatus {
        directories,
        seconds: since.as_secs(),
        seconds_left: left.map(|left| left.as_secs()),
    })
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
