//! Seawall's own troubles.

use seawall_page::scale::{digits, time};

use super::finding::{Finding, Kind, Sure};
use crate::period::Period;

/// The log was too small for the burst, or the disk too slow for the load.
pub fn log_full(period: &Period) -> Option<Finding> {
    let part = period.seawall.as_ref()?;
    let full = part.waits.iter().find(|w| w.name == "log full")?;
    let longest = full.buckets.last().map_or_else(String::new, |(floor, _)| {
        format!(" The longest wait was above {}.", time(*floor as f64))
    });
    Some(Finding {
        kind: Kind::Problem,
        title: "Seawall's log was full".into(),
        share: period.share(full.time_s),
        because: format!("{} writes waited for space or went around the log.{longest}", digits(full.count)),
        action:
            "a larger pool carries longer bursts; if it happens all the time, the disk cannot keep up with \
             the writes, and no log helps"
                .into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}

/// Syncs that were real although Seawall is there.
pub fn around_the_log(period: &Period) -> Option<Finding> {
    let part = period.seawall.as_ref()?;
    let sum = |name: &str| part.classes.iter().filter_map(|c| c.counters.get(name)).sum::<f64>();
    let (real, absorbed) = (sum("real_syncs"), sum("absorbed"));
    let share = real * 100.0 / (real + absorbed).max(1.0);
    (share >= 1.0 && real >= 10.0).then(|| Finding {
        kind: Kind::Symptom,
        title: "Syncs went to the disk although Seawall is there".into(),
        share: part.waits.iter().find(|w| w.name == "sync real").and_then(|w| period.share(w.time_s)),
        because: format!("{} real syncs, {} absorbed: {share:.1} % real.", digits(real), digits(absorbed)),
        action: "`seawall status` says why files are not tracked; the first sync of a new file is always real (min_wal_size lets \
                 PostgreSQL recycle instead of create)"
            .into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}
