//! Keepers of a log on other hosts: the one that commits wait for, the way to all of them, too few of them.

use seawall_page::scale::{digits, time};

use super::finding::{Finding, Kind, Sure, WORTH};
use crate::period::{Keeper, Period};

/// How many times as long as the next one a keeper takes that is to blame.
const SLOWER: f64 = 3.0;
/// Round trips of a keeper that say something about its p99.
const ENOUGH: f64 = 100.0;
/// The part of a sync's wait that the round trip has to be: more than half.
const MOST: f64 = 0.5;

/// One keeper is much slower than those before it, and commits need its word.
pub fn one_is_slow(period: &Period) -> Option<Finding> {
    let keepers = period.keepers.as_ref()?;
    let timed = |k: &&Keeper| k.role == "counts" && k.round_trips.count >= ENOUGH;
    let p99 = |k: &Keeper| k.round_trips.quantile_ns(0.99).unwrap_or(0) as f64;
    let mut each: Vec<&Keeper> = keepers.each.iter().filter(timed).collect();
    each.sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    // Commits wait for as many as confirm them, the fastest ones.
    let last = (keepers.acks as usize).checked_sub(1)?;
    let (before, slow) = (each.get(last.checked_sub(1)?)?, each.get(last)?);
    let spare = keepers.counting - keepers.acks;
    (p99(slow) >= SLOWER * p99(before)).then(|| Finding {
        kind: Kind::Problem,
        title: format!("Commits wait for the keeper {}", slow.address),
        share: waited(period),
        because: format!(
            "It confirmed 99 of 100 batches within {}, and the next faster keeper within {}. {} of them \
             confirm a commit, and {} count: no faster one is left.",
            time(p99(slow)),
            time(p99(before)),
            keepers.acks,
            keepers.counting
        ),
        action: if slow.affirms {
            "it confirms only batches that its disk has: a faster disk there, or `--harden noaffirm`, if the \
             others' memory is safe enough"
                .into()
        } else if spare > 0.0 {
            "check its host and the network to it (`seawall keeper status`); the others that count are \
             slower still"
                .into()
        } else {
            "check its host and the network to it (`seawall keeper status`); with one keeper more than \
             confirm a commit, no commit waits for the slowest"
                .into()
        },
        benefit: None,
        sure: Sure::High,
        sure_because: "each round trip was timed".into(),
    })
}

/// Syncs wait mostly for the way to the keepers and back.
pub fn round_trip(period: &Period) -> Option<Finding> {
    let keepers = period.keepers.as_ref()?;
    let mean = |name: &str| {
        let wait = period.seawall.as_ref()?.waits.iter().find(|wait| wait.name == name)?;
        (wait.count >= ENOUGH).then(|| wait.mean_ns())
    };
    let (sync, remote) = (mean("log file sync")?, mean("log file remote write")?);
    let share = waited(period).filter(|share| *share >= WORTH)?;
    let affirms = keepers.each.iter().filter(|keeper| keeper.affirms).count();
    (remote >= MOST * sync).then(|| Finding {
        kind: Kind::Problem,
        title: "Commits wait for the round trip to the keepers".into(),
        share: Some(share),
        because: format!(
            "For {} of the {} that a sync waited on average, the log was on its way to the keepers and back.",
            time(remote.min(sync)),
            time(sync)
        ),
        action: match affirms {
            0 => "keepers nearer to this host (one zone, one rack), a faster network; more clients at a time share one round \
                  trip"
                .into(),
            n => format!(
                "{n} keepers confirm only batches that their disks have (`--harden affirm`), so that time \
                 includes their disks: faster ones, or `noaffirm`"
            ),
        },
        benefit: None,
        sure: Sure::High,
        sure_because: "each wait was timed".into(),
    })
}

/// For part of the time too few keepers counted.
pub fn short_of_copies(period: &Period) -> Option<Finding> {
    let keepers = period.keepers.as_ref()?;
    let lost: Vec<_> = keepers.each.iter().filter(|k| k.reconnects > 0.0 || k.role != "counts").collect();
    let name = |k: &&Keeper| match k.trouble.as_str() {
        "" => format!("the connection to {} was made again {} times", k.address, digits(k.reconnects)),
        trouble => format!("{} {}: {trouble}", k.address, k.role),
    };
    let lost = lost.iter().map(name).collect::<Vec<_>>().join("; ");
    let lost = if lost.is_empty() { lost } else { format!(" {lost}.") };
    (keepers.short_s > 0.0).then(|| Finding {
        kind: Kind::Problem,
        title: "The log was short of copies".into(),
        share: None,
        because: format!(
            "Fewer than {} keepers counted for {} s in all, {} times; commits waited for them.{lost}",
            keepers.acks,
            digits(keepers.short_s),
            digits(keepers.short_times)
        ),
        action: "the daemon's log says which keepers were lost and why; more keepers than confirm a commit let commits go on \
                 without one"
            .into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}

/// For part of the time this host went on without them.
pub fn alone(period: &Period) -> Option<Finding> {
    let keepers = period.keepers.as_ref()?;
    (keepers.alone_s > 0.0).then(|| Finding {
        kind: Kind::Problem,
        title: "This host was alone".into(),
        share: None,
        because: format!(
            "For {} s in all, {} times, it went on without enough keepers. Everything that it acknowledged \
             then was on its own disk and nowhere else until the keepers had the log again, and each commit \
             waited for that disk",
            digits(keepers.alone_s),
            digits(keepers.alone_times)
        ),
        action: "the daemon's log says when it began, and which keepers were lost and why. Where an acknowledged commit must \
                 never be on one disk only, the mode protection makes commits wait instead (`seawall init --mode`)"
            .into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}

/// The share of DB time that sessions waited for their commits.
fn waited(period: &Period) -> Option<f64> {
    period.event("log file sync").and_then(|event| period.share(event.time_s))
}
