//! A log on two devices: each of them fails, or the power goes, at any of its writes; whichever copies are there then.

pub mod scene;

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::World;
use scene::{IMAGE, JOURNAL, Used, live, say};
use seawall_core::pool::block;
use seawall_media::block::MirrorState;
use seawall_media::sim;
use seawall_wire::desk::Desk;

// Holds: R16
#[test]
fn what_was_acknowledged_is_on_both_and_either_supplies_what_the_other_one_lost() {
    let used = Used::new();
    used.commit();
    let before = used.devices.writes.get();
    used.commit();
    assert_eq!(used.devices.writes.get(), before + 2, "one write to each");
    let cut = used.cut();
    assert!(cut.is_equal());
    let batches = cut.batches(0);
    for copy in [0, 1] {
        for at in [batches[batches.len() - 1], batches[1]] {
            cut.garble(copy, at);
            assert!(!cut.is_equal());
            assert_eq!(cut.live(copy), 2, "copy {copy} was garbled at {at}");
            assert!(cut.is_equal(), "made equal before anything else");
            let again = cut.open(copy).expect("a log").mirror.expect("a mirror").notes;
            assert_eq!(again, Vec::<String>::new(), "nothing is left to do");
        }
        cut.without(copy, || cut.refused(1 - copy, &["is missing", "may hold more", "--alone"]));
    }
}

/// The classic: one dies, the other one goes on, the power goes, and only the stale one comes back.
// Holds: R19
#[test]
fn a_copy_that_was_left_behind_is_never_believed() {
    for dead in [0, 1] {
        let used = Used::new();
        used.commit();
        used.devices.fails.set(Some(dead));
        used.commit();
        assert_eq!(used.desk().copies().load(SeqCst), 2 >> dead, "the other one");
        let before = used.devices.writes.get();
        used.commit();
        assert_eq!(used.devices.writes.get(), before + 1, "the dead one is left alone");
        let cut = used.cut();
        cut.without(1 - dead, || cut.refused(dead, &["is missing", "may hold more"]));
        cut.without(dead, || {
            let pool = cut.open(1 - dead).expect("it is alone");
            assert!(pool.mirror.as_ref().expect("a mirror").notes[0].contains("LOST ITS MIRROR"));
            assert_eq!(live(&pool), 3);
        });
        assert_eq!(cut.live(dead), 3, "the stale one was rebuilt from the other one");
        assert!(cut.is_equal());
        cut.without(dead, || cut.refused(1 - dead, &["is missing"]));
    }
}

/// Runs `once` with each copy failing, and with none, and with the writer dying at each of its steps, until it no longer
/// dies.
fn at_every_death(once: impl Fn(Option<usize>, u32) -> bool) {
    for fails in [None, Some(0), Some(1)] {
        let steps = (0..).take_while(|step| once(fails, *step)).count();
        assert!(steps > 0, "{fails:?} fails: nobody died");
    }
}

/// A log with a commit, and whether the leader of a second one died at this step.
fn dying(fails: Option<usize>, step: u32) -> (Used, bool) {
    let used = Used::new();
    used.commit();
    used.devices.fails.set(fails);
    used.write();
    let died = used.devices.mortal(step, || used.sync());
    (used, died)
}

/// The power goes at each step of a commit with which a copy dies, or none does.
// Holds: R12
#[test]
fn a_power_cut_at_any_write_loses_nothing_that_was_acknowledged() {
    at_every_death(|fails, step| {
        let (used, died) = dying(fails, step);
        let acknowledged = 1 + usize::from(!died);
        let cut = used.cut();
        let found = cut.live(step as usize % 2);
        assert!((acknowledged..=2).contains(&found), "{fails:?} fails, cut at {step}: {found}");
        assert!(cut.is_equal(), "{fails:?} fails, cut at {step}");
        assert!(died || step >= 4);
        died
    });
}

/// A leader dies at each step; its heir goes on with whatever subset of the writes happened.
// Holds: R12
#[test]
fn the_heir_of_a_leader_that_died_at_any_write_goes_on() {
    at_every_death(|fails, step| {
        let (used, died) = dying(fails, step);
        used.commit();
        let written = usize::from(used.written.get());
        let copies = used.desk().copies().load(SeqCst);
        assert_eq!(copies, fails.map_or(3, |copy| 2 >> copy), "{fails:?} fails, died at {step}");
        assert_eq!(used.desk().suspect().load(SeqCst), 0);
        let cut = used.cut();
        assert_eq!(cut.live(step as usize % 2), written, "{fails:?} fails, died at {step}");
        assert!(cut.is_equal());
        died
    });
}

