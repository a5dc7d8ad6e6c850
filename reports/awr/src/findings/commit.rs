//! Commits, checkpoints, redo.

use seawall_page::scale::{bytes, digits, time};

use super::finding::{Finding, Kind, Sure, WORTH, benefit, sure_of};
use crate::period::Period;
use crate::recovery::{Exposure, Timed};

/// Sessions wait until their commit is on disk.
pub fn waits_for_the_log(period: &Period) -> Option<Finding> {
    let event = period.event("log file sync")?;
    let share = period.share(event.time_s).filter(|share| *share >= WORTH)?;
    let (sure, sure_because) = sure_of(period, &event.name);
    let wal = period.background.iter().find(|e| e.source == "counted" && e.name == "log file parallel write");
    let one = wal.and_then(|w| Some(w.time_s * 1e9 / w.waits?));
    let each = one
        .map_or_else(String::new, |ns| format!(" A write and sync of the log took {} on average.", time(ns)));
    let (action, gain) = match &period.seawall {
        None => (
            "put the log on a medium that syncs faster: `seawall run` (or attach) keeps commits durable in persistent memory; \
             the present durability stays as it is"
                .to_owned(),
            benefit(period, share),
        ),
        Some(part) => (
            format!(
                "Seawall is under this database ({}), and commits still wait: look at its part of this report for real syncs, \
                 writes around the log, and a full log; waits for the CPU count here as well",
                part.medium_name
            ),
            None,
        ),
    };
    Some(Finding {
        kind: Kind::Problem,
        title: "Commits wait for the redo log".into(),
        share: Some(share),
        because: format!(
            "Sessions spent {} s in {} ({}).{each}",
            digits(event.time_s),
            event.name,
            event.native
        ),
        action,
        benefit: gain,
        sure,
        sure_because,
    })
}

/// Checkpoints that came because the log's space was used up.
pub fn checkpoints_for_want_of_log(period: &Period) -> Option<Finding> {
    let count = |name: &str| period.counters.get(name).copied();
    let (timed, asked) = (count("checkpoints timed")?, count("checkpoints requested")?);
    (asked >= 2.0 && asked > timed).then(|| Finding {
        kind: Kind::Symptom,
        title: "Checkpoints run because the log's space is used up".into(),
        share: None,
        because: format!(
            "{} checkpoints were requested, {} came by time; each one makes full-page images and bursts of \
             writes.",
            digits(asked),
            digits(timed)
        ),
        action: "raise max_wal_size until checkpoints come by time (those that were asked for by CHECKPOINT or a backup count \
                 here as well)"
            .into(),
        benefit: None,
        sure: Sure::Medium,
        sure_because: "counted, but not who requested them".into(),
    })
}

/// A crash would cost more time than was asked for.
pub fn recovery_too_long(period: &Period) -> Option<Finding> {
    let exposed = period.exposed.filter(Exposure::is_too_long)?;
    let Timed { seconds, goal } = exposed.time?;
    Some(Finding {
        kind: Kind::Problem,
        title: format!(
            "A crash would have taken {} to recover, not {}",
            time(seconds * 1e9),
            time(goal * 1e9)
        ),
        share: None,
        because: format!(
            "At the worst of the snapshots, {} of redo lay behind the last checkpoint. The estimate takes \
             the speed of this data's last recovery, or an assumed one until there was a recovery.",
            bytes(exposed.redo)
        ),
        action:
            "check whether the server lets `seawall run` ask for checkpoints (if not, it says so on stderr: \
             the role may need pg_checkpoint), and whether its own settings are those that \
             `seawall tune --recovery` names"
                .into(),
        benefit: None,
        sure: Sure::Medium,
        sure_because: "the redo is counted, the time is estimated".into(),
    })
}

/// Redo that is mostly images of whole pages.
pub fn full_pages(period: &Period) -> Option<Finding> {
    let count = |name: &str| period.counters.get(name).copied();
    let (images, redo) = (count("wal fpi")?, count("wal bytes").filter(|n| *n > 1e6)?);
    let share = (images * 8192.0 / redo).min(1.0) * 100.0;
    (share >= 30.0).then(|| Finding {
        kind: Kind::Symptom,
        title: "Much of the redo is images of whole pages".into(),
        share: None,
        because: format!("{} images of 8 KiB (before compression) against {} of redo: up to {share:.0} % of it.", digits(images), bytes(redo)),
        action: "checkpoints further apart (checkpoint_timeout, max_wal_size); wal_compression; or Seawall's policy atomic on \
                 persistent memory, under which full_page_writes may be off (`seawall tune postgres --policy atomic`)"
            .into(),
        benefit: None,
        sure: Sure::Medium,
        sure_because: "counted images, estimated size".into(),
    })
}
