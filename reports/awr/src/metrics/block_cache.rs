//! The block cache's metrics.

use seawall_daemon::cache::CacheStatus;
use seawall_daemon::status::Status;

use super::exposition::{Exposition, Kind};
use super::totals::{Totals, directory};

/// Counts by file, added up by directory and class.
pub type Files = Totals<2>;

const BY_FILE: [(&str, &str); 2] = [
    (
        "seawall_cache_directory_hits_total",
        "Blocks read from the block cache, by directory: an estimate from one read in 64.",
    ),
    (
        "seawall_cache_directory_misses_total",
        "Reads that the block cache left to the disk, by directory: an estimate.",
    ),
];

/// All of them; where none is wanted, nothing.
pub fn export(out: &mut Exposition, status: &Status, files: &mut Files) {
    let is_on = status.cache.as_ref().is_some_and(|cache| cache.off.is_none());
    if status.cache.is_some() || status.without_cache.is_some() {
        let help = "1 if the block cache serves reads.";
        let medium = status.cache.as_ref().map(|cache| ("medium", cache.medium_name.as_str()));
        out.value("seawall_cache_on", Kind::Gauge, help, medium.as_slice(), f64::from(u8::from(is_on)));
    }
    let Some(cache) = &status.cache else { return };
    gauges(out, cache);
    counters(out, cache);
    for size in &cache.advisory {
        let times = format!("{}", f64::from(size.percent) / 100.0);
        let help = "Reads that a block cache of this multiple of the size would have answered, since the \
                    daemon started.";
        let labels = [("times", times.as_str())];
        out.value("seawall_cache_advised_hit_ratio", Kind::Gauge, help, &labels, size.hit_percent / 100.0);
    }
    add(files, cache);
    files.export(out, &BY_FILE, ("directory", "class"));
}

fn gauges(out: &mut Exposition, c: &CacheStatus) {
    let used = c.blocks_used * u64::from(c.block_bytes);
    let gauges = [
        ("seawall_cache_size_bytes", "Bytes of the block cache.", c.size),
        ("seawall_cache_used_bytes", "Bytes of blocks that are in the block cache.", used),
        ("seawall_cache_files", "Files that are read through the block cache.", u64::from(c.files)),
        (
            "seawall_cache_files_not_served",
            "Files in the block cache that are not served now.",
            u64::from(c.files_not_served),
        ),
    ];
    gauges.iter().for_each(|(name, help, n)| out.value(name, Kind::Gauge, help, &[], *n as f64));
}

fn counters(out: &mut Exposition, c: &CacheStatus) {
    let counters = [
        ("seawall_cache_hits_total", "Blocks that were read from the block cache.", c.hits),
        ("seawall_cache_misses_total", "Reads that the block cache left to the disk.", c.misses),
        ("seawall_cache_admitted_blocks_total", "Blocks that were written to the block cache.", c.admitted),
        (
            "seawall_cache_checksum_failures_total",
            "Blocks of the block cache that were damaged, and dropped.",
            c.failures,
        ),
    ];
    counters.iter().for_each(|(name, help, n)| out.value(name, Kind::Counter, help, &[], *n as f64));
}

fn add(files: &mut Files, cache: &CacheStatus) {
    for file in &cache.by_file {
        let id = format!("{} {}", cache.zone, file.id);
        files.add(id, (directory(&file.path), file.class.clone()), [file.hits, file.misses]);
    }
    // One that is not among those that are shown now may be again.
    files.end(cache.by_file.len() >= cache.files as usize);
}
