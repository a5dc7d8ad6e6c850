//! A comparison as a document.

use seawall_page::chart::{Chart, Spread};
use seawall_page::scale::{digits, time};
use seawall_page::{Block, Document, Section, Table};

use super::cells::{dash, difference};
use super::comparison::{Comparison, EventPair};
use super::{block_cache, events, keepers};
use crate::period::{Event, Period};
use crate::report::{header_facts, short_version, words};

/// The whole report.
pub fn document(c: &Comparison) -> Document {
    Document {
        brand: "Seawall · compare periods".into(),
        title: format!("{} {}: two periods", c.first.target.product, short_version(&c.first.target)),
        medium: medium(c),
        facts: Vec::new(),
        sections: vec![
            snapshot_sets(c),
            verdicts(c),
            load(c),
            top_events(c),
            differences(c),
            background(c),
            keepers::section(c),
            block_cache::section(c),
            statements(c),
            machine(c),
            settings(c),
            limits(c),
        ],
    }
}

fn medium(c: &Comparison) -> Option<String> {
    let of = |p: &Period| p.seawall.as_ref().map(|s| s.medium.clone());
    match (of(&c.first), of(&c.second)) {
        (None, None) => None,
        (a, b) if a == b => a,
        (a, b) => {
            let word = |m: Option<String>| m.unwrap_or_else(|| "no Seawall".into());
            Some(format!("{} → {}", word(a), word(b)))
        }
    }
}

fn snapshot_sets(c: &Comparison) -> Section {
    let mut section = Section::new("Snapshot Sets");
    let mut table = Table::new("", &["<", "<<1st", "<<2nd"]);
    let (first, second) = (header_facts(&c.first), header_facts(&c.second));
    let find = |facts: &[(String, String)], name: &str| {
        facts.iter().find(|(n, _)| n == name).map_or_else(|| "-".into(), |(_, value)| value.clone())
    };
    let more = second.iter().filter(|(name, _)| !first.iter().any(|(n, _)| n == name));
    for (name, _) in first.iter().chain(more) {
        table.row([name.clone(), find(&first, name), find(&second, name)]);
    }
    section.table(table).chart(rates(c));
    section
}

/// Transactions a second, interval by interval: the spread that a gain has to be larger than.
fn rates(c: &Comparison) -> Option<Chart> {
    let rows = vec![("1st".to_owned(), c.first.rates.clone()), ("2nd".to_owned(), c.second.rates.clone())];
    let drawable = rows.iter().all(|(_, rates)| rates.len() >= 2);
    let title = "Transactions a second, each interval a dot, the line their median".into();
    drawable.then_some(Chart::Spread(Spread { title, unit: "transactions/s".into(), rows }))
}

fn verdicts(c: &Comparison) -> Section {
    let mut section = Section::new("What the figures show");
    section.blocks.extend(c.verdicts.iter().map(|v| Block::Note(v.note())));
    section
}

fn load(c: &Comparison) -> Section {
    let mut section = Section::new("Load Profile");
    let mut table =
        Table::new("", &["<", "1st per sec", "2nd per sec", "%Diff", "1st per txn", "2nd per txn", "%Diff"]);
    for row in &c.load {
        let show = |v: Option<f64>| dash(v.map(|v| words::of_unit(v, &row.unit)));
        let [a, b] = row.per_second.map(show);
        let [c, d] = row.per_transaction.map(show);
        let cells =
            [row.name.clone(), a, b, difference(row.per_second), c, d, difference(row.per_transaction)];
        table.row(cells);
    }
    section.table(table);
    section
}

/// The two top lists side by side. Below them, with a dash before their names, what made the other list only.
fn top_events(c: &Comparison) -> Section {
    let mut section = Section::new("Top Timed Events");
    section.words(
        "Events with a \"-\" did not make the top list of that period, but are shown for comparison. A \"-\" \
                   instead of a figure: that period has none of it.",
    );
    let head = [
        "<1st: event",
        "Waits",
        "Time (s)",
        "Avg",
        "%DB time",
        "<2nd: event",
        "Waits",
        "Time (s)",
        "Avg",
        "%DB time",
    ];
    let mut table = Table::new("", &head);
    let (left, right) = (column(&c.first, &c.second), column(&c.second, &c.first));
    for i in 0..left.len().max(right.len()) {
        let cells = |rows: &[[String; 5]]| rows.get(i).cloned().unwrap_or_default().to_vec();
        table.row([cells(&left), cells(&right)].concat());
    }
    section.table(table);
    section
}

fn column(mine: &Period, other: &Period) -> Vec<[String; 5]> {
    let names = events::top(&mine.events);
    let others = events::top(&other.events).into_iter().filter(|name| !names.contains(name));
    let row = |name: &str, mark: &str| match mine.event(name) {
        Some(event) => event_row(mine, event, mark),
        None => [format!("-{name}"), "-".into(), "-".into(), "-".into(), "-".into()],
    };
    let listed = names.iter().map(|name| row(name, ""));
    listed.chain(others.map(|name| row(name, "-"))).collect()
}

fn event_row(p: &Period, event: &Event, mark: &str) -> [String; 5] {
    [
        format!("{mark}{}", event.name),
        dash(event.waits.map(digits)),
        digits(event.time_s),
        dash(event.waits.filter(|n| *n > 0.0).map(|n| time(event.time_s * 1e9 / n))),
        dash(p.share(event.time_s).map(|s| format!("{s:.2}"))),
    ]
}

