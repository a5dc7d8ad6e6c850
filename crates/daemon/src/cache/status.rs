//! What `seawall status` shows of the cache.

use std::path::PathBuf;

use seawall_cache::shared::Off;
use serde::{Deserialize, Serialize};

use super::Zone;
use crate::state::{Daemon, lock};

/// The block cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheStatus {
    /// The zone's file.
    pub path: PathBuf,
    /// Its medium in one word: `pmem` or `emulated`.
    pub medium_name: String,
    /// Bytes of the zone.
    pub size: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Places for blocks.
    pub blocks: u64,
    /// Blocks that are there.
    pub blocks_used: u64,
    /// Files that are entered.
    pub files: u32,
    /// How many there can be.
    pub files_max: u32,
    /// Of these, files that are not served now: a stranger has them open, or somebody writes them unseen.
    pub files_not_served: u32,
    /// Blocks that were read from it.
    pub hits: u64,
    /// Blocks that it was asked for and did not have.
    pub misses: u64,
    /// Blocks that were admitted since the zone was made.
    pub admitted: u64,
    /// Checksums that failed.
    pub failures: u64,
    /// Why it serves nothing.
    pub off: Option<String>,
    /// What other sizes would have given since the daemon started.
    pub advisory: Vec<AdvisoryStatus>,
}

/// What a size would have given.
#[derive(Debug, Serialize, Deserialize)]
pub struct AdvisoryStatus {
    /// The size, in percent of the present one.
    pub percent: u32,
    /// Bytes of it.
    pub size: u64,
    /// Hits for each hundred reads.
    pub hit_percent: f64,
    /// Reads that were sampled.
    pub reads: u64,
}

/// `hits` and `misses` as the wait events count them.
pub(crate) fn status(daemon: &Daemon, hits: u64, misses: u64) -> Option<CacheStatus> {
    let zone = daemon.cache.as_ref()?;
    let (layout, tenants) = (zone.cache.layout(), zone.cache.tenants());
    let (mut files, mut files_not_served) = (0, 0);
    for tenant in tenants {
        files += 1;
        files_not_served += u32::from(tenant.is_distrusted || tenant.is_suspended);
    }
    Some(CacheStatus {
        path: zone.path.clone(),
        medium_name: zone.medium.name().into(),
        size: zone.len,
        block_bytes: layout.block_bytes,
        blocks: layout.blocks(),
        blocks_used: zone.cache.filled(),
        files,
        files_max: layout.files,
        files_not_served,
        hits,
        misses,
        admitted: zone.cache.admitted(),
        failures: zone.cache.failures(),
        off: off(zone),
        advisory: advisory(zone),
    })
}

fn off(zone: &Zone) -> Option<String> {
    let why = match zone.cache.off() {
        Some(Off::Failures) => "checksums failed again and again: its memory is not to be trusted",
        Some(Off::Exhausted) => "its numbers are used up: it is made anew at the next start",
        Some(Off::Asked) => "it was switched off",
        None if zone.cache.is_watched() => return None,
        None => "nobody watches for writers without Seawall: the daemon's log says why",
    };
    Some(why.into())
}

fn advisory(zone: &Zone) -> Vec<AdvisoryStatus> {
    let estimates = lock(&zone.advisory).estimates();
    let estimates = estimates.into_iter().filter(|estimate| estimate.reads > 0);
    let status = |estimate: seawall_cache::advisory::Estimate| AdvisoryStatus {
        percent: estimate.percent,
        size: zone.len / 100 * u64::from(estimate.percent),
        hit_percent: estimate.hit_percent,
        reads: estimate.reads,
    };
    estimates.map(status).collect()
}
