//! What `seawall status` shows of the cache.

use std::path::PathBuf;

use seawall_cache::shared::{Off, Tenant};
use seawall_media::locks::lock;
use seawall_stats::Class;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::disk::Disk;
use super::zone::Zone;
use crate::parts::files::path_of;

/// Files that are shown.
const FILES_MAX: usize = 1000;

/// The block cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheStatus {
    /// The zone's file.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Its medium in one word: `pmem`, `block` or `emulated`.
    pub medium_name: String,
    /// Bytes of the zone.
    pub size: u64,
    /// Bytes that it can have: how far it can be resized.
    #[serde(default)]
    pub size_max: u64,
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
    /// Reads and writes that its disk refused.
    #[serde(default)]
    pub disk_errors: u64,
    /// Bytes that may be written to its disk in a day.
    #[serde(default)]
    pub write_budget: Option<u64>,
    /// Bytes that may be written at once now, of that.
    #[serde(default)]
    pub write_budget_left: u64,
    /// Blocks that did not enter since the zone was made, because the budget was used up.
    #[serde(default)]
    pub over_budget: u64,
    /// Blocks that did not enter since the zone was made, because too many were on their way to the disk.
    #[serde(default)]
    pub dropped: u64,
    /// Why it serves nothing.
    pub off: Option<String>,
    /// What other sizes would have given since the daemon started.
    pub advisory: Vec<AdvisoryStatus>,
    /// Changes when the zone is made anew, and with it what is counted there.
    #[serde(default)]
    pub zone: String,
    /// The files that are entered; of very many those that are read most.
    #[serde(default)]
    pub by_file: Vec<CachedFileStatus>,
}

/// A file that is entered.
#[derive(Debug, Serialize, Deserialize)]
pub struct CachedFileStatus {
    /// Stays the same when the file is renamed.
    pub id: String,
    /// Where it is; empty if that is not known.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// What the database uses it for.
    pub class: String,
    /// Blocks of it that were hits since it was entered, about: one read in 64 is counted.
    pub hits: u64,
    /// Reads of it that went to the disk, about.
    pub misses: u64,
    /// Why it is not served now.
    pub not_served: Option<String>,
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
    /// Those of them that would have been hits.
    #[serde(default)]
    pub hits: u64,
}

/// `hits` and `misses` as the wait events count them.
pub(crate) fn status(zone: &Zone, hits: u64, misses: u64) -> CacheStatus {
    let layout = zone.cache.layout();
    let tenants: Vec<Tenant> = zone.cache.tenants().collect();
    let files_not_served = tenants.iter().filter(|tenant| not_served(tenant).is_some()).count();
    CacheStatus {
        path: zone.path.clone(),
        medium_name: zone.medium.name().into(),
        size: zone.size(),
        size_max: zone.most,
        block_bytes: layout.block_bytes,
        blocks: zone.cache.blocks(),
        blocks_used: zone.cache.filled(),
        files: tenants.len() as u32,
        files_max: layout.files,
        files_not_served: files_not_served as u32,
        hits,
        misses,
        admitted: zone.cache.admitted(),
        failures: zone.cache.failures(),
        disk_errors: zone.cache.disk_errors(),
        write_budget: zone.disk.as_ref().and_then(Disk::budget).map(Budget::day),
        write_budget_left: zone.cache.allowance().0,
        over_budget: zone.cache.over_budget(),
        dropped: zone.cache.dropped(),
        off: off(zone),
        advisory: advisory(zone),
        zone: format!("{:016x}", zone.cache.id()),
        by_file: by_file(zone, tenants),
    }
}

fn by_file(zone: &Zone, mut tenants: Vec<Tenant>) -> Vec<CachedFileStatus> {
    let reads = |tenant: &Tenant| tenant.record.hits.saturating_add(tenant.record.misses);
    tenants.sort_by_key(|tenant| std::cmp::Reverse(reads(tenant)));
    tenants.truncate(FILES_MAX);
    let path = |slot: u32| zone.get(slot).and_then(|entered| path_of(&entered.file).ok()).unwrap_or_default();
    let status = |tenant: &Tenant| CachedFileStatus {
        id: format!("{}.{}", tenant.file.slot, tenant.file.tenant),
        path: path(tenant.file.slot),
        class: Class::from_word(tenant.record.class).name().into(),
        hits: tenant.record.hits,
        misses: tenant.record.misses,
        not_served: not_served(tenant).map(Into::into),
    };
    tenants.iter().map(status).collect()
}

fn not_served(tenant: &Tenant) -> Option<&'static str> {
    match (tenant.is_distrusted, tenant.is_suspended) {
        (true, _) => Some("a program may write to it unseen: by a writable mapping, io_uring or a stream"),
        (false, true) => Some("a program without Seawall has it open, or had a moment ago"),
        (false, false) => None,
    }
}

fn off(zone: &Zone) -> Option<String> {
    let why = match zone.cache.off() {
        Some(Off::Failures) => "checksums failed again and again: its memory cannot be trusted",
        Some(Off::Exhausted) => "its numbers are used up: it is made anew at the next start",
        Some(Off::Disk) => "its disk failed again and again: the daemon's log says how",
        Some(Off::Asked) => "it was switched off",
        None if zone.cache.is_watched() => return None,
        None => "nothing watches for writers without Seawall: the daemon's log says why",
    };
    Some(why.into())
}

fn advisory(zone: &Zone) -> Vec<AdvisoryStatus> {
    let estimates = lock(&zone.advisory).estimates();
    let estimates = estimates.into_iter().filter(|estimate| estimate.reads > 0);
    let status = |estimate: seawall_cache::advisory::Estimate| AdvisoryStatus {
        percent: estimate.percent,
        size: zone.size() / 100 * u64::from(estimate.percent),
        hit_percent: estimate.hit_percent,
        reads: estimate.reads,
        hits: estimate.hits,
    };
    estimates.map(status).collect()
}