fn differences(c: &Comparison) -> Section {
    let mut section = Section::new("Wait Events by Difference");
    if c.events.is_empty() {
        return section;
    }
    section.words("Ordered by the difference of their shares of DB time, largest first. ≈: smaller than the error of sampling.");
    let head = [
        "<Event",
        "<Wait class",
        "1st %DB",
        "2nd %DB",
        "Diff",
        "",
        "1st waits/s",
        "2nd waits/s",
        "%Diff",
        "1st avg",
        "2nd avg",
        "%Diff",
    ];
    let mut table = Table::new("", &head);
    c.events.iter().for_each(|pair| table.row(difference_row(pair)));
    section.table(table);
    section
}

fn difference_row(pair: &EventPair) -> [String; 12] {
    let [a, b] = pair.share.map(|s| dash(s.map(|s| format!("{s:.2}"))));
    let apart = pair.share[1].unwrap_or(0.0) - pair.share[0].unwrap_or(0.0);
    let [c, d] = pair.waits_per_second.map(|w| dash(w.map(digits)));
    let [e, f] = pair.mean_ns.map(|m| dash(m.map(time)));
    let about = if pair.within_error { "≈" } else { "" };
    [
        pair.name.clone(),
        pair.class.clone(),
        a,
        b,
        format!("{apart:+.2}"),
        about.into(),
        c,
        d,
        difference(pair.waits_per_second),
        e,
        f,
        difference(pair.mean_ns),
    ]
}

fn background(c: &Comparison) -> Section {
    let mut section = Section::new("Background Events and Timed I/O");
    let head = [
        "<Event",
        "1st waits/s",
        "2nd waits/s",
        "%Diff",
        "1st time (s)",
        "2nd time (s)",
        "1st avg",
        "2nd avg",
        "%Diff",
    ];
    let mut table = Table::new("", &head);
    for pair in &c.background {
        let [a, b] = pair.waits_per_second.map(|w| dash(w.map(digits)));
        let [t, u] = pair.time_s.map(|t| dash(t.map(digits)));
        let [e, f] = pair.mean_ns.map(|m| dash(m.map(time)));
        table.row([
            pair.name.clone(),
            a,
            b,
            difference(pair.waits_per_second),
            t,
            u,
            e,
            f,
            difference(pair.mean_ns),
        ]);
    }
    section.table(table);
    section
}

fn statements(c: &Comparison) -> Section {
    let mut section = Section::new("SQL by Difference");
    let head = [
        "<Statement",
        "1st %DB",
        "2nd %DB",
        "1st calls/s",
        "2nd calls/s",
        "1st mean",
        "2nd mean",
        "%Diff",
        "<<Text",
    ];
    let mut table = Table::new("", &head);
    for pair in c.statements.iter().take(2 * events::TOP) {
        let [a, b] = pair.share.map(|s| dash(s.map(|s| format!("{s:.1}"))));
        let [d, e] = pair.calls_per_second.map(|v| dash(v.map(digits)));
        let [f, g] = pair.mean_ns.map(|v| dash(v.map(time)));
        table.row([pair.id.clone(), a, b, d, e, f, g, difference(pair.mean_ns), pair.text.clone()]);
    }
    section.table(table);
    section
}

fn machine(c: &Comparison) -> Section {
    let mut section = Section::new("Machine");
    let mut table = Table::new("", &["<", "1st", "2nd", "%Diff"]);
    let mut row = |name: String, values: [Option<f64>; 2]| {
        let [a, b] = values.map(|v| dash(v.map(digits)));
        table.row([name, a, b, difference(values)]);
    };
    let both = [&c.first.machine, &c.second.machine];
    row("CPUs".into(), both.map(|m| Some(m.cpus).filter(|n| *n > 0.0)));
    for state in ["user", "system", "iowait", "steal", "idle"] {
        row(format!("%{state}"), both.map(|m| m.cpu.get(state).copied()));
    }
    for resource in ["cpu some", "io some", "io full", "memory some"] {
        row(format!("pressure: {resource} %"), both.map(|m| m.pressure.get(resource).copied()));
    }
    let names: std::collections::BTreeSet<_> =
        both.iter().flat_map(|m| m.disks.iter().map(|d| d.name.clone())).collect();
    for name in names {
        let disks = both.map(|m| m.disks.iter().find(|d| d.name == name));
        row(format!("{name}: tps"), disks.map(|d| d.map(|d| d.tps)));
        row(format!("{name}: await (ms)"), disks.map(|d| d.map(|d| d.await_ms)));
        row(format!("{name}: %util"), disks.map(|d| d.map(|d| d.util)));
    }
    section.table(table);
    section
}

fn settings(c: &Comparison) -> Section {
    let mut section = Section::new("Settings that Differ");
    let mut table = Table::new("", &["<Setting", "<1st", "<2nd"]);
    for changed in &c.settings {
        let [a, b] = changed.values.clone().map(dash);
        table.row([changed.name.clone(), a, b]);
    }
    section.table(table);
    section
}

fn limits(c: &Comparison) -> Section {
    let mut section = Section::new("What limits this comparison");
    for (which, period) in [("1st", &c.first), ("2nd", &c.second)] {
        for warning in &period.warnings {
            section.words(format!("{which}: {warning}"));
        }
    }
    if c.first.target.id != c.second.target.id {
        section.words(format!(
            "The two periods are from different databases: {} and {}.",
            c.first.target.id, c.second.target.id
        ));
    }
    section
}
