//! The timed events: where the clients' time went.
//!
//! With samples: each event's share of the samples, of the DB time that the database counted. Without: the
//! I/O times it counted, its CPU time, and the rest by name as what it is: unknown.

use std::collections::BTreeMap;

use super::counted;
use super::figures::{Event, Load, Period};
use super::sampled::{Sampled, Seen};
use crate::delta::Deltas;

/// Fills in both lists.
pub fn fill(period: &mut Period, deltas: &Deltas, sampled: &Sampled) {
    // Redis counts the time of its commands; that it writes and syncs its log on the same thread, it does not.
    if period.db_time_s.is_none() || period.target.product == "Redis" {
        period.db_time_is_sampled = sampled.db_time_s().is_some();
        period.db_time_s = sampled.db_time_s().or(period.db_time_s);
        replace_db_time(period);
    }
    period.background = counted::background(deltas);
    if sampled.active > 0 {
        let all = period.db_time_s.unwrap_or_default();
        let of = |sessions: u64| all * sessions as f64 / sampled.active as f64;
        period.events = rows(&sampled.foreground, of);
    } else {
        period.events = counted::foreground(period, deltas);
    }
    let by_time = |sessions: u64| sessions as f64 * sampled.interval_s;
    period.background.extend(rows(&sampled.background, by_time));
    for events in [&mut period.events, &mut period.background] {
        events.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    }
}

/// The load profile shows the DB time that everything else refers to.
fn replace_db_time(period: &mut Period) {
    let Some(total) = period.db_time_s else { return };
    match period.load.iter_mut().find(|row| row.name == "DB time") {
        Some(row) => row.total = total,
        None => period.load.insert(0, Load { name: "DB time".into(), total, unit: "s".into() }),
    }
}

fn rows(seen: &BTreeMap<(&'static str, &'static str), Seen>, time: impl Fn(u64) -> f64) -> Vec<Event> {
    let row = |((name, class), seen): (&(&str, &str), &Seen)| Event {
        name: (*name).into(),
        class: (*class).into(),
        waits: None,
        time_s: time(seen.sessions),
        native: seen.native.join(", "),
        source: "sampled".into(),
        seen: seen.sessions,
    };
    seen.iter().map(row).collect()
}
