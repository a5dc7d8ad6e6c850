//! The block cache's metrics.

use std::collections::BTreeMap;

use seawall_daemon::cache::CacheStatus;
use seawall_daemon::status::Status;

use super::exposition::{Exposition, Kind};

/// Counts by file, added up by directory: files come and go and take theirs along.
#[derive(Default)]
pub struct Files {
    /// What each file had when it was last seen.
    seen: BTreeMap<String, [u64; 2]>,
    /// Everything that was ever seen of each directory and class.
    totals: BTreeMap<(String, String), [u64; 2]>,
}

const BY_FILE: [(&str, &str); 2] = [
    (
        "seawall_cache_directory_hits_total",
        "Blocks read from the block cache, by directory: about, of one read in 64.",
    ),
    ("seawall_cache_directory_misses_total", "Reads that it left to the disk, by directory: about."),
];

/// All of them; where none is wanted, nothing.
pub fn export(out: &mut Exposition, status: &Status, files: &mut Files) {
    let is_on = status.cache.as_ref().is_some_and(|cache| cache.off.is_none());
    if status.cache.is_some() || status.without_cache.is_some() {
        let help = "1 if the block cache serves.";
        let medium = status.cache.as_ref().map(|cache| ("medium", cache.medium_name.as_str()));
        out.value("seawall_cache_on", Kind::Gauge, help, medium.as_slice(), f64::from(u8::from(is_on)));
    }
    let Some(cache) = &status.cache else { return };
    gauges(out, cache);
    counters(out, cache);
    for size in &cache.advisory {
        let times = format!("{}", f64::from(size.percent) / 100.0);
        let help =
            "Reads a block cache of so many times the size would have answered, since the daemon started.";
        let labels = [("times", times.as_str())];
        out.value("seawall_cache_advised_hit_ratio", Kind::Gauge, help, &labels, size.hit_percent / 100.0);
    }
    files.add(cache);
    for (i, (name, help)) in BY_FILE.iter().enumerate() {
        for ((directory, class), totals) in &files.totals {
            let labels = [("directory", directory.as_str()), ("class", class.as_str())];
            out.value(name, Kind::Counter, help, &labels, totals[i] as f64);
        }
    }
}

fn gauges(out: &mut Exposition, c: &CacheStatus) {
    let used = c.blocks_used * u64::from(c.block_bytes);
    let gauges = [
        ("seawall_cache_size_bytes", "Bytes of the block cache.", c.size),
        ("seawall_cache_used_bytes", "Bytes of blocks that are in it.", used),
        ("seawall_cache_files", "Files that are read through it.", u64::from(c.files)),
        (
            "seawall_cache_files_not_served",
            "Of these, files that are not served now.",
            u64::from(c.files_not_served),
        ),
    ];
    gauges.iter().for_each(|(name, help, n)| out.value(name, Kind::Gauge, help, &[], *n as f64));
}

fn counters(out: &mut Exposition, c: &CacheStatus) {
    let counters = [
        ("seawall_cache_hits_total", "Blocks that were read from the block cache.", c.hits),
        ("seawall_cache_misses_total", "Reads that it left to the disk.", c.misses),
        ("seawall_cache_admitted_blocks_total", "Blocks that were written to it.", c.admitted),
        ("seawall_cache_checksum_failures_total", "Blocks of it that were damaged, and dropped.", c.failures),
    ];
    counters.iter().for_each(|(name, help, n)| out.value(name, Kind::Counter, help, &[], *n as f64));
}

impl Files {
    fn add(&mut self, cache: &CacheStatus) {
        let mut now = BTreeMap::new();
        for file in &cache.by_file {
            let counts = [file.hits, file.misses];
            let id = format!("{} {}", cache.zone, file.id);
            let before = self.seen.get(&id).filter(|before| before.iter().zip(counts).all(|(b, c)| *b <= c));
            let before = before.copied().unwrap_or_default();
            let directory = file.path.parent().map(|p| p.display().to_string()).unwrap_or_default();
            let total = self.totals.entry((directory, file.class.clone())).or_default();
            total.iter_mut().zip(counts.iter().zip(before)).for_each(|(total, (now, b))| *total += now - b);
            now.insert(id, counts);
        }
        match cache.by_file.len() < cache.files as usize {
            // One that is not among those that are shown now may be again.
            true => self.seen.extend(now),
            false => self.seen = now,
        }
    }
}
