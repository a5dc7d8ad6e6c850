//! Freeze: for as long as somebody copies the files, or takes a snapshot of their file system, nothing of them is in the
//! log and no guard is up. So what is copied is what the bare database's own crash recovery understands, on any host.
//!
//! ```text
//!            clients with new files ask again later
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
//! Under the policy `atomic` the database may rely on pages that cannot be torn, and so may the guest of a disk: changes of such
//! files wait, from when each leaves the log until the thaw, for a minute at most. What depends on a change waits with it, so
//! what is on the disk is one moment's. Not handled here: what such a database writes without Seawall's help (mappings, io_uring).

use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall_core::file::{Flag, KeptOut, SUSPENDED_AT_MOST};
use seawall_core::table::RootEntry;
use seawall_wire::shm::{Policy, Shm};
use serde::{Deserialize, Serialize};

use crate::errors::DaemonError;
use crate::parts::files::Managed;
use crate::parts::freeze::{Freeze, Frozen};
use crate::parts::roots::Roots;
use crate::state::Daemon;
use crate::{aside, destaging};

/// The longest freeze in which changes wait, and that of which nobody said how long it may take.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);
const _: () = assert!(LONGEST_WAIT.as_secs() < SUSPENDED_AT_MOST.as_secs());
const USUAL_WAIT: Duration = Duration::from_secs(30);
/// A freeze that nobody ends, if nobody waits for that.
const USUAL: Duration = Duration::from_secs(3600);

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
    /// It ends by itself after so many seconds; `None`: after as many as are usual.
    pub seconds: Option<u64>,
    /// It ends with the connection. Without `seconds` it has no limit, unless changes wait for its end.
    pub bound: bool,
}

/// The reply to both.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    /// It is frozen, or was until now.
    pub frozen: bool,
    /// The databases' directories.
    #[serde(with = "seawall_core::path_text::list")]
    pub directories: Vec<PathBuf>,
    /// When it ends by itself, at the latest.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// Changes wait for its end.
    #[serde(default)]
    pub writes_wait: bool,
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
    /// Changes wait for its end.
    #[serde(default)]
    pub writes_wait: bool,
}

/// Freezes. The number of the freeze is for [`thaw_own`].
///
/// # Errors
/// There is nothing to freeze, it is frozen already, or the disk did not take a file: then all is as before.
pub(crate) fn freeze(daemon: &Daemon, wanted: Wanted) -> Result<(u64, Answered), DaemonError> {
    let _turn = daemon.freeze.turn();
    let chosen = choose(&daemon.roots, daemon.engine.shm(), wanted.directory.as_deref())?;
    let lasts = limit(&chosen, &wanted)?;
    // What can be done while nobody waits.
    destaging::round(daemon);
    let id = begin(daemon, wanted.directory, lasts, chosen.writes_wait)?;
    let covered = |root: u32| daemon.roots.get(root).is_some_and(|root| daemon.freeze.covers(&root));
    let done = aside::take_out(daemon, covered, |file| mark(daemon, file))
        .and_then(|()| aside::lower_guards(daemon, covered));
    if let Err(e) = done {
        end_if(daemon, |_| true);
        return Err(e);
    }
    let Chosen { directories, writes_wait } = chosen;
    let waiting = if writes_wait { ", changes wait" } else { "" };
    daemon.log.say(format!("frozen: {} out of the log, guards down{waiting}", list(&directories)));
    let seconds = lasts.map(|lasts| lasts.as_secs());
    Ok((id, Answered { frozen: true, directories, seconds, writes_wait, left_out: Vec::new() }))
}

fn mark(daemon: &Daemon, file: &Managed) {
    daemon.engine.keep_out(file.reference, KeptOut::Frozen);
    if daemon.engine.state(file.reference).has(Flag::ATOMIC) {
        daemon.engine.suspend_changes(file.reference);
    }
}

