//! Which block cache a service's daemon gets: the one that was asked for, or the one it has.
//!
//! ```text
//! asked for, or of before ─ can the pool have one ─ beside the pool, or in a directory that is the database's user's
//!   ─ one daemon has one cache: what other services of the pool ask for must be the same
//! ```
//!
//! In: what was asked for, and the pool. Out: a [`Cached`], or the reason against it; nothing is made
//! here. The file itself is the daemon's to make, as the database's user: so that user must be allowed to.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::cache::{self, CacheOptions, default_path};
use seawall_daemon::place::beside;
use seawall_media::Medium;

use super::choice::Cached;
use super::drop_in::{Attached, check_plain};
use super::how::Attach;
use super::known::Service;
use super::machine::Machine;
use super::pools::Place;
use super::steps::Step;
use super::unit::short_name;
use crate::cache::DEFAULT_BLOCK;
use crate::pool;

/// The cache that the service is to have on this pool, which may not be there yet.
///
/// # Errors
/// If it cannot be.
pub fn find(
    machine: &Machine,
    how: &Attach,
    service: &Service,
    place: &Place,
    before: Option<&Attached>,
) -> Result<Option<Cached>> {
    let before = before.and_then(|before| before.cache.as_ref());
    if how.no_cache {
        return Ok(None);
    }
    let Some(size) = how.cache.size() else { return Ok(before.cloned()) };
    // Attaching again changes nothing that was not asked for.
    let block_bytes = how.cache.block_bytes().or_else(|| before.map(|b| b.block_bytes));
    let own = own_place(machine, &place.path, service);
    let named = how.cache.path().or_else(|| before.map(|b| b.path.clone()));
    let path = named.clone().unwrap_or(own);
    let max = how.cache.max().or_else(|| before.and_then(|b| b.max));
    let write_budget = how.cache.write_budget().or_else(|| before.and_then(|b| b.write_budget));
    let wanted = Cached { size, block_bytes: block_bytes.unwrap_or(DEFAULT_BLOCK), path, max, write_budget };
    check_plain(&wanted.path)?;
    // A disk is a place for one only if somebody chose it.
    let chosen = CacheOptions { path: named, ..wanted.options() };
    cache::check(&chosen, &place.path, medium(machine, how, place)?)?;
    check_directory(machine, service, &wanted, &place.path)?;
    if machine.is_live() && has_directory(machine, &wanted) {
        cache::check_place(&wanted.options(), &place.path)?;
    }
    Ok(Some(wanted))
}

/// What the pool lies on, or will.
fn medium(machine: &Machine, how: &Attach, place: &Place) -> Result<Medium> {
    let at = machine.at(&place.path);
    if at.exists() {
        return Ok(pool::medium(&at)?.0);
    }
    // Of what else is made here only one thing matters: that it is no log on a device.
    Ok(if place.on_disk || how.wanted.is_block() { Medium::Block } else { Medium::Pmem })
}

/// Beside the pool, if the database's user may make files there; else in a directory of that user's own.
fn own_place(machine: &Machine, pool: &Path, service: &Service) -> PathBuf {
    let beside = default_path(pool);
    let dir = beside.parent().unwrap_or(Path::new("/"));
    match std::fs::metadata(machine.at(dir)) {
        Ok(found) if service.uid != 0 && !may_make(&found, service.uid, false) => {
            own_directory(pool).join("cache")
        }
        _ => beside,
    }
}

/// The directory that is made where the pool's own is not the user's.
fn own_directory(pool: &Path) -> PathBuf {
    beside(pool, ".d")
}

/// Whether a user may make files in a directory, by its mode. Of groups this is known only roughly.
fn may_make(dir: &std::fs::Metadata, uid: u32, by_group: bool) -> bool {
    let may = |shift: u32| dir.mode() >> shift & 0o3 == 0o3;
    if dir.uid() == uid { may(6) } else { may(0) || by_group && may(3) }
}

fn has_directory(machine: &Machine, cached: &Cached) -> bool {
    cached.path.parent().is_some_and(|dir| machine.at(dir).is_dir())
}

