//! The block cache in snapshots: what it is and counts, what other sizes would have given, its files.

use seawall_daemon::cache::{AdvisoryStatus, CacheStatus, CachedFileStatus};
use seawall_daemon::status::Status;

use crate::model::{Reading, Snapshot};

/// The cache itself.
pub const CACHE: &str = "seawall cache";
/// Sizes, by percent of the present one.
pub const SIZE: &str = "seawall cache size";
/// Files.
pub const FILE: &str = "seawall cache file";
/// Of PostgreSQL: which file is which table's or index's.
pub const RELATION: &str = "relation";

/// Adds its readings; none where no cache is wanted.
pub fn capture(status: &Status, snapshot: &mut Snapshot) {
    match (&status.cache, &status.without_cache) {
        (Some(cache), _) => add(status, cache, snapshot),
        (None, Some(why)) => {
            let none = Reading::new(CACHE, "", &status.epoch).gauge("size", 0.0).fact("off", why);
            snapshot.add(CACHE, true, vec![none]);
        }
        (None, None) => {}
    }
}

fn add(status: &Status, cache: &CacheStatus, snapshot: &mut Snapshot) {
    // Hits are counted in the log's shared memory, what was admitted in the zone, samples by the daemon.
    let epoch = format!("{} {}", status.epoch, cache.zone);
    snapshot.add(CACHE, true, vec![whole(cache, &epoch)]);
    let epoch = format!("{epoch} {}", status.daemon_pid);
    snapshot.add(SIZE, true, cache.advisory.iter().map(|size| self::size(size, &epoch)).collect());
    let is_all = cache.by_file.len() == cache.files as usize;
    snapshot.add(FILE, is_all, cache.by_file.iter().map(|file| self::file(file, &cache.zone)).collect());
}

fn whole(c: &CacheStatus, epoch: &str) -> Reading {
    let reading = Reading::new(CACHE, "", epoch)
        .counter("hits", c.hits as f64)
        .counter("misses", c.misses as f64)
        .counter("admitted", c.admitted as f64)
        .counter("failures", c.failures as f64)
        .gauge("size", c.size as f64)
        .gauge("block_bytes", f64::from(c.block_bytes))
        .gauge("blocks", c.blocks as f64)
        .gauge("blocks_used", c.blocks_used as f64)
        .gauge("files", f64::from(c.files))
        .gauge("files_not_served", f64::from(c.files_not_served))
        .fact("path", c.path.display().to_string())
        .fact("medium_name", &c.medium_name);
    c.off.iter().fold(reading, |reading, why| reading.fact("off", why))
}

fn size(size: &AdvisoryStatus, epoch: &str) -> Reading {
    Reading::new(SIZE, size.percent.to_string(), epoch)
        .counter("reads", size.reads as f64)
        .counter("hits", size.hits as f64)
        .gauge("size", size.size as f64)
}

fn file(file: &CachedFileStatus, epoch: &str) -> Reading {
    let reading = Reading::new(FILE, &file.id, epoch)
        .counter("hits", file.hits as f64)
        .counter("misses", file.misses as f64)
        .fact("path", file.path.display().to_string())
        .fact("class", &file.class);
    file.not_served.iter().fold(reading, |reading, why| reading.fact("not_served", why))
}
