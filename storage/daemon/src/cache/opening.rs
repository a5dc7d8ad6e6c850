//! The zone is taken into use: made, found again, or taken over from a daemon whose fronts live.

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

use seawall_core::pool::Pool;
use seawall_media::Medium;

use super::error::CacheError;
use super::file::{medium, open_file};
use super::options::{CacheOptions, default_path};
use super::store::is_device;
use super::zone::Zone;
use super::{in_memory, on_disk, place};
use crate::log::Log;
use crate::state::Daemon;

/// Takes the zone into use, before any client can ask for it.
///
/// # Errors
/// [`CacheError`]: it is needed, and there is no place for it.
pub(crate) fn open(daemon: &mut Daemon, wanted: Option<&CacheOptions>) -> Result<(), CacheError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let zone = match zone(wanted, &daemon.pool, &daemon.log) {
        Ok(zone) => zone,
        Err(e) if wanted.is_needed => return Err(e),
        Err(e) => {
            go_without(daemon, e.to_string());
            return Ok(());
        }
    };
    daemon.engine.shm().header().cache_zone().store(zone.cache.id(), SeqCst);
    daemon.cache = Some(zone);
    Ok(())
}

/// One was asked for, and there is none.
fn go_without(daemon: &mut Daemon, why: String) {
    daemon.log.say(format!("WITHOUT the block cache: {why}"));
    daemon.without_cache = Some(why);
}

/// Takes over the zone that the clients have, if it is found; without it nothing is cached until they have ended.
pub(crate) fn take_over(daemon: &mut Daemon, wanted: Option<&CacheOptions>) {
    let header = daemon.engine.shm().header();
    let id = header.cache_zone().load(Acquire);
    if id == 0 {
        if wanted.is_some() {
            go_without(daemon, "processes that started without one are still running".into());
        }
        return;
    }
    let places = wanted.map(|wanted| wanted.at(&daemon.pool.path)).into_iter();
    let places = places.chain([default_path(&daemon.pool.path)]);
    let found = places.into_iter().find_map(|path| join(wanted, &path, id, &daemon.pool.path));
    let Some(found) = found else {
        // Whoever comes now has no zone, and writes without a word: the others may never be served again.
        header.cache_zone().store(0, SeqCst);
        go_without(
            daemon,
            "the block cache of the processes that are running was not found: nothing is cached until they \
             have ended"
                .into(),
        );
        return;
    };
    for tenant in found.cache.tenants() {
        found.cache.suspend(tenant.file);
    }
    daemon.cache = Some(found);
}

/// Opens or makes the zone, which nobody uses.
fn zone(wanted: &CacheOptions, pool: &Pool, log: &Log) -> Result<Zone, CacheError> {
    let layout = place::layout(wanted, &pool.path, pool.medium)?;
    let path = wanted.at(&pool.path);
    match place::is_on_disk(wanted, &path)? {
        true => on_disk::open(wanted, path, &pool.path, log),
        false => in_memory::open(wanted, layout, path, &pool.path, log),
    }
}

/// Joins the zone that living clients have, if this is it.
fn join(wanted: Option<&CacheOptions>, path: &Path, id: u64, pool: &Path) -> Option<Zone> {
    if is_device(path) {
        return on_disk::join(wanted, path, id, pool);
    }
    let file = open_file(path).ok().flatten()?;
    if medium(&file, path).ok()? == Medium::Block {
        drop(file);
        return on_disk::join(wanted, path, id, pool);
    }
    in_memory::join(file, path, id)
}
