//! The keepers' section: what the log survives, and how long each of them took.

use seawall_page::scale::{bytes, digits, time};
use seawall_page::{Block, Note, Section, Table, Weight};

use crate::period::{Keeper, Keepers, Period};

/// The keepers of the log, and what commits waited for.
pub fn part(period: &Period) -> Section {
    let mut section = Section::new("Seawall: Keepers");
    let Some(keepers) = &period.keepers else { return section };
    if !keepers.over.is_empty() {
        let (title, lines) = ("No commit is acknowledged any more".into(), vec![keepers.over.clone()]);
        section.blocks.push(Block::Note(Note { weight: Weight::Bad, title, lines }));
    }
    section.words(
        "A batch goes to all keepers at once, and is acknowledged when enough of them have confirmed it. A \
         round trip is one keeper's, from the sending of a batch to its confirmation, with the keeper's own \
         work in between. Answers that came after enough others had answered, when the sender no longer \
         listened, are not counted.",
    );
    section.blocks.push(Block::Facts(facts(keepers)));
    let head = [
        "<Keeper",
        "<At the end",
        "Round trips",
        "Mean",
        "p50",
        "p99",
        "Longest bucket",
        "Sent",
        "Per second",
        "Behind at the end",
        "Connected again",
    ];
    let mut table = Table::new("", &head);
    keepers.each.iter().for_each(|keeper| table.row(row(period, keeper)));
    section.table(table);
    section
}

fn facts(k: &Keepers) -> Vec<(String, String)> {
    vec![
        ("Survives".into(), k.survives.clone()),
        ("Counted at the end".into(), format!("{} of {}, {} needed", k.counting, k.each.len(), k.acks)),
        ("Too few keepers".into(), spells(k.short_times, k.short_s)),
        ("This host was alone".into(), spells(k.alone_times, k.alone_s)),
    ]
}

/// How often something was so, and for how long. It may have begun before.
fn spells(times: f64, seconds: f64) -> String {
    match times > 0.0 || seconds > 0.0 {
        true => format!("{} times, {} s in all", digits(times), digits(seconds)),
        false => "never".into(),
    }
}

fn row(period: &Period, k: &Keeper) -> [String; 11] {
    let (trips, dash) = (&k.round_trips, || "–".to_owned());
    let quantile = |q: f64| trips.quantile_ns(q).map_or_else(dash, |ns| time(ns as f64));
    let kind = if k.is_witness { ", a witness" } else { "" };
    let trouble = if k.trouble.is_empty() { String::new() } else { format!(": {}", k.trouble) };
    let behind = match k.behind {
        n if n > 0.0 => format!("{} batches, {}", digits(n), bytes(k.behind_bytes)),
        _ => "no".into(),
    };
    [
        format!("{}{kind}", k.address),
        format!("{}{trouble}", k.role),
        digits(trips.count),
        if trips.count > 0.0 { time(trips.mean_ns()) } else { dash() },
        quantile(0.5),
        quantile(0.99),
        trips.buckets.last().map_or_else(dash, |(floor, _)| time(*floor as f64)),
        bytes(k.sent),
        format!("{}/s", bytes(period.per_second(k.sent))),
        behind,
        digits(k.reconnects),
    ]
}