fn check_directory(machine: &Machine, service: &Service, wanted: &Cached, pool: &Path) -> Result<()> {
    let dir = wanted.path.parent().unwrap_or(Path::new("/"));
    if dir == own_directory(pool) || cache::is_device(&machine.at(&wanted.path)) {
        return Ok(());
    }
    let owner = crate::user::name(service.uid);
    let make =
        format!("make a directory for it (`install -d -o {owner} DIRECTORY`), or leave --cache-path out");
    let Ok(found) = std::fs::metadata(machine.at(dir)) else {
        bail!("there is no directory {} for the block cache: {make}", dir.display());
    };
    if service.uid != 0 && !may_make(&found, service.uid, true) {
        bail!(
            "{owner} may not write in {}, and the daemon makes the block cache as that user: {make}",
            dir.display()
        );
    }
    Ok(())
}

/// One daemon has one cache: other services of the pool must want the same, or none.
///
/// # Errors
/// If one wants another.
pub fn check_others(machine: &Machine, wanted: &Attached) -> Result<()> {
    let Some(mine) = &wanted.cache else { return Ok(()) };
    for (other, arguments) in of_others(machine, wanted) {
        if arguments != mine.arguments() {
            let service = short_name(&wanted.unit);
            bail!(
                "{other} already gives the daemon of the pool {0} another block cache ({arguments}), and a \
                 pool has only one. Attach {service} without --cache, and it shares that one; or first run \
                 `seawall attach {other} --no-cache`",
                wanted.pool.display()
            );
        }
    }
    Ok(())
}

/// What other services on the same pool ask for: their names, and the daemon's arguments.
pub fn of_others(machine: &Machine, wanted: &Attached) -> Vec<(String, String)> {
    let (mine, _) = wanted.daemon_drop_in();
    let dir = mine.parent().map(|dir| machine.at(dir)).unwrap_or_default();
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let others = entries.filter(|path| path.file_name() != mine.file_name());
    let asked = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let (_, rest) = text.lines().filter_map(|line| line.split_once(" --cache ")).next_back()?;
        Some((path.file_stem()?.to_string_lossy().into_owned(), format!("--cache {rest}")))
    };
    others.filter_map(asked).collect()
}

/// Makes a directory for it, this user's.
///
/// # Errors
/// If it cannot be made.
pub fn make_directory(machine: &Machine, dir: &Path, uid: u32) -> Result<()> {
    let at = machine.at(dir);
    let doing = || format!("cannot create {}", dir.display());
    std::fs::create_dir(&at).with_context(doing)?;
    lchown(&at, Some(uid), None).with_context(doing)
}

/// The directory that attaching makes.
pub fn directory_to_make(machine: &Machine, wanted: &Attached) -> Option<PathBuf> {
    let dir = own_directory(&wanted.pool);
    let is_its = wanted.cache.as_ref().is_some_and(|cached| cached.path.parent() == Some(&dir));
    (is_its && !machine.at(&dir).exists()).then_some(dir)
}

/// The cache that a service's detach removes: one that is there, and that no other service of the pool has.
pub fn to_remove(machine: &Machine, attached: &Attached) -> Option<Step<'static>> {
    let path = attached.cache.as_ref()?.path.clone();
    let is_mine = of_others(machine, attached).is_empty() && machine.at(&path).exists();
    is_mine.then(|| Step::RemoveCache { path, dir: own_directory(&attached.pool) })
}

/// Removes a cache; false if it stays. It holds nothing that is not in the files, so this reports a failure and goes
/// on.
pub fn remove(machine: &Machine, path: &Path, dir: &Path) -> bool {
    match cache::remove(&machine.at(path)) {
        Ok(removed) => {
            // Only if it is empty, and ours.
            let _ = std::fs::remove_dir(machine.at(dir));
            removed
        }
        Err(e) => {
            let path = path.display();
            errln!(
                "seawall: cannot remove the block cache: {e}. Nothing in it is needed: `rm {path}` when no \
                 process uses it"
            );
            false
        }
    }
}
