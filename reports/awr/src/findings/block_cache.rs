//! The block cache: too small, too large, not serving.

use seawall_page::scale::{bytes, digits};

use super::finding::{Finding, Kind, Sure, WORTH, benefit};
use crate::period::{BlockCache, CacheSize, Period};

/// Sampled reads from which on an estimate counts; each stands for 64.
const ENOUGH: f64 = 1000.0;
/// Points of the share of reads answered that are worth another size.
const CLEAR: f64 = 5.0;
/// Points that nobody would miss.
const NOTHING: f64 = 1.0;

/// An estimate that can be believed.
fn sized(cache: &BlockCache, percent: u32) -> Option<&CacheSize> {
    cache.sized(percent).filter(|size| size.reads >= ENOUGH)
}

fn sureness(size: &CacheSize) -> (Sure, String) {
    let because = format!("{} sampled reads, each for 64", digits(size.reads));
    (if size.reads >= 10.0 * ENOUGH { Sure::High } else { Sure::Medium }, because)
}

/// A larger one would spare reads of the disk that cost something.
pub fn too_small(period: &Period) -> Option<Finding> {
    let cache = period.block_cache.as_ref()?;
    let now = sized(cache, 100)?;
    let gain = |size: &CacheSize| size.hit_percent() - now.hit_percent();
    let larger = [200, 400].into_iter().filter_map(|percent| sized(cache, percent));
    let wanted = larger.into_iter().find(|size| gain(size) >= CLEAR)?;
    let spared = gain(wanted) / (100.0 - now.hit_percent());
    let waited = period.seawall.as_ref()?.waits.iter().find(|w| w.name == "db file sequential read")?.time_s;
    // That includes waits of background processes; the sessions' waits for reads, as the database has them, bound it.
    let of_sessions =
        period.event("db file sequential read").map_or(waited, |event| event.time_s.min(waited));
    let share = period.share(of_sessions * spared);
    if share.is_some_and(|share| share < WORTH) {
        return None;
    }
    let (sure, sure_because) = sureness(now);
    Some(Finding {
        kind: Kind::Problem,
        title: "A larger block cache would spare reads of the disk".into(),
        share,
        because: format!(
            "It answers {:.0} % of its reads; with {} it would answer {:.0} %, so {:.0} % fewer reads would \
             go to the disk. Reads of the disk took {} s.",
            now.hit_percent(),
            bytes(wanted.size),
            wanted.hit_percent(),
            spared * 100.0,
            digits(waited)
        ),
        action: format!(
            "`--cache {}` if there is the memory for it; see the block cache advisory for other sizes",
            argument(wanted.size)
        ),
        benefit: share.and_then(|share| benefit(period, share)),
        sure,
        sure_because,
    })
}

/// Half of it would do as well.
pub fn too_large(period: &Period) -> Option<Finding> {
    let cache = period.block_cache.as_ref()?;
    let (half, now) = (sized(cache, 50)?, sized(cache, 100)?);
    let lost = now.hit_percent() - half.hit_percent();
    // One that answers nothing is not too large: it is of no use to this load.
    if lost > NOTHING || now.hit_percent() < CLEAR {
        return None;
    }
    let (sure, sure_because) = sureness(now);
    Some(Finding {
        kind: Kind::Information,
        title: "Half of the block cache would do".into(),
        share: None,
        because: format!(
            "It answers {:.1} % of its reads; with {} it would answer {:.1} %. {} of it is in use.",
            now.hit_percent(),
            bytes(half.size),
            half.hit_percent(),
            bytes(cache.end("blocks_used") * cache.end("block_bytes"))
        ),
        action: format!(
            "`--cache {}` frees the rest, if this period is what the database does",
            argument(half.size)
        ),
        benefit: None,
        sure,
        sure_because,
    })
}

/// It is off, or files are not served.
pub fn not_serving(period: &Period) -> Option<Finding> {
    let cache = period.block_cache.as_ref()?;
    let files = cache.end("files_not_served");
    let (title, because, action) = if !cache.off.is_empty() {
        let action = "the daemon's log says more (`seawall status` names it); restart the daemon when the cause is gone";
        ("The block cache serves nothing".to_owned(), cache.off.clone(), action)
    } else if files > 0.0 {
        let reasons = cache.files.iter().map(|file| file.not_served.as_str()).find(|why| !why.is_empty());
        let because = format!(
            "{} of {} files at the end: {}.",
            files,
            cache.end("files"),
            reasons.unwrap_or("see status")
        );
        let action = "start the programs that open them with Seawall too, or keep those programs away from \
                      the database's files";
        ("Files are not served from the block cache".to_owned(), because, action)
    } else {
        return None;
    };
    Some(Finding {
        kind: Kind::Symptom,
        title,
        share: None,
        because,
        action: action.into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "as it was at the end of the period".into(),
    })
}

/// A size as `--cache` takes it.
fn argument(size: f64) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    match (size / MIB).round() as u64 {
        mib if mib % 1024 == 0 => format!("{}G", mib / 1024),
        mib => format!("{mib}M"),
    }
}
