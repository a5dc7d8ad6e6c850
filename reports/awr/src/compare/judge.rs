//! What the figures of two periods really show.
//!
//! Rules: a gain smaller than the spread of equal runs is no gain; what got faster can bring no more than its
//! share of DB time; unequal work or unequal durability is no comparison.

use seawall_page::Weight;
use seawall_page::scale::{digits, time};

use super::comparison::{Comparison, EventPair, Known, LoadPair, percent_difference};
use super::verdict::{Verdict, What};
use crate::findings::factor_without;
use crate::period::Period;

/// Work per transaction that differs by less is equal, percent.
const EQUAL: f64 = 5.0;
/// A mean wait has to change by this factor to be spoken of.
const WORTH: f64 = 1.15;
/// More active sessions than this are another load, percent.
const MORE_SESSIONS: f64 = 20.0;
/// CPUs that are busy to less than this are no limit, percent.
const BUSY: f64 = 50.0;

/// All verdicts, the most important ones first.
pub fn judge(c: &Comparison, known: Known) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    verdicts.extend(durability(c));
    verdicts.extend(throughput(c, known));
    verdicts.extend(equal_work(c));
    verdicts.extend(sessions(c));
    verdicts.extend(bottleneck(c));
    for pair in &c.events {
        verdicts.extend(changed(pair, || match pair.share[0] {
            Some(share) => explains(c, share, ""),
            None => "Its share of DB time is not known.".into(),
        }));
    }
    for pair in &c.background {
        verdicts.extend(changed(pair, || explains_background(c, pair)));
    }
    verdicts.extend(processor(c));
    verdicts.extend(cache(c));
    verdicts
}

fn verdict(what: What, weight: Weight, title: String, because: String) -> Verdict {
    Verdict { what, weight, title, because }
}

fn gain(c: &Comparison) -> Option<([f64; 2], f64)> {
    let rate = |p: &Period| p.transactions.map(|n| p.per_second(n));
    let rates = [rate(&c.first), rate(&c.second)];
    Some(([rates[0]?, rates[1]?], percent_difference(rates)?))
}

/// Settings under which a commit means something else.
fn durability(c: &Comparison) -> Option<Verdict> {
    const MATTER: [&str; 7] = [
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "wal_sync_method",
        "innodb_flush_log_at_trx_commit",
        "sync_binlog",
        "appendfsync",
    ];
    let changed: Vec<_> = c.settings.iter().filter(|s| MATTER.contains(&s.name.as_str())).collect();
    let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".into());
    let list =
        changed.iter().map(|s| format!("{}: {} → {}", s.name, value(&s.values[0]), value(&s.values[1])));
    (!changed.is_empty()).then(|| {
        verdict(
            What::NotComparable,
            Weight::Bad,
            "The two periods do not promise the same durability".into(),
            format!(
                "{}. A difference in speed may be this and nothing else.",
                list.collect::<Vec<_>>().join("; ")
            ),
        )
    })
}

fn throughput(c: &Comparison, known: Known) -> Option<Verdict> {
    let ([a, b], gain) = gain(c)?;
    let figures = format!("{} → {} transactions a second ({gain:+.1} %)", digits(a), digits(b));
    let (weight, title, because) = match (known.spread_percent, spread(c)) {
        (Some(spread), _) if gain.abs() <= spread => (
            Weight::Warn,
            format!("No difference shown: {figures}"),
            format!("Runs of one configuration differ by {spread:.1} %, which is more than this."),
        ),
        (Some(spread), _) => (
            Weight::Good,
            figures,
            format!(
                "This is more than the {spread:.1} % by which runs of one configuration differ, but still \
                 one run on each side."
            ),
        ),
        (None, Some(([a, b], true))) => (
            Weight::Warn,
            format!("No difference shown: {figures}"),
            format!("The rates of the intervals within the periods overlap: {a} and {b} a second."),
        ),
        (None, Some(([a, b], false))) => (
            Weight::Info,
            figures,
            format!(
                "The rates of the intervals within the periods do not overlap ({a} and {b} a second). It is \
                 still only one period on each side: take turns and repeat before calling it a result."
            ),
        ),
        (None, None) => (
            Weight::Warn,
            figures,
            "One run on each side does not show whether this is more than noise. Repeat, taking turns (A, B, \
             A, B)."
                .into(),
        ),
    };
    Some(verdict(What::Throughput, weight, title, because))
}

