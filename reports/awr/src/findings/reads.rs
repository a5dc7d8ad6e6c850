//! Reads from outside the buffer cache.

use seawall_page::scale::digits;

use super::finding::{Finding, Kind, WORTH, benefit, sure_of};
use crate::period::Period;

/// Sessions wait for pages.
pub fn waits_for_reads(period: &Period) -> Option<Finding> {
    let event = period.event("db file sequential read")?;
    let share = period.share(event.time_s).filter(|share| *share >= WORTH)?;
    let (sure, sure_because) = sure_of(period, &event.name);
    let hit = period.efficiency.iter().find(|(name, _)| name == "Buffer hit %");
    let hit = hit.map_or_else(String::new, |(_, v)| {
        format!(" The buffer cache had {v:.1} % of the blocks asked for.")
    });
    Some(Finding {
        kind: Kind::Problem,
        title: "Sessions wait for reads of data files".into(),
        share: Some(share),
        because: format!("{} s in {} ({}).{hit}", digits(event.time_s), event.name, event.native),
        action: "a larger buffer cache if memory is free; a block cache on persistent memory (`--cache`); fewer reads (see SQL by elapsed time, segments by physical reads); \
                 faster storage for data files. A faster log does not help here"
            .into(),
        benefit: benefit(period, share),
        sure,
        sure_because,
    })
}
