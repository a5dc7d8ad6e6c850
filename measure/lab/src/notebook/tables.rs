//! A section's tables: what was measured, how equal the work was, where things lay.

use seawall_page::Table;
use seawall_page::chart::{Chart, Spread as SpreadChart};
use seawall_page::scale::{bytes, digits};

use super::judge::judge;
use super::{Results, equal};
use crate::case::{Configuration, Measure, Role};
use crate::spread::Spread;
use crate::table::{short, thousands};
use crate::verdict::Verdict;

/// `median (lowest–highest)`.
fn cell(spread: Option<Spread>) -> String {
    let word = |v: f64| if v >= 1000.0 { thousands(v) } else { digits(v) };
    match spread {
        None => "–".into(),
        Some(s) if s.min == s.max => word(s.median),
        Some(s) => s.told(word),
    }
}

fn role(c: &Configuration) -> &'static str {
    match c.role {
        Role::Bound => " (not an equivalent)",
        Role::Control if c.again_of.is_none() => " (control)",
        _ => "",
    }
}

pub fn figures(results: &Results) -> Table {
    let judged = results.case.judged();
    let share = format!("{}, % of DB time", results.case.sped_up);
    let head =
        ["configuration", "<durability", judged.title(), "of the baseline", "<verdict", share.as_str()];
    let mut table = Table::new("What was measured: median of the rounds (lowest–highest)", &head);
    for c in &results.configurations {
        let found = judge(results, &c.name);
        let ratio = match found.verdict {
            Verdict::Baseline => "1".to_owned(),
            _ => found.ratio.map_or("–".into(), |r| r.told(short)),
        };
        let share = results.share(&c.name, &results.case.sped_up);
        table.row([
            format!("{}{}", c.title, role(c)),
            results.last(&c.name).map_or("", |t| t.durability.as_str()).to_owned(),
            cell(results.spread(&c.name, judged)),
            ratio,
            found.verdict.in_words(),
            share.map_or("–".into(), |s| format!("{s:.0}")),
        ]);
    }
    table
}

pub fn others(results: &Results) -> Table {
    let measures = &shown(results)[1..];
    if measures.is_empty() {
        return Table::default();
    }
    let mut head = vec!["configuration"];
    head.extend(measures.iter().map(|m| m.title()));
    let mut table = Table::new("Other measures, not judged", &head);
    for c in &results.configurations {
        let cells = measures.iter().map(|m| cell(results.spread(&c.name, *m)));
        table.row(std::iter::once(c.title.clone()).chain(cells));
    }
    table
}

/// The measures that anything was found of.
fn shown(results: &Results) -> Vec<Measure> {
    let all = results.case.measures.get_ref();
    let found = |m: &&Measure| results.configurations.iter().any(|c| results.spread(&c.name, **m).is_some());
    let (first, rest) = (all[0], all[1..].iter().filter(found).copied());
    std::iter::once(first).chain(rest).collect()
}

pub fn chart(results: &Results) -> Option<Chart> {
    let measure = results.case.judged();
    let rows = results.configurations.iter().map(|c| {
        let values: Vec<f64> = results.values(&c.name, measure).into_values().collect();
        (c.name.clone(), values)
    });
    let rows: Vec<_> = rows.filter(|(_, values)| !values.is_empty()).collect();
    let chart = SpreadChart { title: "Every turn".into(), unit: measure.title().into(), rows };
    (!chart.rows.is_empty()).then_some(Chart::Spread(chart))
}

pub fn waits(results: &Results) -> Table {
    let mut names: Vec<String> = Vec::new();
    for turn in results.configurations.iter().flat_map(|c| results.turns(&c.name)) {
        for (name, share) in &turn.time.shares {
            if *share >= 1.0 && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for name in names {
        let shares: Vec<Option<f64>> =
            results.configurations.iter().map(|c| results.share(&c.name, &name)).collect();
        let most = shares.iter().flatten().copied().fold(0.0, f64::max);
        let cells = shares.iter().map(|s| s.map_or("–".into(), |s| format!("{s:.0}")));
        rows.push((most, std::iter::once(name.clone()).chain(cells).collect()));
    }
    rows.retain(|(most, _)| *most >= 1.0);
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut head = vec!["wait"];
    head.extend(results.configurations.iter().map(|c| c.name.as_str()));
    let mut table = Table::new("Where DB time went, percent (sessions looked at ten times a second)", &head);
    rows.into_iter().for_each(|(_, row)| table.row(row));
    table
}

pub fn work(results: &Results) -> Table {
    let head = [
        "configuration",
        "commits",
        "rows changed",
        "rows a commit",
        "redo",
        "redo a commit",
        "page images a commit",
    ];
    let mut table = Table::new("The work, all turns together", &head);
    for c in &results.configurations {
        let w = equal::work(results, &c.name);
        let each = |of: f64| if w.commits > 0.0 { of / w.commits } else { 0.0 };
        table.row([
            c.title.clone(),
            thousands(w.commits),
            thousands(w.rows),
            format!("{:.2}", each(w.rows)),
            bytes(w.wal_bytes),
            bytes(each(w.wal_bytes)),
            format!("{:.2}", each(w.wal_images)),
        ]);
    }
    table
}

pub fn places(results: &Results) -> Table {
    let mut table = Table::new(
        "Where things lay, as the kernel says",
        &["configuration", "<data", "<redo", "<Seawall's log", "<its medium"],
    );
    for c in &results.configurations {
        let Some(turn) = results.last(&c.name) else { continue };
        let place = |what: &str| turn.placement.get(what).map_or("–".to_owned(), |p| p.in_words());
        // In one word: what it survives stands over everything.
        let medium = turn.medium.as_deref().and_then(|m| m.split(' ').next()).unwrap_or("–").to_owned();
        table.row([c.title.clone(), place("data"), place("log"), place("pool"), medium]);
    }
    table
}

pub fn not_possible(results: &Results) -> Table {
    let mut table = Table::new("Not possible on this machine", &["configuration", "<<why"]);
    for (c, why) in &results.not_possible {
        table.row([c.title.clone(), why.lines().next().unwrap_or_default().to_owned()]);
    }
    table
}