/// When it ends by itself.
fn limit(chosen: &Chosen, wanted: &Wanted) -> Result<Option<Duration>, DaemonError> {
    let asked = wanted.seconds.map(Duration::from_secs);
    if !chosen.writes_wait {
        return Ok(asked.or_else(|| (!wanted.bound).then_some(USUAL)));
    }
    let lasts = asked.unwrap_or(USUAL_WAIT);
    if lasts > LONGEST_WAIT {
        return Err(DaemonError::Directory {
            path: chosen.directories.first().cloned().unwrap_or_default(),
            why: format!(
                "writes to it wait until the freeze ends, because its pages must not be torn (policy \
                 atomic), so a freeze can last {} s at most (--for). Take a snapshot during the freeze, and \
                 copy from that",
                LONGEST_WAIT.as_secs()
            ),
        });
    }
    Ok(Some(lasts))
}

/// What is to be frozen.
struct Chosen {
    directories: Vec<PathBuf>,
    /// Some of it is under the policy `atomic`.
    writes_wait: bool,
}

/// The directories that are to be frozen.
fn choose(roots: &Roots, shm: &Shm, directory: Option<&Path>) -> Result<Chosen, DaemonError> {
    let wanted = |root: &&RootEntry| {
        directory.is_none_or(|dir| root.data.starts_with(dir) || root.path.starts_with(dir))
    };
    let all = roots.all();
    let chosen: Vec<&RootEntry> = all.values().filter(wanted).collect();
    if let (Some(dir), []) = (directory, chosen.as_slice()) {
        return Err(DaemonError::Directory {
            path: dir.into(),
            why: "this pool holds nothing of it: `seawall status` names the directories".into(),
        });
    }
    // Roots of a policy that a database had once are withdrawn, and stay in the table.
    let in_use = roots.in_use(shm);
    let is_atomic =
        |root: &&RootEntry| root.policy == Policy::Atomic && in_use.iter().any(|(_, used)| used == *root);
    let writes_wait = chosen.iter().any(is_atomic);
    let mut directories: Vec<PathBuf> = chosen.into_iter().map(|root| root.data.clone()).collect();
    directories.sort();
    directories.dedup();
    Ok(Chosen { directories, writes_wait })
}

/// From now on nothing new comes.
fn begin(
    daemon: &Daemon,
    directory: Option<PathBuf>,
    lasts: Option<Duration>,
    writes_wait: bool,
) -> Result<u64, DaemonError> {
    let _alone = daemon.registering.turn();
    let id = daemon.freeze.begin(directory, lasts, writes_wait).map_err(|frozen| DaemonError::Directory {
        path: frozen.directory().unwrap_or(&daemon.pool.path).to_owned(),
        why: "it is already frozen: use `seawall thaw` first".into(),
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
        daemon.log.say("the freeze has ended, because it reached its limit (--for)");
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
        return Answered::default();
    };
    let left_out = let_back(daemon);
    daemon.freeze.end();
    daemon.lifetime.release();
    let roots = daemon.roots.all();
    let mut directories: Vec<_> =
        roots.values().filter(|root| frozen.covers(root)).map(|root| root.data.clone()).collect();
    directories.sort();
    directories.dedup();
    daemon.log.say(format!("thawed: {}", list(&directories)));
    Answered { frozen: true, directories, left_out, ..Answered::default() }
}

/// Guards up, then the files may go back into the log. Those whose changes wait do at once, before the first of them.
fn let_back(daemon: &Daemon) -> Vec<String> {
    let left_out = aside::let_back(daemon, KeptOut::Frozen);
    let is_suspended = |file: &Managed| daemon.engine.state(file.reference).has(Flag::SUSPENDED);
    for file in daemon.files.all().iter().filter(|file| is_suspended(file)) {
        daemon.without_log(file, || daemon.engine.resume_changes(file.reference));
    }
    left_out
}

/// After a take-over: a freeze of the former daemon's is over.
pub(crate) fn end_former(daemon: &Daemon) {
    let _alone = daemon.registering.turn();
    let_back(daemon);
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
        writes_wait: frozen.writes_wait(),
    })
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
