//! Keepers of a log through snapshots: what a report and a comparison say of them.

use seawall_awr::compare::{Known, compare};
use seawall_awr::model::{Instant, Reading, Snapshot};
use seawall_awr::period::Period;
use seawall_awr::{Samples, compare as comparing, report};

/// After so many minutes; each round trip takes so many ns.
fn snapshot(minute: u32, trip_ns: u64, short_s: f64) -> Snapshot {
    let m = f64::from(minute);
    let at = Instant { wall_ms: i64::from(minute) * 60_000, up_s: m * 60.0, boot_id: "b".into() };
    let mut snapshot = Snapshot { id: i64::from(minute) + 1, at, ..Snapshot::default() };
    let log = Reading::new("seawall", "", "e")
        .fact("medium", "replicated (memory)")
        .fact("medium_name", "replicated");
    snapshot.add("seawall", true, vec![log.fact("because", "the loss of this host")]);
    let all = Reading::new("seawall keepers", "", "e 7")
        .counter("short_s", short_s * m)
        .counter("short_times", m)
        .counter("alone_s", 0.25 * m)
        .counter("alone_times", m)
        .gauge("acks", 2.0)
        .gauge("counting", 2.0)
        .fact("survives", "the loss of this host and of one keeper");
    snapshot.add("seawall keepers", true, vec![all]);
    let one = |address: &str, times: u64| {
        Reading::new("seawall keeper", address, "l 4")
            .counter("count", 1000.0 * m)
            .counter("sum_ns", 1000.0 * m * (trip_ns * times) as f64)
            .counter(&format!("bucket {}", trip_ns * times), 1000.0 * m)
            .counter("sent_bytes", 6e6 * m)
            .counter("reconnects", m)
            .gauge("behind", 12.0)
            .gauge("behind_bytes", 98_304.0)
            .fact("role", "counts")
    };
    snapshot.add("seawall keeper", true, vec![one("10.0.0.1:7700", 1), one("10.0.0.2:7700", 8)]);
    snapshot
}

fn period(trip_ns: u64) -> Period {
    let snapshots = [snapshot(0, trip_ns, 1.5), snapshot(1, trip_ns, 1.5)];
    Period::of(&snapshots, &Samples::default()).expect("a period")
}

#[test]
fn a_report_says_what_the_log_survives_and_how_long_each_keeper_took() {
    let period = period(65_536);
    let text = seawall_page::text(&report::document(&period));
    for wanted in [
        "yes: replicated (memory) (the loss of this host)",
        "the loss of this host and of one keeper",
        "1 times, 1.5 s in all",
        "1 times, 0.25 s in all",
        "65.5 µs",
        "524 µs",
        "12 batches, 96 KiB",
        "Commits wait for the keeper 10.0.0.2:7700",
        "The log was short of copies",
        "This host was alone",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
}

#[test]
fn a_comparison_has_each_keeper_side_by_side() {
    let compared = compare(period(65_536), period(131_072), Known::default());
    let text = seawall_page::text(&comparing::document(&compared));
    let row = |name: &str| {
        text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}:\n{text}"))
    };
    let p99 = row("10.0.0.1:7700: round trip, p99");
    assert!(p99.contains("65.5 µs") && p99.contains("131 µs") && p99.contains("+100.0"), "{p99}");
    assert!(row("Too few of them, s").contains("1.5"));
    assert!(row("Alone, s").contains("0.25"));
    let without = compare(Period::default(), Period::default(), Known::default());
    assert!(!seawall_page::text(&comparing::document(&without)).contains("Keepers"), "neither has any");
}
