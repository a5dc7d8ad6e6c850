//! A look at a log before it is taken over: at its keepers, and for its data.

use std::path::{Path, PathBuf};

use seawall_core::{recover, table};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::holder::Holder;
use seawall_keeper::keeper::LogReport;
use seawall_keeper::peer::PeerError;
use seawall_keeper::survey::{Survey, position};
use serde::Serialize;

use super::directories::{self, Directory};
use super::error::TakeoverError;
use crate::control::Control;
use crate::kept;
use crate::status::Status;
use seawall_wire::message::Kind;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The log's UUID.
    pub log: String,
    /// How many keepers confirm a commit.
    pub acks: usize,
    /// How many have to answer with all that they ever confirmed.
    pub needed: usize,
    /// Each keeper.
    pub keepers: Vec<KeeperSeen>,
    /// The host that has the log, and since when. `None`: nobody says.
    pub holder: Option<Holder>,
    /// True if that is this one.
    pub is_here: bool,
    /// A daemon of this host serves the log, and nobody has taken it over.
    pub is_served: bool,
    /// Its turn.
    pub turn: u64,
    /// How many seconds ago a keeper heard its writer, which is still connected. `None`: it is connected to none.
    pub heard: Option<u64>,
    /// Records that the files may lack.
    pub live: u64,
    /// The log's directories.
    pub directories: Vec<Directory>,
    /// The user that the data belongs to.
    pub owner: u32,
    /// Why it cannot be taken over: an error of this code.
    #[serde(skip)]
    pub refusal: Option<TakeoverError>,
}

/// One keeper.
#[derive(Debug, Serialize)]
pub struct KeeperSeen {
    /// Where it is.
    pub address: String,
    /// It has no data.
    pub witness: bool,
    /// It has everything that it ever confirmed.
    pub kept: bool,
    /// It is among those with the newest copy.
    pub newest: bool,
    /// The turn and the number of its newest batch.
    pub turn: u64,
    /// That.
    pub number: u64,
    /// Batches that it lacks, of the newest copy's turn; `None`: its copy is of an older one.
    pub behind: Option<u64>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// Looks. Changes nothing, here or anywhere.
///
/// # Errors
/// [`TakeoverError`]: the newest copy cannot be read, or is damaged.
pub fn look(
    pool: &Path,
    said: &Descriptor,
    data: &[PathBuf],
    accept_loss: bool,
) -> Result<Found, TakeoverError> {
    let survey = Survey::of(&said.log, &said.roster, &said.transport);
    let newest = survey.newest();
    let holders = newest.as_ref().map_or(&[][..], |(_, holders)| holders);
    let (turn, holder) =
        survey.holder().map_or((0, None), |(epoch, holder)| (epoch.counter, holder.cloned()));
    let mut found = Found {
        log: said.log.clone(),
        acks: said.roster.acks,
        needed: said.roster.quorum().takes(),
        keepers: keepers_seen(&survey, said, holders),
        is_here: holder.as_ref().is_some_and(|holder| holder.is(&Holder::here())),
        holder,
        is_served: false,
        turn,
        heard: survey.heard(),
        live: 0,
        directories: Vec::new(),
        owner: rustix::process::geteuid().as_raw(),
        refusal: None,
    };
    found.is_served = served(pool, &mut found.refusal);
    match newest {
        Err(why) => {
            let more: String =
                survey.keepers.iter().filter_map(|k| k.as_ref().err()).map(|e| format!("; {e}")).collect();
            found.refusal.get_or_insert(TakeoverError::TooFew(format!("{why}{more}")));
        }
        Ok(_) if !found.is_served => look_for_data(&mut found, pool, said, data, accept_loss)?,
        Ok(_) => {}
    }
    Ok(found)
}

/// Each keeper, as it answered. `newest` are those with the newest copy.
fn keepers_seen(survey: &Survey, said: &Descriptor, newest: &[usize]) -> Vec<KeeperSeen> {
    let top = survey.keepers.iter().flatten().filter(|report| report.kept).map(position).max();
    let members = said.roster.members.iter().zip(&survey.keepers).enumerate();
    let seen = members.map(|(i, (member, report))| match report {
        Ok(report) => {
            let (at, top) = (position(report), top.unwrap_or_default());
            KeeperSeen {
                address: member.address.clone(),
                witness: member.witness,
                kept: report.kept,
                newest: newest.contains(&i),
                turn: at.epoch.counter,
                number: at.number,
                behind: (at.epoch == top.epoch).then(|| top.number.saturating_sub(at.number)),
                trouble: trouble(report),
            }
        }
        Err(error) => unreached(&member.address, member.witness, error),
    });
    seen.collect()
}

/// True if one of the log's directories is there, or below.
fn is_used(dir: &Path, directories: &[Directory]) -> bool {
    let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    directories.is_empty() || directories.iter().any(|directory| directory.here.starts_with(&real))
}

fn trouble(report: &LogReport) -> Option<String> {
    let lost = || (!report.kept).then(|| "it lost data that it had, and does not vote".to_owned());
    report.trouble.clone().or_else(lost)
}

fn unreached(address: &str, witness: bool, error: &PeerError) -> KeeperSeen {
    let (kept, newest, turn, number, behind) = (false, false, 0, 0, None);
    KeeperSeen {
        address: address.into(),
        witness,
        kept,
        newest,
        turn,
        number,
        behind,
        trouble: Some(error.to_string()),
    }
}

/// True if a daemon of this host serves the log and can go on; one that cannot is in the way.
fn served(pool: &Path, refusal: &mut Option<TakeoverError>) -> bool {
    let Ok(Some(control)) = Control::connect(pool) else { return false };
    let over = match control.request::<Status>(Kind::Status, &()) {
        Ok(status) => status.kept.and_then(|kept| kept.over),
        Err(error) => Some(error.to_string()),
    };
    let Some(over) = over else { return true };
    *refusal = Some(TakeoverError::InUse(format!(
        "a daemon of this host still serves this host's copy of this log ({over}): stop the database, and \
         then the daemon with `seawall stop --pool {}`",
        pool.display()
    )));
    false
}

/// Whether everything that the newest copy holds can be put where it belongs.
fn look_for_data(
    found: &mut Found,
    pool: &Path,
    said: &Descriptor,
    data: &[PathBuf],
    accept_loss: bool,
) -> Result<(), TakeoverError> {
    let copy = kept::look_at_newest(pool, said).map_err(TakeoverError::Kept)?;
    let damaged = |why: String| TakeoverError::Log(why);
    let registered = table::roots(&copy).map_err(|error| damaged(error.to_string()))?;
    let (roots, directories) = directories::find(&registered, data);
    found.owner = registered.first().map_or(copy.superblock.owner, |(_, root)| root.uid);
    let mut missing = Vec::new();
    match recover::preview(&copy, &roots) {
        Ok(report) => (found.live, missing) = (report.live, report.given_up),
        // Its writer may be at it: what counts is looked at when that is fenced.
        Err(_) if found.heard.is_some() => {}
        Err(error) => return Err(damaged(error.to_string())),
    }
    if accept_loss {
        missing.clear();
    }
    missing
        .extend(data.iter().filter(|dir| !is_used(dir, &directories)).map(|dir| directories::no_place(dir)));
    let is_none_here = !directories.is_empty() && directories.iter().all(|dir| dir.trouble.is_some());
    if is_none_here || !missing.is_empty() {
        missing.splice(0..0, directories.iter().filter_map(|dir| dir.trouble.clone()));
        missing.dedup();
        found.refusal.get_or_insert(TakeoverError::NotHere(missing));
    }
    found.directories = directories;
    Ok(())
}