/// Lowest to highest rate within each period, and whether the two overlap.
fn spread(c: &Comparison) -> Option<([String; 2], bool)> {
    let range = |p: &Period| {
        let rates = &p.rates;
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = rates.iter().copied().fold(0.0, f64::max);
        (rates.len() >= 3).then_some((lowest, highest))
    };
    let (a, b) = (range(&c.first)?, range(&c.second)?);
    let text = |(low, high): (f64, f64)| format!("{} to {}", digits(low), digits(high));
    Some(([text(a), text(b)], a.0 <= b.1 && b.0 <= a.1))
}

/// Whether a transaction did the same on both sides.
fn equal_work(c: &Comparison) -> Option<Verdict> {
    let work = ["Redo size", "Logical reads", "Block changes", "Rows changed", "Executes"];
    let rows: Vec<_> = c.load.iter().filter(|row| work.iter().any(|w| row.name.starts_with(w))).collect();
    let apart = |row: &&&LoadPair| percent_difference(row.per_transaction).is_some_and(|d| d.abs() > EQUAL);
    let known = rows.iter().filter(|row| percent_difference(row.per_transaction).is_some()).count();
    let unequal: Vec<_> = rows
        .iter()
        .filter(apart)
        .map(|row| {
            format!("{} {:+.0} %", row.name, percent_difference(row.per_transaction).unwrap_or_default())
        })
        .collect();
    if known == 0 {
        return None;
    }
    Some(if unequal.is_empty() {
        let title = format!("Equal work per transaction (within {EQUAL:.0} %)");
        verdict(What::EqualWork, Weight::Good, title, String::new())
    } else {
        let because = format!(
            "Per transaction: {}. Transactions a second then mean different things on the two sides.",
            unequal.join(", ")
        );
        verdict(What::EqualWork, Weight::Warn, "Not the same work per transaction".into(), because)
    })
}

/// Whether more sessions did it.
fn sessions(c: &Comparison) -> Option<Verdict> {
    let active = [&c.first, &c.second].map(Period::average_active);
    let more = percent_difference(active).filter(|d| *d > MORE_SESSIONS)?;
    let (_, gain) = gain(c).filter(|(_, gain)| *gain > 0.0)?;
    let [a, b] = active.map(|v| digits(v.unwrap_or_default()));
    Some(verdict(
        What::Sessions,
        Weight::Warn,
        format!("More sessions were active: {a} → {b} on average ({more:+.0} %)"),
        format!(
            "So the {gain:.1} % more transactions may come from more sessions. Compare at the same number of \
             sessions."
        ),
    ))
}

fn bottleneck(c: &Comparison) -> Option<Verdict> {
    let top = |p: &Period| p.events.first().and_then(|e| Some((e.name.clone(), p.share(e.time_s)?)));
    let (a, b) = (top(&c.first)?, top(&c.second)?);
    let unsure = |name: &str| c.events.iter().any(|pair| pair.name == name && pair.within_error);
    if a.0 != b.0 && (unsure(&a.0) || unsure(&b.0)) {
        let title = format!("It is not shown whether the limit moved: {} first, then {}", a.0, b.0);
        let because = "The difference is smaller than the error of sampling: capture longer.".into();
        return Some(verdict(What::Bottleneck, Weight::Info, title, because));
    }
    Some(if a.0 == b.0 {
        verdict(
            What::Bottleneck,
            Weight::Info,
            format!("The limit is the same in both: {}", a.0),
            format!("{:.1} % and {:.1} % of DB time.", a.1, b.1),
        )
    } else {
        verdict(
            What::Bottleneck,
            Weight::Info,
            format!("The limit moved from {} to {}", a.0, b.0),
            format!("{:.1} % of DB time in the first period, {:.1} % in the second.", a.1, b.1),
        )
    })
}

