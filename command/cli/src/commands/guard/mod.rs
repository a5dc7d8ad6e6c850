//! `seawall guard DIRECTORY`: what stands there, for which pool, whether this directory is the one the pool's log belongs
//! to or a copy of it, and what to do; `--lower`: does it.
//!
//! The log's records belong to the files they were written for, which the pool knows by identity. A copy has others, so
//! nothing that is done to it touches the log, and its guard keeps a database from starting that lacks what was in the
//! log when the copy was made. `--lower` lets it start nevertheless, and says what may be missing.

mod owner;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_core::path_text::Shown;
use seawall_daemon::guard::{self, Claim};
use seawall_daemon::{Offline, leftover, recover as recover_pool};
use seawall_wire::shm::Preset;
use serde_json::{Value, json};

use self::owner::{Owners, Standing};
use crate::{show, user};

/// List the guards in a directory, and lower those of a copy or of a lost pool
#[derive(clap::Args)]
pub struct Guard {
    /// The database's directory, or one above it
    directory: PathBuf,
    /// Lower them: on a copy although its pool still exists, whose log is not touched; also those left behind by an
    /// older version or a lost pool. Refused where the log holds data that these files lack
    #[arg(long)]
    lower: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A guard, up or half-way.
struct Found {
    at: PathBuf,
    preset: Preset,
    /// Whose it is; `None` of one that is half-way, or whose text somebody removed.
    claim: Option<Claim>,
}

/// Names them, or lowers them.
pub fn guard(how: &Guard) -> Result<()> {
    let dir = &how.directory;
    let dir = std::fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    let found = find(&dir);
    let owners = Owners::of(found.iter().filter_map(|guard| guard.claim.as_ref()));
    let standing: Vec<Standing> =
        found.iter().map(|guard| owners.standing(&guard.at, guard.claim.as_ref())).collect();
    if how.lower {
        lower(&found, &standing)?;
    }
    if how.json {
        let all = found.iter().zip(&standing).map(|(guard, standing)| to_json(guard, standing));
        return show::json(&json!({
            "directory": Shown(&dir), "guards": all.collect::<Vec<Value>>(), "lowered": how.lower && !found.is_empty(),
        }));
    }
    if found.is_empty() {
        outln!("{} has no guard", dir.display());
    }
    for (guard, standing) in found.iter().zip(&standing) {
        tell(guard, standing, how.lower);
    }
    match how.lower {
        true => tell_what_may_be_missing(&standing),
        false => tell_what_to_do(&dir, &standing),
    }
    Ok(())
}

/// The guards below a directory, of whatever preset and version.
fn find(dir: &Path) -> Vec<Found> {
    let mut places = Vec::new();
    for dir in directories(dir) {
        // Presets of one database look at the directory itself only.
        let here = [Preset::Postgres, Preset::Mariadb].into_iter();
        places.extend(here.flat_map(|preset| of_preset(preset, &dir)));
        places.extend(leftover::find(&dir));
    }
    places.extend(Preset::ALL.into_iter().flat_map(|preset| of_preset(preset, dir)));
    places.sort_by(|a, b| a.0.cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    let found = places.into_iter();
    found.map(|(at, preset)| Found { claim: guard::claimed(&at), at, preset }).collect()
}

fn of_preset(preset: Preset, dir: &Path) -> Vec<(PathBuf, Preset)> {
    guard::find(preset, dir).into_iter().map(|at| (at, preset)).collect()
}

/// The directory and all below it.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut next = 0;
    while next < all.len() {
        let entries = std::fs::read_dir(&all[next]).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        all.extend(below);
        next += 1;
    }
    all
}

/// Lowers them all, or says why not and changes nothing.
fn lower(found: &[Found], standing: &[Standing]) -> Result<()> {
    let refused: Vec<String> = standing.iter().filter_map(Standing::refusal).collect();
    if let Some(first) = refused.first() {
        bail!("nothing was changed: {first}");
    }
    let mut recovered: Vec<&Path> = Vec::new();
    for standing in standing {
        if let Standing::Closed { pool } = standing
            && !recovered.contains(&pool.as_path())
        {
            // By whom it is always done, and with the pool locked: nobody begins to use the log meanwhile.
            user::become_owner(pool)?;
            recover_pool(pool, Offline { replay: false, accept_loss: false })?;
            recovered.push(pool);
        }
    }
    for guard in found {
        lower_one(guard)?;
    }
    Ok(())
}

fn lower_one(guard: &Found) -> Result<()> {
    Ok(guard::lower(guard.preset, &guard.at, None)?)
}

fn to_json(guard: &Found, standing: &Standing) -> Value {
    let claim = guard.claim.as_ref();
    json!({
        "at": Shown(&guard.at),
        "preset": guard.preset.name(),
        "pool": claim.map(|claim| Shown(&claim.pool)),
        "pool_uuid": claim.map(|claim| format!("{:032x}", claim.uuid)),
        "standing": standing.name(),
        "live": standing.live(),
        "advice": standing.refusal(),
    })
}

fn tell(guard: &Found, standing: &Standing, lowered: bool) {
    let verb = if lowered { "guard lowered" } else { "guard" };
    let of = guard
        .claim
        .as_ref()
        .map_or_else(String::new, |claim| format!(" for the pool {}", claim.pool.display()));
    outln!("{}: {verb}{of} ({})", guard.at.display(), guard.preset.name());
    outln!("  {}", standing.words());
}

fn tell_what_to_do(dir: &Path, standing: &[Standing]) {
    let mut told: Vec<String> = standing.iter().filter_map(Standing::refusal).collect();
    if standing.iter().any(|standing| standing.refusal().is_none()) {
        told.push(format!(
            "to use these files as they are, without the commits that may be missing: `seawall guard --lower \
             {}`",
            dir.display()
        ));
    }
    told.dedup();
    told.iter().for_each(|line| outln!("\nWhat to do: {line}"));
}

fn tell_what_may_be_missing(standing: &[Standing]) {
    let mut told: Vec<String> = standing.iter().filter_map(Standing::loss).collect();
    told.sort();
    told.dedup();
    told.iter().for_each(|line| outln!("\n{line}"));
    if !told.is_empty() {
        outln!(
            "Check the database before you trust it (pg_amcheck, CHECK TABLE, PRAGMA integrity_check, …)."
        );
    }
}

/// What used to be `recover --abandon`.
pub fn abandon(directory: &Path, json: bool) -> Result<()> {
    guard(&Guard { directory: directory.to_owned(), lower: true, json })
}