/// A destager dies at each write of its round, whether a copy dies with it or not.
#[test]
fn cleaning_moves_the_tail_of_both_and_of_the_one_that_is_left() {
    at_every_death(|fails, step| {
        let used = Used::new();
        for _ in 0..9 {
            used.world.pwrite(&used.file, 0, &[9; 100_000], 0);
            used.sync();
        }
        used.devices.fails.set(fails);
        let anchor = used.desk().anchor().load(SeqCst);
        let died = used.devices.mortal(step, || {
            used.world.destage(&used.file);
        });
        used.commit();
        let moved = used.desk().anchor().load(SeqCst) - anchor;
        let cut = used.cut();
        let found = cut.live(0);
        assert!((1..=10).contains(&found), "{fails:?} fails, died at {step}: {found}");
        assert!(cut.is_equal());
        if !died {
            assert_eq!(moved, fails.map_or(1, |_| 3), "its own, and two that say that it is alone");
        }
        died
    });
}

#[test]
fn a_log_in_use_is_taken_over_as_its_desk_says() {
    let used = Used::new();
    used.commit();
    used.devices.fails.set(Some(0));
    used.commit();
    used.write();
    sim::install(None);
    let paths = used.paths();
    let World { memory, disk: _disk, dir: _dir, pool, engine, .. } = used.world;
    drop((pool, engine));
    for path in &paths {
        let pool = block::open_in(path, memory.path()).expect("a log");
        let desk = Desk::new(&pool.region, IMAGE as usize);
        assert_eq!((desk.copies().load(SeqCst), live(&pool)), (2, 3), "unsynced, and not lost");
    }
}

// Holds: R20
#[test]
fn what_cannot_be_a_mirror_is_refused_and_changes_nothing() {
    let disk = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
    let at = |name: &str| disk.path().join(name);
    let make = |name: &str, journal| {
        block::create_file(&at(name), block::Sizes { image: IMAGE, journal }).expect("a log");
    };
    let join = |log: &str, mirror: &Path| {
        block::join_mirror(&at(log), mirror, false, memory.path()).map_err(|error| error.to_string())
    };
    make("a", JOURNAL);
    make("b", JOURNAL);
    for (mirror, words) in
        [(at("a"), "already exists"), (at("b"), "already exists"), (memory.path().join("x"), "RAM")]
    {
        let said = join("a", &mirror).expect_err("refused");
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(block::mirror_of(&at("a")).expect("readable"), None);
    join("a", &at("a2")).expect("a mirror");
    join("b", &at("b2")).expect("a mirror");
    assert!(join("a", &at("a3")).expect_err("refused").contains("already mirrored"));
    fs::rename(at("b2"), at("a2")).expect("moved");
    let open = |name: &str| block::open_in(&at(name), memory.path()).map(|pool| pool.path);
    let said = open("a").expect_err("refused").to_string();
    assert!(said.contains("holds another log") && said.contains("a2"), "{said}");
    block::part_mirror(&at("a"), memory.path()).expect("alone");
    open("a").expect("a log");
    fs::remove_file(at("a2")).expect("removed");
    for entry in fs::read_dir(memory.path()).expect("memory").flatten() {
        fs::remove_file(entry.path()).expect("removed");
    }
    join("a", &at("a3")).expect("another one in its place");
    open("a3").expect("a log");
}

/// Both were declared to be alone: neither can be the whole truth.
// Holds: R19
#[test]
fn two_copies_that_both_went_on_alone_are_refused() {
    let used = Used::new();
    used.commit();
    let cut = used.cut();
    for copy in [0, 1] {
        cut.without(1 - copy, || {
            cut.refused(copy, &["is missing"]);
            for entry in fs::read_dir(cut.memory.path()).expect("memory").flatten() {
                fs::remove_file(entry.path()).expect("removed");
            }
            block::part_mirror(&cut.paths[copy], cut.memory.path()).expect("alone");
        });
    }
    cut.refused(0, &["each went on without the other", "choose"]);
    cut.refused(1, &["each went on without the other"]);
}

/// A copy is rebuilt from one that went on alone, and the power goes again, before and after that one says "both".
// Holds: R16
#[test]
fn a_rebuild_that_is_cut_short_is_made_again_and_what_it_left_is_not_believed() {
    for believed_says_both in [false, true] {
        let used = Used::new();
        used.devices.fails.set(Some(1));
        used.commit();
        used.commit();
        let cut = used.cut();
        say(&cut.paths[1], MirrorState::Unfinished, 0);
        cut.garble(1, cut.batches(1)[1]);
        if believed_says_both {
            say(&cut.paths[0], MirrorState::Both, 2);
        }
        cut.without(0, || cut.refused(1, &["is incomplete", "bring back"]));
        cut.without(1, || match believed_says_both {
            true => cut.refused(0, &["is missing"]),
            false => assert_eq!(cut.live(0), 2),
        });
        assert_eq!(cut.live(1), 2, "by the path of the unfinished one");
        assert!(cut.is_equal());
    }
}
