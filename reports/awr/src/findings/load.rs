//! What the load itself does: CPU, locks, statements, or nothing.

use seawall_page::scale::{bytes, digits};

use super::finding::{Finding, Kind, Sure, WORTH, benefit, sure_of};
use crate::period::Period;

/// Sum of the events of a class.
fn class(period: &Period, class: &str) -> (f64, Vec<String>) {
    let events: Vec<_> = period.events.iter().filter(|e| e.class == class).collect();
    (events.iter().map(|e| e.time_s).sum(), events.iter().map(|e| e.name.clone()).collect())
}

/// Sessions wait for each other's transactions.
pub fn locks(period: &Period) -> Option<Finding> {
    let (time, names) = class(period, "Application");
    let share = period.share(time).filter(|share| *share >= WORTH)?;
    let (sure, sure_because) = sure_of(period, names.first()?);
    Some(Finding {
        kind: Kind::Problem,
        title: "Sessions wait for locks of other sessions".into(),
        share: Some(share),
        because: format!("{} s in {}.", digits(time), names.join(", ")),
        action: "shorter transactions; the hottest rows updated last in them. Faster commits shorten the time locks are held, so \
                 this may shrink when commits do"
            .into(),
        benefit: benefit(period, share),
        sure,
        sure_because,
    })
}

/// Sessions compute, or wait for a CPU.
pub fn processor(period: &Period) -> Option<Finding> {
    let event = period.event("DB CPU")?;
    let share = period.share(event.time_s).filter(|share| *share >= 2.0 * WORTH)?;
    let busy = 100.0
        - period.machine.cpu.get("idle").copied().unwrap_or(100.0)
        - period.machine.cpu.get("iowait").copied().unwrap_or(0.0);
    // A database that hardly does anything is not held up by CPUs, however busy others keep them.
    let saturated = busy >= 85.0 && period.average_active().is_some_and(|active| active >= 0.5);
    let (sure, sure_because) = sure_of(period, "DB CPU");
    let seen = if event.source == "sampled" { "on a CPU or waiting for one" } else { "on a CPU" };
    Some(Finding {
        kind: if saturated { Kind::Problem } else { Kind::Information },
        title: if saturated { "The CPUs are the limit".into() } else { "Time on the CPU".into() },
        share: Some(share),
        because: format!(
            "{} s {seen}; the machine's {} CPUs were {busy:.0} % busy, with everything that runs on it.",
            digits(event.time_s),
            period.machine.cpus
        ),
        action: if saturated {
            "tune the statements that take most (see SQL by elapsed time), or add CPUs; faster storage will not show before that".into()
        } else {
            String::new()
        },
        benefit: None,
        sure,
        sure_because,
    })
}

/// Sessions wait for latches.
pub fn concurrency(period: &Period) -> Option<Finding> {
    let (time, names) = class(period, "Concurrency");
    let share = period.share(time).filter(|share| *share >= WORTH)?;
    let (sure, sure_because) = sure_of(period, names.first()?);
    Some(Finding {
        kind: Kind::Problem,
        title: "Sessions wait for each other inside the server".into(),
        share: Some(share),
        because: format!("{} s in {}.", digits(time), names.join(", ")),
        action: "fewer sessions at a time (a connection pool); see which statements touch the same pages"
            .into(),
        benefit: benefit(period, share),
        sure,
        sure_because,
    })
}

/// One statement takes much of the time.
pub fn one_statement(period: &Period) -> Option<Finding> {
    let first = period.statements.first()?;
    let share = period.share(first.time_s).filter(|share| *share >= 30.0)?.min(100.0);
    let text: String = first.text.chars().take(120).collect();
    Some(Finding {
        kind: Kind::Information,
        title: "One statement takes much of the time".into(),
        share: Some(share),
        because: format!(
            "{text} ({} s in {} calls).",
            digits(first.time_s),
            digits(first.counters.get("calls").copied().unwrap_or(0.0))
        ),
        action: "see whether it can do less: EXPLAIN (ANALYZE, BUFFERS)".into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}

/// Sorts and hashes that did not fit.
pub fn temporary_files(period: &Period) -> Option<Finding> {
    let temporary = period.counters.get("temp bytes").copied()?;
    let rate = period.per_second(temporary);
    (rate > 1e6).then(|| Finding {
        kind: Kind::Symptom,
        title: "Sorts and hashes spill to temporary files".into(),
        share: None,
        because: format!("{} of temporary files, {} a second.", bytes(temporary), bytes(rate)),
        action: "raise work_mem for the statements that need it".into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}

/// Nobody asked for anything.
pub fn idle(period: &Period) -> Option<Finding> {
    let active = period.average_active().filter(|active| *active < 0.5)?;
    Some(Finding {
        kind: Kind::Information,
        title: "The database mostly waited for its clients".into(),
        share: None,
        because: format!(
            "{} sessions were in a statement on average: the load was small, so this period says little \
             about limits.",
            digits(active)
        ),
        action: "capture a busy period before deciding anything".into(),
        benefit: None,
        sure: Sure::High,
        sure_because: "counted".into(),
    })
}
