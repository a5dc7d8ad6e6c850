//! Each rule has a period that raises it, and one just short of it that does not.

use seawall_daemon::RecoveryGoal;

use super::*;
use crate::period::{BlockCache, CacheSize, Disk, Event, File, Keeper, Keepers, Seawall, Statement, Wait};
use crate::recovery::Exposure;

/// 100 s of DB time in 100 s, all of it where nobody can complain.
fn quiet() -> Period {
    let mut period = Period { elapsed_s: 100.0, db_time_s: Some(100.0), samples: 1000, ..Period::default() };
    period.target.product = "PostgreSQL".into();
    period.machine.cpus = 4.0;
    period.machine.cpu = [("idle".to_owned(), 60.0), ("user".to_owned(), 40.0)].into();
    period.settings = [("track_io_timing", "on"), ("track_wal_io_timing", "on")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into();
    period.statements = vec![statement(10.0)];
    period
}

fn statement(time_s: f64) -> Statement {
    Statement {
        time_s,
        text: "UPDATE t".into(),
        counters: [("calls".to_owned(), 5.0)].into(),
        ..Statement::default()
    }
}

fn event(name: &str, class: &str, time_s: f64) -> Event {
    Event {
        name: name.into(),
        class: class.into(),
        time_s,
        source: "sampled".into(),
        seen: 100,
        ..Event::default()
    }
}

fn with(change: impl FnOnce(&mut Period)) -> Period {
    let mut period = quiet();
    change(&mut period);
    period
}

fn waiting(name: &str, class: &str, time_s: f64) -> Period {
    with(|p| p.events = vec![event(name, class, time_s)])
}

fn counted(counters: &[(&str, f64)]) -> Period {
    with(|p| p.counters = counters.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect())
}

/// A goal of one second, and a recovery that takes so many.
fn exposed(seconds: f64) -> Period {
    let goal = RecoveryGoal { goal_ms: 1000, fixed_ms: 0, replayed: 1 << 20 };
    with(|p| p.exposed = Some(Exposure::by(seconds * f64::from(1 << 20), Some(goal))))
}

fn seawall(full: f64, real: f64, absorbed: f64) -> Period {
    let wait = Wait { name: "log full".into(), count: full, time_s: 1.0, ..Wait::default() };
    let counters = [("real_syncs".to_owned(), real), ("absorbed".to_owned(), absorbed)].into();
    let part = Seawall {
        waits: if full > 0.0 { vec![wait] } else { Vec::new() },
        classes: vec![File { name: "log file".into(), counters }],
        ..Seawall::default()
    };
    with(|p| p.seawall = Some(part))
}

fn busy(processor: f64, active_s: f64) -> Period {
    let mut period = waiting("DB CPU", "CPU", active_s * 0.9);
    period.db_time_s = Some(active_s);
    period.machine.cpu = [("idle".to_owned(), 100.0 - processor), ("user".to_owned(), processor)].into();
    period
}

fn disk(util: f64) -> Period {
    with(|p| p.machine.disks = vec![Disk { name: "sda".into(), util, ..Disk::default() }])
}

/// Sampled reads that half of the cache, the cache, and twice as much would answer; the seconds that reads waited.
fn block_cache(reads: f64, percents: [f64; 3], waited: f64) -> Period {
    let size = |(percent, hits): (u32, f64)| CacheSize {
        percent,
        size: f64::from(percent) * 1073741824.0 / 100.0,
        reads,
        hits: reads * hits / 100.0,
    };
    let sizes = [50, 100, 200].into_iter().zip(percents).map(size).collect();
    let wait = Wait { name: "db file sequential read".into(), count: 9.0, time_s: waited, ..Wait::default() };
    with(|p| {
        p.block_cache = Some(BlockCache { sizes, ..BlockCache::default() });
        p.seawall = Some(Seawall { waits: vec![wait], ..Seawall::default() });
    })
}

fn not_served(files: f64, off: &str) -> Period {
    let at_end = [("files".to_owned(), 9.0), ("files_not_served".to_owned(), files)].into();
    with(|p| p.block_cache = Some(BlockCache { at_end, off: off.into(), ..BlockCache::default() }))
}

/// Keepers whose round trips take so many microseconds, of which so many confirm; how long a sync and a batch took.
fn kept(acks: f64, trips_us: &[u64], [sync_us, remote_us]: [f64; 2]) -> Period {
    let wait =
        |name: &str, us: f64| Wait { name: name.into(), count: 1000.0, time_s: us / 1e3, ..Wait::default() };
    let keeper = |(i, us): (usize, &u64)| Keeper {
        address: format!("10.0.0.{i}:7700"),
        role: "counts".into(),
        round_trips: Wait { buckets: vec![(us * 1000, 1000)], ..wait("round trip", *us as f64) },
        ..Keeper::default()
    };
    let each: Vec<_> = trips_us.iter().enumerate().map(keeper).collect();
    let waits = vec![wait("log file sync", sync_us), wait("log file remote write", remote_us)];
    with(|p| {
        p.events = vec![event("log file sync", "Commit", 40.0)];
        p.seawall = Some(Seawall { waits, ..Seawall::default() });
        p.keepers = Some(Keepers { acks, counting: each.len() as f64, each, ..Keepers::default() });
    })
}

fn short(seconds: f64) -> Period {
    let mut period = kept(2.0, &[200, 200], [500.0, 200.0]);
    period.keepers.as_mut().expect("keepers").short_s = seconds;
    period
}

fn alone(seconds: f64) -> Period {
    let mut period = short(20.0);
    period.keepers.as_mut().expect("keepers").alone_s = seconds;
    period
}

#[test]
fn a_slow_keeper_is_named_only_if_its_word_is_needed() {
    let slow = |acks: f64, trips: &[u64]| keepers::one_is_slow(&kept(acks, trips, [500.0, 200.0]));
    let found = slow(3.0, &[200, 2000, 210]).expect("raised");
    assert!(found.title.ends_with("10.0.0.1:7700") && found.action.contains("one keeper more"), "{found:?}");
    assert_eq!(found.share, Some(40.0));
    assert!(slow(2.0, &[200, 2000, 210]).is_none(), "two others confirm");
    assert!(slow(1.0, &[2000, 2000]).is_none(), "all of them are slow: that is the round trip");
    let mut period = kept(2.0, &[200, 2000], [500.0, 200.0]);
    period.keepers.as_mut().expect("keepers").each[1].affirms = true;
    assert!(keepers::one_is_slow(&period).expect("raised").action.contains("noaffirm"));
}

#[test]
fn a_larger_block_cache_is_proposed_for_what_it_spares_and_only_on_enough_reads() {
    let found = block_cache::too_small(&block_cache(2000.0, [30.0, 40.0, 70.0], 60.0)).expect("raised");
    // Half of the reads of the disk, which took 60 of 100 s.
    assert_eq!(found.share.map(|share| share.round()), Some(30.0), "{found:?}");
    assert!(found.action.contains("--cache 2G") && found.because.contains("50 % fewer"), "{found:?}");
    let mut period = block_cache(2000.0, [30.0, 40.0, 70.0], 60.0);
    period.events = vec![event("db file sequential read", "User I/O", 12.0)];
    let share = block_cache::too_small(&period).expect("raised").share;
    assert_eq!(
        share.map(|share| share.round()),
        Some(6.0),
        "sessions waited 12 s, whoever waited the others"
    );
    assert!(block_cache::too_small(&block_cache(900.0, [30.0, 40.0, 70.0], 60.0)).is_none(), "too few reads");
    assert!(
        block_cache::too_small(&block_cache(2000.0, [30.0, 40.0, 70.0], 5.0)).is_none(),
        "it costs nothing"
    );
    let found = block_cache::too_large(&block_cache(2000.0, [89.5, 90.0, 91.0], 1.0)).expect("raised");
    assert!(found.action.contains("--cache 512M"), "{found:?}");
    assert!(block_cache::too_large(&block_cache(2000.0, [0.0, 0.5, 1.0], 1.0)).is_none(), "of no use at all");
    let off = block_cache::not_serving(&not_served(0.0, "it was switched off")).expect("raised");
    assert!(off.title.contains("serves nothing") && off.because == "it was switched off", "{off:?}");
}

/// The rule, what raises it, what does not.
fn cases() -> Vec<(&'static str, Period, Period)> {
    let memory = |v: f64| with(|p| p.machine.pressure = [("memory some".to_owned(), v)].into());
    let unsampled = with(|p| p.samples = 0);
    vec![
        (
            "waits for the log",
            waiting("log file sync", "Commit", 40.0),
            waiting("log file sync", "Commit", 4.0),
        ),
        (
            "waits for reads",
            waiting("db file sequential read", "User I/O", 40.0),
            waiting("db file sequential read", "User I/O", 4.0),
        ),
        (
            "locks",
            waiting("enq: TX - row lock contention", "Application", 30.0),
            waiting("enq: TX - row lock contention", "Application", 1.0),
        ),
        ("processor", busy(99.0, 100.0), busy(99.0, 0.0)),
        (
            "concurrency",
            waiting("buffer busy waits", "Concurrency", 10.0),
            waiting("buffer busy waits", "Concurrency", 1.0),
        ),
        ("one statement", with(|p| p.statements = vec![statement(80.0)]), quiet()),
        ("temporary files", counted(&[("temp bytes", 1e9)]), counted(&[("temp bytes", 1e6)])),
        ("recovery too long", exposed(2.0), exposed(0.9)),
        (
            "checkpoints for want of log",
            counted(&[("checkpoints timed", 1.0), ("checkpoints requested", 5.0)]),
            counted(&[("checkpoints timed", 5.0), ("checkpoints requested", 1.0)]),
        ),
        (
            "full pages",
            counted(&[("wal fpi", 1e4), ("wal bytes", 1e8)]),
            counted(&[("wal fpi", 1e3), ("wal bytes", 1e8)]),
        ),
        ("log full", seawall(7.0, 0.0, 100.0), seawall(0.0, 0.0, 100.0)),
        ("around the log", seawall(0.0, 50.0, 100.0), seawall(0.0, 5.0, 10_000.0)),
        (
            "block cache too small",
            block_cache(2000.0, [30.0, 40.0, 70.0], 60.0),
            block_cache(2000.0, [30.0, 40.0, 44.0], 60.0),
        ),
        (
            "block cache too large",
            block_cache(2000.0, [89.5, 90.0, 91.0], 1.0),
            block_cache(2000.0, [88.0, 90.0, 91.0], 1.0),
        ),
        (
            "one keeper is slow",
            kept(2.0, &[200, 700], [500.0, 200.0]),
            kept(2.0, &[200, 500], [500.0, 200.0]),
        ),
        (
            "round trip to the keepers",
            kept(2.0, &[200, 200], [300.0, 200.0]),
            kept(2.0, &[200, 200], [500.0, 200.0]),
        ),
        ("short of copies", short(1.5), short(0.0)),
        ("alone", alone(1.5), alone(0.0)),
        ("block cache not serving", not_served(1.0, ""), not_served(0.0, "")),
        ("disk is busy", disk(97.0), disk(50.0)),
        ("memory is short", memory(9.0), memory(0.5)),
        ("idle", with(|p| p.db_time_s = Some(3.0)), quiet()),
        ("what was not captured", unsampled, quiet()),
    ]
}

#[test]
fn each_rule_is_raised_by_its_figures_and_not_just_short_of_them() {
    let cases = cases();
    for (name, rule) in RULES {
        let (_, raises, does_not) =
            cases.iter().find(|(n, ..)| *n == name).unwrap_or_else(|| panic!("no case: {name}"));
        let found = rule(raises).unwrap_or_else(|| panic!("{name} is not raised"));
        assert!(
            !found.title.is_empty() && !found.because.is_empty() && !found.sure_because.is_empty(),
            "{found:?}"
        );
        assert!(
            found.kind == Kind::Information || !found.action.is_empty(),
            "{name}: a problem without an action"
        );
        let none = rule(does_not);
        assert!(none.is_none(), "{name}: {none:?}");
        let text = seawall_page::text(&seawall_page::Document {
            sections: vec![crate::report::findings(&[found])],
            ..Default::default()
        });
        assert!(text.contains("Confidence: "), "{text}");
    }
}

#[test]
fn a_benefit_is_bounded_by_the_share_and_by_the_cpus() {
    let mut period = waiting("log file sync", "Commit", 75.0);
    let found = commit::waits_for_the_log(&period).expect("raised");
    assert_eq!((found.share, found.benefit), (Some(75.0), Some(4.0)));
    // 200 of the machine's 400 CPU seconds are used by the server, none is left.
    period.db_cpu_s = Some(200.0);
    period.machine.cpu = [("idle".to_owned(), 0.0), ("user".to_owned(), 100.0)].into();
    assert_eq!(commit::waits_for_the_log(&period).expect("raised").benefit, Some(1.0));
}

#[test]
fn sureness_follows_the_number_of_samples() {
    let mut period = waiting("log file sync", "Commit", 75.0);
    let sure = |p: &Period| commit::waits_for_the_log(p).expect("raised").sure;
    assert_eq!(sure(&period), Sure::High);
    period.samples = 100;
    assert_eq!(sure(&period), Sure::Medium);
    period.events[0].seen = 3;
    assert_eq!(sure(&period), Sure::Low);
    period.events[0].source = "counted".into();
    assert_eq!(sure(&period), Sure::High);
}

#[test]
fn the_largest_share_comes_first_and_information_last() {
    let mut period = waiting("log file sync", "Commit", 30.0);
    period.events.push(event("db file sequential read", "User I/O", 50.0));
    period.statements = vec![statement(90.0)];
    let titles: Vec<_> = findings(&period).into_iter().map(|f| f.title).collect();
    assert_eq!(
        titles,
        [
            "Sessions wait for reads of data files",
            "Commits wait for the redo log",
            "One statement takes much of the time"
        ]
    );
}
