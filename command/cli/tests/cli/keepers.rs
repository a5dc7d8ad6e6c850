//! A log of which keepers keep copies, as its user meets it: made, run on, killed, brought back from the keepers alone.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::common::keepers::Keeper;
use crate::common::ledger::Load;
use crate::common::mirrors::lose_memory;
use crate::common::mounts::{Mounts, tracked};
use crate::common::{Place, Writer, kill, kill_everything, signal, wait_for};

/// A place whose log these keep.
fn kept_by(keepers: &[Keeper], acks: usize) -> Place {
    let mut place = Place::bare();
    keep(&mut place, keepers, acks);
    place
}

/// Has these keep the log of a place.
fn keep(place: &mut Place, keepers: &[Keeper], acks: usize) {
    place.pool = place.data.path().join("seawall.log");
    let (pool, acks) = (place.pool().to_owned(), acks.to_string());
    let mut arguments = vec!["init", &pool, "--size", "16M", "--acks", &acks];
    keepers.iter().for_each(|keeper| arguments.extend(["--keeper", &keeper.address]));
    assert!(place.seawall(&arguments).succeeds().out.contains("medium: replicated"));
}

/// Everything of this host is lost, and this keeper with it.
fn the_others_bring_all_back(place: &Place, load: Load, keeper: &mut Keeper) {
    let killed = load.kill(place);
    killed.lose_memory(place);
    keeper.kill();
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["replayed"], true);
    killed.are_there(place);
}

fn role(place: &Place, keeper: usize) -> String {
    place.status()["kept"]["keepers"][keeper]["role"].as_str().expect("a role").to_owned()
}

#[test]
fn commits_are_at_enough_keepers_and_nothing_is_left_in_memory_after_a_clean_end() {
    let keepers = [Keeper::start(&[]), Keeper::start(&[]), Keeper::start(&["--witness"])];
    let place = kept_by(&keepers, 2);
    let mut writer = Writer::start(&place);
    writer.write(20);
    let status = place.status();
    assert_eq!(status["medium_name"], "replicated");
    let kept = &status["kept"];
    let survives = kept["survives"].as_str().expect("words");
    assert!(survives.contains("the loss of this host and of one keeper at the same time"), "{survives}");
    assert!(survives.contains("a power cut of all of them at once is not survived"), "{survives}");
    assert_eq!((&kept["acks"], &kept["over"]), (&2.into(), &serde_json::Value::Null));
    let last = kept["last"].as_u64().expect("a number");
    for keeper in kept["keepers"].as_array().expect("keepers") {
        assert_eq!(keeper["role"], "counts", "{keeper}");
    }
    let waits = status["events"].as_array().expect("waits").iter();
    let remote = waits.clone().find(|wait| wait["name"] == "log file remote write").expect("it is there");
    // The first sync of a new file is real.
    assert!(remote["count"].as_u64() >= Some(19), "{remote}");
    assert_eq!(
        waits.filter(|wait| wait["name"] == "log file parallel write" && wait["count"] != 0).count(),
        0
    );
    let of = |keeper: usize, what: &str| kept["keepers"][keeper][what].as_f64().expect("a number");
    for keeper in 0..2 {
        assert!(of(keeper, "sent_bytes") > 20.0 * 4096.0, "{kept}");
        assert!(of(keeper, "p50_us") <= of(keeper, "p99_us"), "{kept}");
        assert!(of(keeper, "p99_us") <= of(keeper, "longest_us"), "{kept}");
    }
    assert!(of(0, "answers") + of(1, "answers") > 0.0, "{kept}");
    assert!(of(2, "sent_bytes") < 4096.0 * 20.0, "a witness gets no data: {kept}");
    assert_eq!(kept["short_times"], 0);
    assert!(keepers.iter().filter(|keeper| keeper.log()["position"][2].as_u64() >= Some(last)).count() >= 2);
    writer.finish().succeeds();
    assert_eq!(place.daemon(), None);
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
    place.run(&["true"]).succeeds();
}

// Holds: admin/KEEPERS#what-it-survives
#[test]
fn without_this_hosts_memory_the_keepers_bring_every_commit_back() {
    let mut keepers = [Keeper::start(&[]), Keeper::start(&[]), Keeper::start(&[])];
    let place = kept_by(&keepers, 2);
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    assert!(place.guard().exists());
    lose_memory(&place, "x-wal");
    // One of those that may be lost.
    keepers[0].kill();
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["replayed"], true);
    assert_eq!(Writer::found(&place), 20);
    assert!(!place.guard().exists());
    place.run(&["true"]).succeeds();
}

