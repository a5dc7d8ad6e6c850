//! The block cache.

use seawall_daemon::cache::{AdvisoryStatus, CacheStatus, CachedFileStatus};

use crate::show::{self, Fact};
use crate::size;

/// The block cache, and what other sizes of it would give.
pub fn facts(c: &CacheStatus) -> Vec<Fact> {
    let used = size::human(c.blocks_used * u64::from(c.block_bytes));
    let mut facts = vec![
        (
            "block cache",
            format!("{} ({}), {}, {used} in use", c.path.display(), c.medium_name, size::human(c.size)),
        ),
        (
            "",
            format!(
                "{} of {} reads answered ({}), {} blocks admitted",
                c.hits,
                c.hits + c.misses,
                share(c.hits, c.misses),
                c.admitted
            ),
        ),
        (
            "",
            format!(
                "{} of {} files entered, {} of them not served now",
                c.files, c.files_max, c.files_not_served
            ),
        ),
    ];
    facts.extend(c.write_budget.map(|day| {
        let left = size::human(c.write_budget_left);
        (
            "write budget",
            format!("{} a day, {left} left now; {} blocks over it", size::human(day), c.over_budget),
        )
    }));
    if c.dropped > 0 {
        facts.push(("", format!("{} blocks found no room on their way to the disk", c.dropped)));
    }
    if c.disk_errors > 0 {
        facts.push(("", format!("{} reads and writes failed: check its disk", c.disk_errors)));
    }
    facts.extend(c.off.iter().map(|why| ("CACHE OFF", why.clone())));
    if c.failures > 0 {
        facts.push(("", format!("{} blocks had wrong checksums and were dropped", c.failures)));
    }
    if !c.advisory.is_empty() {
        let of = |size: &AdvisoryStatus| format!("{}: {:.0} %", size::human(size.size), size.hit_percent);
        let sizes = c.advisory.iter().map(of).collect::<Vec<_>>().join(", ");
        facts.push(("cache sizes", format!("share of the sampled reads that each would answer: {sizes}")));
    }
    facts
}

/// The files that are read most through the block cache.
pub fn tell_files(c: &CacheStatus) {
    const SHOWN: usize = 20;
    if c.by_file.is_empty() {
        return;
    }
    outln!("\nfiles in the block cache (from one read in 64, so approximate)");
    let row = |f: &CachedFileStatus| {
        let state = f.not_served.clone().unwrap_or_else(|| "served".into());
        let path = f.path.display().to_string();
        vec![path, share(f.hits, f.misses), f.hits.to_string(), f.misses.to_string(), state]
    };
    let rows: Vec<_> = c.by_file.iter().take(SHOWN).map(row).collect();
    show::table(&["path", "answered", "hits", "reads of the disk", "state"], &rows);
    if c.files as usize > rows.len() {
        outln!("  … and {} more", c.files as usize - rows.len());
    }
}

fn share(hits: u64, misses: u64) -> String {
    match hits + misses {
        0 => "–".into(),
        all => format!("{:.1} %", hits as f64 * 100.0 / all as f64),
    }
}
