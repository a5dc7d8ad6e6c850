//! A log that keepers keep is taken over from another host.
//!
//! ```text
//! find      which log, and who keeps it: its file here, or what keepers say        changes nothing
//! look      where each copy is, who has the log, whether its data is here          changes nothing
//! run       fence ─ fetch ─ enough keepers ─ replay ─ guards down                  may be cut anywhere, and is made again
//! ```
//!
//! Nothing is fenced as long as there is a reason to refuse. From the fence on the former writer's host gets nothing
//! confirmed any more, whatever becomes of the rest; a second run goes on from there.
//!
//! Not handled here: who decides that it is to be, and that the former host does not write to the data's volume any more.

mod directories;
mod error;
mod find;
mod look;

use std::path::{Path, PathBuf};

use seawall_core::pool::replicated;
use seawall_core::pool::{MEMORY, Pool};
use seawall_core::table;
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::holder::Holder;
use seawall_keeper::survey::Survey;
use seawall_keeper::turn::{self, Claim};
use serde::Serialize;

pub use directories::Directory;
pub use error::TakeoverError;
pub use find::{Wanted, find};
pub use look::{Found, KeeperSeen, look};

use crate::kept::{self, KeptError, Mark};
use crate::start::{Offline, Recovery, recover_opened};

/// What was done.
#[derive(Debug, Serialize)]
pub struct Done {
    /// The turn in which this host has the log.
    pub turn: u64,
    /// True if this host had the log already, and what it has of it in memory was gone on with.
    pub was_here: bool,
    /// What was replayed.
    pub recovery: Recovery,
}

/// Takes the log over whose file is at `pool`. `data` is where directories are here that were elsewhere on the former host.
/// Reports each step to `say`.
///
/// # Errors
/// [`TakeoverError`].
pub fn run(
    pool: &Path,
    said: &Descriptor,
    data: &[PathBuf],
    accept_loss: bool,
    say: &dyn Fn(&str),
) -> Result<Done, TakeoverError> {
    let users = replicated::users(Path::new(MEMORY), said.uuid()).unwrap_or_default();
    if !users.is_empty() {
        return Err(TakeoverError::users(&users));
    }
    say("fencing the former writer, and bringing enough keepers to the newest copy");
    let (opened, was_here) = kept::take_over(pool).map_err(|error| {
        let survey = Survey::of(&said.log, &said.roster, &said.transport);
        TakeoverError::of_opening(error, survey.holder().and_then(|(_, holder)| holder))
    })?;
    let turn = opened.1.as_ref().map_or(0, |kept| kept.turn());
    say(&format!("this host has the log, in turn {turn}: replaying it"));
    move_directories(&opened.0, data)?;
    let how = Offline { replay: !was_here, accept_loss };
    let recovery =
        recover_opened(pool, opened, how).map_err(|error| TakeoverError::NotRecovered(error.to_string()))?;
    if !recovery.guards_left.is_empty() {
        return Err(TakeoverError::NotRecovered(recovery.guards_left.join("\n")));
    }
    let mark = Mark::of(said.uuid());
    mark.clear().map_err(|error| TakeoverError::File { path: mark.path().into(), error })?;
    Ok(Done { turn, was_here, recovery })
}

/// Fences whoever writes the log, durably, and nothing else: its data is elsewhere. In which turn it is this host's now.
///
/// # Errors
/// [`TakeoverError`].
pub fn fence(said: &Descriptor) -> Result<u64, TakeoverError> {
    let survey = Survey::of(&said.log, &said.roster, &said.transport);
    let holder = survey.holder().and_then(|(_, holder)| holder);
    if survey.heard().is_some() && holder.is_some_and(|holder| holder.is(&Holder::here())) {
        return Err(TakeoverError::InUse(format!(
            "the writer of the log {} runs on this host, and is connected",
            said.log
        )));
    }
    let begun = turn::begin(said.uuid(), &said.roster, &said.transport, Claim::TakeOver);
    let begun = begun.map_err(|error| TakeoverError::of_opening(KeptError::Turn(error), holder))?;
    Ok(begun.head.epoch.counter)
}

/// The log says where its directories are on this host.
fn move_directories(pool: &Pool, data: &[PathBuf]) -> Result<(), TakeoverError> {
    let failed = |error: table::TableError| TakeoverError::NotRecovered(error.to_string());
    let registered = table::roots(pool).map_err(failed)?;
    let (here, _) = directories::find(&registered, data);
    for (i, root) in &registered {
        if let Some(moved) = here.get(i).filter(|moved| *moved != root) {
            table::move_root(pool, *i, moved).map_err(failed)?;
        }
    }
    Ok(())
}