// Holds: admin/KEEPERS#what-it-survives
#[test]
fn keepers_that_lost_what_they_confirmed_do_not_vote() {
    let mut keepers = [Keeper::start(&["--harden", "memory"]), Keeper::start(&["--harden", "memory"])];
    let place = kept_by(&keepers, 2);
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    for keeper in &mut keepers {
        keeper.kill();
        keeper.again();
        assert_eq!(keeper.log()["kept"], false);
    }
    let refused = place.seawall(&["recover", "--replay", "--pool", place.pool()]);
    refused.fails(1, &["0 of 2 keepers answered with everything that they ever confirmed, and 1 are needed"]);
    assert!(place.guard().exists(), "the database does not start over what is missing");
}

// Holds: admin/KEEPERS#what-it-survives
#[test]
fn a_keeper_that_comes_back_is_brought_up_to_date_while_commits_go_on() {
    let mut keepers = [Keeper::start(&["--harden", "memory"]), Keeper::start(&[]), Keeper::start(&[])];
    let place = kept_by(&keepers, 2);
    let mut writer = Writer::start(&place);
    writer.write(5);
    keepers[0].kill();
    writer.write(5);
    wait_for("its loss to be seen", || role(&place, 0) == "down");
    keepers[0].again();
    assert_eq!(keepers[0].log()["kept"], false, "it began with nothing");
    writer.write(2);
    wait_for("it to count", || role(&place, 0) == "counts");
    assert_eq!(keepers[0].log()["kept"], true);
    let kept = place.status()["kept"].clone();
    assert_eq!(
        (&kept["keepers"][0]["reconnects"], &kept["keepers"][1]["reconnects"]),
        (&1.into(), &0.into())
    );
    assert_eq!(kept["short_times"], 0, "the two others were enough: {kept}");
    // Now it is the one that matters.
    keepers[1].kill();
    writer.write(8);
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    keepers[2].kill();
    keepers[1].again();
    let refused = place.seawall(&["recover", "--replay", "--pool", place.pool()]);
    refused.fails(1, &["1 of 3 keepers answered with everything that they ever confirmed, and 2 are needed"]);
    keepers[2].again();
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]);
    report.fails(1, &["1 of 3 keepers answered"]);
}

// Holds: admin/KEEPERS#what-it-survives
#[test]
fn a_dead_daemon_is_replaced_and_the_log_goes_on() {
    let keepers = [Keeper::start(&[]), Keeper::start(&[])];
    let place = kept_by(&keepers, 2);
    let mut writer = Writer::start(&place);
    writer.outlives(2, &place);
    writer.finish().succeeds().says(&["a new one has taken over"]);
    assert_eq!(place.in_memory(), Vec::<PathBuf>::new());
}

/// Whoever leads sends by itself, and may be killed or stopped at any step of that.
// Holds: admin/KEEPERS#what-it-survives
#[test]
fn nothing_is_lost_when_processes_that_send_are_killed_and_stopped_and_keepers_come_and_go() {
    let mut keepers = [Keeper::start(&[]), Keeper::start(&[]), Keeper::start(&["--harden", "memory"])];
    let place = kept_by(&keepers, 2);
    let Some(load) = Load::start(&place) else { return };
    for round in 0..12_usize {
        let processes = load.processes();
        let one = u64::from(processes[round % processes.len()]);
        match round % 3 {
            0 => kill(one),
            1 => {
                signal(one, "STOP");
                load.wait_for_all_but(1);
                signal(one, "CONT");
            }
            _ => {
                let keeper = round % keepers.len();
                keepers[keeper].kill();
                load.goes_on();
                keepers[keeper].again();
                wait_for("it to count", || role(&place, keeper) == "counts");
            }
        }
        load.goes_on();
    }
    assert_eq!(place.status()["kept"]["over"], serde_json::Value::Null);
    the_others_bring_all_back(&place, load, &mut keepers[0]);
}