/// A wait whose mean changed, and what that can have brought.
fn changed(pair: &EventPair, explained: impl Fn() -> String) -> Option<Verdict> {
    let [before, after] = [pair.mean_ns[0]?, pair.mean_ns[1]?];
    let factor = before / after;
    if (1.0 / WORTH..WORTH).contains(&factor) {
        return None;
    }
    let means = format!("{} → {}", time(before), time(after));
    if factor < 1.0 {
        let fewer = percent_difference(pair.waits_per_second).filter(|d| *d < -10.0);
        let fewer = fewer.map_or_else(String::new, |d| format!(" There were fewer of them ({d:+.0} %)."));
        let title = format!("{} got slower on average: {means}", pair.name);
        return Some(verdict(What::Slower, Weight::Warn, title, format!("{:.1}×.{fewer}", 1.0 / factor)));
    }
    let title = format!("{} got {} times faster: {means}", pair.name, digits(factor));
    Some(verdict(What::Faster, Weight::Info, title, explained()))
}

/// What the server does beside the sessions: many may wait for one write, so its own time bounds nothing. The time that
/// sessions waited for it does.
fn explains_background(c: &Comparison, pair: &EventPair) -> String {
    let waits = (pair.name == "log file parallel write").then(|| c.first.event("log file sync")).flatten();
    match waits.and_then(|event| c.first.share(event.time_s)) {
        Some(share) => explains(c, share, " (in log file sync: several sessions may wait for one write)"),
        None => "How long sessions waited for it is not known, so the benefit is not known either.".into(),
    }
}

/// What the time before can explain of the gain.
fn explains(c: &Comparison, share: f64, how: &str) -> String {
    let most = (factor_without(share) - 1.0) * 100.0;
    let mut text = format!(
        "Sessions spent {share:.2} % of DB time waiting for it{how}: had it vanished, throughput could have grown by {most:.2} % at \
         most."
    );
    if let Some((_, gain)) = gain(c).filter(|(_, gain)| *gain > most) {
        text += &format!(" The {gain:.1} % seen here come from something else, or from noise.");
    }
    text
}

/// Fewer CPUs show nothing if CPUs were no limit.
fn processor(c: &Comparison) -> Option<Verdict> {
    let busy = |p: &Period| {
        let used = p.db_cpu_s? / p.elapsed_s;
        (p.machine.cpus > 0.0).then(|| (used, used * 100.0 / p.machine.cpus))
    };
    let (a, b) = (busy(&c.first)?, busy(&c.second)?);
    let fewer = c.second.machine.cpus < c.first.machine.cpus;
    (fewer && a.1 < BUSY && b.1 < BUSY).then(|| {
        verdict(
            What::Processor,
            Weight::Warn,
            "CPUs were not the limit in either period, so having fewer of them proves nothing".into(),
            format!(
                "The database used {:.1} of {} CPUs, then {:.1} of {}. The control is missing: the same \
                 storage on fewer CPUs.",
                a.0, c.first.machine.cpus, b.0, c.second.machine.cpus
            ),
        )
    })
}

/// How many of the reads a second-level cache served.
fn cache(c: &Comparison) -> Option<Verdict> {
    let rate = |name: &str| Some(c.second.per_second(c.second.event(name)?.waits?));
    let (cached, disk) =
        (rate("db flash cache single block physical read")?, rate("db file sequential read")?);
    let share = cached * 100.0 / (cached + disk);
    Some(verdict(
        What::Cache,
        Weight::Info,
        format!("The second-level cache served {share:.1} % of the single-block reads"),
        format!("{} of {} a second.", digits(cached), digits(cached + disk)),
    ))
}
