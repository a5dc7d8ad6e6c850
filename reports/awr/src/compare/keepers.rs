//! The keepers of two periods side by side.

use seawall_page::scale::{digits, time};
use seawall_page::{Section, Table};

use super::cells::{dash, difference};
use super::comparison::Comparison;
use crate::period::{Keeper, Keepers, Period};

/// A row: its name, how to show a figure, and the figure.
type Row<T> = (&'static str, fn(f64) -> String, fn(&Period, &T) -> Option<f64>);

const ROWS: [Row<Keepers>; 6] = [
    ("Confirm a commit", digits, |_, k| Some(k.acks)),
    ("Counted at the end", digits, |_, k| Some(k.counting)),
    ("Too few of them, times", digits, |_, k| Some(k.short_times)),
    ("Too few of them, s", digits, |_, k| Some(k.short_s)),
    ("Alone, times", digits, |_, k| Some(k.alone_times)),
    ("Alone, s", digits, |_, k| Some(k.alone_s)),
];

const OF_EACH: [Row<Keeper>; 4] = [
    ("round trip, mean", time, |_, k| Some(k.round_trips.mean_ns()).filter(|ns| *ns > 0.0)),
    ("round trip, p99", time, |_, k| k.round_trips.quantile_ns(0.99).map(|ns| ns as f64)),
    ("sent, bytes/s", digits, |p, k| Some(p.per_second(k.sent))),
    ("connected again", digits, |_, k| Some(k.reconnects)),
];

/// The section; empty if neither period's log has keepers.
pub fn section(c: &Comparison) -> Section {
    let mut section = Section::new("Seawall: Keepers");
    let periods = [&c.first, &c.second];
    if periods.iter().all(|period| period.keepers.is_none()) {
        return section;
    }
    let mut table = Table::new("", &["<", "1st", "2nd", "%Diff"]);
    for (name, show, of) in ROWS {
        let values = periods.map(|period| of(period, period.keepers.as_ref()?));
        let [a, b] = values.map(|value| dash(value.map(show)));
        table.row([name.into(), a, b, difference(values)]);
    }
    let each =
        |period: &Period| period.keepers.iter().flat_map(|k| &k.each).map(|k| k.address.clone()).collect();
    let addresses: [Vec<String>; 2] = periods.map(each);
    for address in addresses.concat().iter().collect::<std::collections::BTreeSet<_>>() {
        for (name, show, of) in OF_EACH {
            let values = periods.map(|period| {
                let mut each = period.keepers.as_ref()?.each.iter();
                of(period, each.find(|keeper| keeper.address == *address)?)
            });
            let [a, b] = values.map(|value| dash(value.map(show)));
            table.row([format!("{address}: {name}"), a, b, difference(values)]);
        }
    }
    let [a, b] = periods.map(|period| dash(period.keepers.as_ref().map(|keepers| keepers.survives.clone())));
    table.row(["Survives".into(), a, b, String::new()]);
    section.table(table);
    section
}
