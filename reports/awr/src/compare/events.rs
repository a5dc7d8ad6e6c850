//! Events of two periods, paired.

use super::comparison::EventPair;
use crate::period::{Event, Period};
use crate::report::sampling_error;

/// Rows of a top list.
pub const TOP: usize = 10;

/// How far two shares are apart; what is absent has none.
pub fn distance([a, b]: [Option<f64>; 2]) -> f64 {
    (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs()
}

/// The first rows of a list, by name.
pub fn top(events: &[Event]) -> Vec<&str> {
    events.iter().take(TOP).map(|e| e.name.as_str()).collect()
}

/// Events that made either top list, the largest difference first.
pub fn pairs(first: &Period, second: &Period, list: fn(&Period) -> &Vec<Event>) -> Vec<EventPair> {
    let mut names = top(list(first));
    names.extend(top(list(second)).into_iter().filter(|name| !top(list(first)).contains(name)));
    let mut pairs: Vec<_> = names.into_iter().map(|name| pair(name, [first, second], list)).collect();
    pairs.sort_by(|a, b| distance(b.share).total_cmp(&distance(a.share)));
    pairs
}

fn pair(name: &str, periods: [&Period; 2], list: fn(&Period) -> &Vec<Event>) -> EventPair {
    let both = periods.map(|p| list(p).iter().find(|e| e.name == name));
    let each = |f: &dyn Fn(&Period, &Event) -> Option<f64>| {
        std::array::from_fn(|i| both[i].and_then(|e| f(periods[i], e)))
    };
    let share: [Option<f64>; 2] = each(&|p, e| p.share(e.time_s));
    let errors: [Option<f64>; 2] = each(&sampling_error);
    let error = errors.iter().flatten().map(|e| e * e).sum::<f64>().sqrt();
    EventPair {
        name: name.into(),
        class: both.iter().flatten().next().map(|e| e.class.clone()).unwrap_or_default(),
        share,
        waits_per_second: each(&|p, e| e.waits.map(|n| p.per_second(n))),
        time_s: each(&|_, e| Some(e.time_s)),
        mean_ns: each(&|_, e| e.waits.filter(|n| *n > 0.0).map(|n| e.time_s * 1e9 / n)),
        within_error: error > 0.0 && distance(share) <= error,
    }
}