/// As those are whose keys the kernel has, in so many records more.
// Holds: R24
#[test]
fn connections_are_made_anew_under_load_and_no_keeper_misses_a_batch() {
    let mut keepers = [Keeper::start(&[]), Keeper::start(&["--witness"]), Keeper::start(&[])];
    let place = kept_by(&keepers, 2);
    let Some(load) = Load::start_with(&place, &[("SEAWALL_TEST_RENEW_AFTER", "100")]) else { return };
    wait_for("every connection to be made anew, again and again", || {
        load.goes_on();
        let kept = place.status()["kept"].clone();
        let keepers = kept["keepers"].as_array().expect("keepers");
        for keeper in keepers {
            // Whoever missed one would have to be brought up to date.
            let (role, reconnects) = (&keeper["role"], &keeper["reconnects"]);
            assert!(role == "counts" && *reconnects == 0, "{keeper}");
        }
        keepers.iter().all(|keeper| keeper["renewals"].as_u64() >= Some(4))
    });
    // One that is lost meanwhile comes back as ever.
    keepers[1].kill();
    keepers[1].again();
    wait_for("it to count", || role(&place, 1) == "counts");
    load.goes_on();
    the_others_bring_all_back(&place, load, &mut keepers[0]);
}

#[test]
fn a_mount_commits_at_the_keepers_too() {
    let Some(mut m) = Mounts::bare() else { return };
    let keepers = [Keeper::start(&[]), Keeper::start(&[])];
    keep(&mut m.place, &keepers, 2);
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let last = |place: &Place| place.status()["kept"]["last"].as_u64().expect("a number");
    let before = last(&m.place);
    for block in 0..10 {
        file.write_all_at(&[7; 4096], block * 4096).expect("written");
        file.sync_data().expect("synced");
    }
    assert_eq!(m.state("x-wal")["tracked"], true);
    assert!(last(&m.place) >= before + 10, "each sync waited for a batch");
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("x-wal")).expect("read").len(), 10 * 4096);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let keeper = Keeper::start(&["--quota", "64M"]);
    let witness = Keeper::start(&["--witness"]);
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    let init = |more: &[&str]| {
        let pool = place.pool().to_owned();
        place.seawall(&[&["init", &pool, "--size", "16M"], more].concat())
    };
    let (at, other) = (keeper.address.as_str(), witness.address.as_str());
    init(&["--keeper", at, "--keeper", at]).fails(1, &["named twice", "a host of its own"]);
    init(&["--keeper", at, "--acks", "2"]).fails(1, &["2 of 1 keepers cannot confirm", "--acks"]);
    init(&["--keeper", other]).fails(1, &["every keeper is a witness"]);
    init(&["--keeper", "127.0.0.1:1"])
        .fails(1, &["127.0.0.1:1", "Every keeper of a new log must be reached"]);
    init(&["--keeper", "192.0.2.1:7000"]).fails(1, &["neither loopback nor link-local", "--clear-text"]);
    init(&["--keeper", "nowhere.invalid:7000"]).fails(1, &["nowhere.invalid:7000"]);
    let pool = place.pool().to_owned();
    let large = place.seawall(&["init", &pool, "--size", "128M", "--keeper", at]);
    large.fails(1, &["takes 268435456 bytes here", "--quota"]);
    assert!(!place.pool.exists());
}

#[test]
fn a_log_is_made_at_its_first_run_and_by_no_others_keepers_later() {
    let keepers = [Keeper::start(&[]), Keeper::start(&[]), Keeper::start(&[])];
    let place = Place::bare();
    let pool = place.file("seawall.log").display().to_string();
    let run = |keepers: &[&Keeper]| {
        let mut run = vec!["run", "--pool", &pool, "--size", "16M", "--preset", "sqlite", "--data", "."];
        keepers.iter().for_each(|keeper| run.extend(["--keeper", &keeper.address]));
        run.extend(["--", "true"]);
        place.seawall(&run)
    };
    run(&[&keepers[0], &keepers[1]]).succeeds();
    run(&[&keepers[0], &keepers[1]]).succeeds();
    run(&[]).succeeds();
    run(&[&keepers[0], &keepers[2]]).fails(125, &["is kept by", "only a new log can be given keepers"]);
    let there = place.file("other.pool").display().to_string();
    place.seawall(&["init", &there, "--size", "16M", "--emulated"]).succeeds();
    let run = ["run", "--pool", &there, "--keeper", &keepers[0].address, "--preset", "sqlite", "--data", "."];
    place.seawall(&[&run[..], &["--", "true"]].concat()).fails(125, &["is not a log that keepers keep"]);
    place.seawall(&["run", "--keeper", &keepers[0].address, "--", "true"]).fails(2, &["--pool"]);
}
