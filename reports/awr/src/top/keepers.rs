//! The keepers of a log in a frame: a line for all of them, and one for each.

use seawall_daemon::kept::{KeeperStatus, KeptStatus};
use seawall_daemon::status::Status;
use seawall_page::scale::{bytes, digits, time};

use super::grown::Grown;
use super::screen::{Page, Paint};

/// What they are now, and how long they took since the last look; nothing where there are none.
pub fn lines(out: &mut Page, before: &Status, now: &Status, seconds: f64) {
    let Some(kept) = &now.kept else { return };
    all(out, kept);
    out.line(Paint::Dim, &row("keeper", ["answers/s", "p50", "p99", "sent/s", "behind"], "now"));
    for keeper in &kept.keepers {
        let earlier =
            before.kept.as_ref().and_then(|k| k.keepers.iter().find(|k| k.address == keeper.address));
        one(out, earlier, keeper, seconds);
    }
}

fn all(out: &mut Page, kept: &KeptStatus) {
    if let Some(why) = &kept.over {
        return out.line(Paint::Bad, &format!("NO COMMITS: {why}"));
    }
    if let Some(seconds) = kept.alone_s {
        let text =
            format!("ALONE for {seconds:.0} s: commits are durable on this host's disk, and nowhere else");
        return out.line(Paint::Bad, &text);
    }
    let (counting, acks, all) = (kept.counting, kept.acks, kept.keepers.len());
    let short = match kept.short_times {
        0 => String::new(),
        times => format!("   too few {times} times, {:.1} s", kept.short_s),
    };
    let paint = match counting {
        n if n < acks => Paint::Bad,
        n if n < all => Paint::Warn,
        _ => Paint::Plain,
    };
    out.line(paint, &format!("keepers {counting} of {all} count, {acks} confirm a commit{short}"));
}

fn one(out: &mut Page, before: Option<&KeeperStatus>, now: &KeeperStatus, seconds: f64) {
    let grown =
        Grown::of(before.map(|k| (k.buckets.as_slice(), k.sum_ns)), (now.buckets.as_slice(), now.sum_ns));
    let took = |q: f64| grown.quantile_ns(q).map_or_else(|| "-".into(), |ns| time(ns as f64));
    let sent = now.sent_bytes.saturating_sub(before.map_or(0, |k| k.sent_bytes)) as f64 / seconds;
    let behind = if now.behind == 0 { "-".into() } else { digits(now.behind as f64) };
    let trouble = if now.trouble.is_empty() { String::new() } else { format!(": {}", now.trouble) };
    let cells =
        [digits(grown.total() as f64 / seconds), took(0.5), took(0.99), format!("{}/s", bytes(sent)), behind];
    let paint = if now.role == "counts" { Paint::Plain } else { Paint::Warn };
    let cells = cells.each_ref().map(String::as_str);
    out.line(paint, &row(&now.address, cells, &format!("{}{trouble}", now.role)));
}

fn row(name: &str, cells: [&str; 5], now: &str) -> String {
    let [answers, p50, p99, sent, behind] = cells;
    format!("{name:<24}{answers:>9}{p50:>9}{p99:>9}{sent:>12}{behind:>8}  {now}")
}
