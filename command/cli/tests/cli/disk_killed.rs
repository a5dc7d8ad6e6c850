//! A guest's disk whose process is killed at every step, whose daemon dies, and whose host's power is cut.

use crate::common;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::common::disks::{Disks, Model, SIZE};
use crate::common::{kill, wait_for};
use seawall_guest::{Guest, Op, Trouble};

/// The guest sees a pause: whatever had no answer has one afterwards, and each has one.
#[test]
fn killed_at_every_step_nothing_is_lost_and_nothing_is_answered_twice() {
    let all = common::rounds("SEAWALL_DISK_STEPS");
    let disks = Disks::new();
    let mut model = Model::new(2);
    let mut guest: Option<Guest> = None;
    let mut at = 1;
    let mut kills = 0;
    while kills < all.max(12) {
        let dying = disks.serve_and_die_at(at);
        let guest = match &mut guest {
            None => guest.insert(disks.guest(1)),
            Some(guest) => {
                guest.connect_again().expect("connected again");
                guest
            }
        };
        let burst = model.burst(8);
        for op in &burst {
            guest.begin(0, op.clone()).expect("room");
        }
        let mut answers = Vec::new();
        let outcome = loop {
            if answers.len() == burst.len() {
                break None;
            }
            match guest.next(0) {
                Ok(done) => answers.push(done),
                Err(trouble) => break Some(trouble),
            }
        };
        if let Some(trouble) = outcome {
            assert!(matches!(trouble, Trouble::Gone), "{trouble}");
            kills += 1;
            dying.died();
            let next = disks.serve(&[]);
            guest.connect_again().expect("connected again");
            while answers.len() < burst.len() {
                answers.push(guest.next(0).expect("an answer"));
            }
            model.apply(&burst, &answers);
            model.check_all(guest);
            next.kill();
        } else {
            model.apply(&burst, &answers);
            dying.kill();
        }
        assert!(guest.next_within(0, Duration::from_millis(20)).is_err(), "an answer too many, at {at}");
        at = at % 37 + 5;
    }
    disks.serve(&[]).ends();
    // The daemon may not have noticed yet that the killed ones are gone.
    wait_for("the guard to go", || fs::metadata(disks.image()).is_ok_and(|image| image.len() == SIZE));
    model.compare(&disks.image());
}

#[test]
fn after_a_power_cut_the_image_has_what_was_flushed_and_until_then_nobody_starts_from_it() {
    let Some(mut disks) = Disks::on_a_disk() else { return };
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    let mut model = Model::new(3);
    model.work(&mut guest, 200);
    guest.ask(Op::Flush).expect("flushed");
    disks.cut(backend);
    let stands_there = fs::read_to_string(disks.image()).expect("a text");
    assert!(
        stands_there.contains("seawall recover") && stands_there.contains("vm.img.seawall"),
        "{stands_there}"
    );
    let aside = disks.image().with_extension("img.seawall");
    assert!(!model.is(&aside), "the cut took something away");
    disks.recover();
    assert!(model.is(&disks.image()) && !aside.exists());
}

/// A guest that does not want to flush finds every write durable.
/// With a log on a disk somebody waits for that: under `atomic` each write, under `tail` the flush.
#[test]
fn with_a_log_on_a_disk_the_policy_says_what_waits_and_what_was_flushed_survives() {
    for policy in ["atomic", "tail"] {
        let Some(mut disks) = Disks::on_a_disk() else { return };
        disks.place.pool = disks.place.file("b.log");
        disks.place.seawall(&["init", "--block", disks.place.pool(), "--size", "16M"]).succeeds();
        let backend = disks.serve(&["--policy", policy]);
        let mut guest = disks.guest(1);
        let waits = |disks: &Disks| disks.place.status()["journal"]["waits"].as_u64().expect("a number");
        // The first flush of all is the image's own.
        guest.ask(Op::Write(0, vec![3; 4096])).expect("written");
        guest.ask(Op::Flush).expect("flushed");
        let mut who_waits = || {
            let begin = waits(&disks);
            guest.ask(Op::Write(0, vec![1; 65536])).expect("written");
            let written = waits(&disks);
            guest.ask(Op::Flush).expect("flushed");
            (written > begin, waits(&disks) > written)
        };
        // The daemon waits too, now and then, and may take the guest's record along.
        let seen: Vec<_> = (0..10).map(|_| who_waits()).collect();
        assert!(seen.contains(&(policy == "atomic", policy == "tail")), "{policy}: {seen:?}");
        assert!(seen.iter().all(|(write, flush)| *write || *flush), "{policy}: {seen:?}");
        guest.ask(Op::Write(65536, vec![2; 4096])).expect("written");
        disks.cut(backend);
        disks.recover();
        let image = fs::read(disks.image()).expect("read");
        assert!(image[..65536].iter().all(|byte| *byte == 1), "{policy}: what was flushed");
        assert!(policy == "tail" || image[65536..69632].iter().all(|byte| *byte == 2), "each write is there");
    }
}

#[test]
fn a_driver_that_cannot_flush_finds_each_write_durable() {
    const FLUSH: u64 = 1 << 9;
    let Some(mut disks) = Disks::on_a_disk() else { return };
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    let syncs = || disks.file()["absorbed"].as_u64().expect("a number");
    guest.ask(Op::Write(0, vec![5; 4096])).expect("written");
    assert_eq!(syncs(), 0, "left to a flush");
    guest.ask(Op::Flush).expect("flushed");
    assert_eq!(
        guest.features() & 1 << 11,
        0,
        "it has no switch for that: the next process would not hear of it"
    );
    guest.goes_without(FLUSH);
    guest.connect_again().expect("connected");
    guest.ask(Op::Write(8192, vec![6; 4096])).expect("written");
    let synced = syncs();
    assert_eq!(synced, 2);
    // As the system's own driver comes after the BIOS's.
    guest.goes_without(0);
    guest.connect_again().expect("connected");
    guest.ask(Op::Write(16384, vec![7; 4096])).expect("written");
    assert_eq!(syncs(), synced, "left to a flush again");
    disks.cut(backend);
    disks.recover();
    let image = File::open(disks.image()).expect("opened");
    for (at, value) in [(0, 5), (8192, 6)] {
        let mut found = [0; 4096];
        image.read_exact_at(&mut found, at).expect("read");
        assert_eq!(found, [value; 4096], "at {at}");
    }
}

#[test]
fn the_daemon_may_die_and_another_takes_the_image_over() {
    let disks = Disks::new();
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    guest.ask(Op::Write(0, vec![1; 4096])).expect("written");
    let daemon = disks.place.daemon().expect("a daemon");
    kill(daemon);
    guest.ask(Op::Write(4096, vec![2; 4096])).expect("written");
    guest.ask(Op::Flush).expect("flushed");
    wait_for("another daemon", || disks.place.daemon().is_some_and(|now| now != daemon));
    guest.ask(Op::Write(8192, vec![3; 4096])).expect("written");
    guest.ask(Op::Flush).expect("flushed");
    wait_for("the image in the log", || disks.file()["tracked"] == true);
    guest.end().expect("ended");
    backend.ends();
    assert_eq!(fs::read(disks.image()).expect("read")[..12288], [[1; 4096], [2; 4096], [3; 4096]].concat());
}
