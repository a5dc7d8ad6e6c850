//! A lost copy of a log on two devices is rebuilt while commits go on: it fails, whoever rebuilds it dies, or the power
//! goes.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::World;
use crate::mirror::scene::{Cut, EIO, IMAGE, JOURNAL, Used, live, say};
use seawall_core::Errno;
use seawall_core::journal::rebuild::Rebuild;
use seawall_core::pool::block;
use seawall_core::store::Store;
use seawall_media::block::MirrorState;
use seawall_media::sim;
use seawall_wire::desk::Desk;

/// Copies everything; after each piece, `between` gets their number so far.
fn copy_all(rebuild: &mut Rebuild<'_>, mut between: impl FnMut(u32)) -> std::io::Result<()> {
    for pieces in 1.. {
        let (done, all) = rebuild.progress();
        if done == all {
            break;
        }
        rebuild.piece()?;
        between(pieces);
    }
    Ok(())
}

#[test]
fn a_copy_that_is_rebuilt_while_commits_go_on_holds_all_of_them_and_counts() {
    for dead in [0, 1] {
        let used = Used::alone(dead);
        let source = used.source();
        let mut rebuild = used.begin(&source).expect("begun");
        copy_all(&mut rebuild, |_| used.commit()).expect("copied");
        assert_eq!(used.desk().copies().load(SeqCst), 2 >> dead, "it does not count yet");
        rebuild.finish().expect("both count");
        drop(rebuild);
        assert_eq!((used.desk().copies().load(SeqCst), used.desk().suspect().load(SeqCst)), (3, 0));
        used.commit();
        assert!(used.begin(&source).is_err_and(|error| error == Errno::INVAL), "nothing is lost");
        // The one that was rebuilt is the only one from here on.
        used.devices.fails.set(Some(1 - dead));
        used.commit();
        let written = usize::from(used.written.get());
        let cut = used.cut();
        cut.without(1 - dead, || assert_eq!(cut.live(dead), written, "copy {dead} was rebuilt"));
    }
}

#[test]
fn both_are_equal_after_a_rebuild() {
    let used = Used::alone(1);
    let source = used.source();
    let mut rebuild = used.begin(&source).expect("begun");
    copy_all(&mut rebuild, |_| used.commit()).expect("copied");
    rebuild.finish().expect("both count");
    drop(rebuild);
    let cut = used.cut();
    assert!(cut.is_equal());
    let pool = cut.open(1).expect("a log");
    assert_eq!(pool.mirror.expect("a mirror").notes, Vec::<String>::new(), "nothing is left to do");
}

// Holds: R14
#[test]
fn who_has_the_former_devices_writes_neither_copy() {
    let used = Used::alone(1);
    let source = used.source();
    let (former, of_a_daemon) = (used.front(), &used.world.pool.region);
    let change = |store: &Store| store.change(&[(0, 64)], |_| ());
    change(&former).expect("written");
    let rebuild = used.begin(&source).expect("begun");
    let before = used.devices.writes.get();
    assert_eq!(change(&former).expect_err("refused"), Errno::BADF);
    assert_eq!(used.devices.writes.get(), before);
    for store in [&used.front(), of_a_daemon] {
        let before = used.devices.writes.get();
        change(store).expect("written");
        assert_eq!(used.devices.writes.get(), before + 2, "to the one that is rebuilt as well");
    }
    drop(rebuild);
    sim::install(None);
}

#[test]
fn a_rebuild_whose_device_fails_fails_no_commit_and_is_not_believed() {
    let used = Used::alone(1);
    let source = used.source();
    let mut rebuild = used.begin(&source).expect("begun");
    let said = copy_all(&mut rebuild, |pieces| {
        if pieces == 4 {
            used.devices.fails.set(Some(1));
            used.commit();
        }
    });
    assert_eq!(said.expect_err("it failed").raw_os_error(), Some(EIO));
    drop(rebuild);
    let before = used.devices.writes.get();
    used.commit();
    assert_eq!(used.devices.writes.get(), before + 1, "it is left alone");
    let written = usize::from(used.written.get());
    let cut = used.cut();
    cut.without(0, || cut.refused(1, &["is incomplete"]));
    cut.without(1, || assert_eq!(cut.live(0), written, "the other one is alone"));
}

// Holds: R15
#[test]
fn a_former_copy_leads_to_those_that_count() {
    for dead in [0, 1] {
        let used = Used::alone(dead);
        let former = used.paths()[dead].clone();
        let third = former.with_file_name("third");
        let replaced = used.world.pool.replace_copy(&third, false).expect("fit");
        assert_eq!(used.paths()[dead], third);
        let image = used.world.engine.pool();
        let journal = image.journal().expect("a journal");
        let mut rebuild = Rebuild::begin(journal, image, replaced.devices, &replaced.source).expect("begun");
        copy_all(&mut rebuild, |_| used.commit()).expect("copied");
        rebuild.finish().expect("both count");
        drop(rebuild);
        used.commit();
        let written = usize::from(used.written.get());
        let cut = used.cut();
        assert!(cut.is_equal());
        for path in [&cut.paths[0], &cut.paths[1], &former] {
            let pool = cut.open_at(path).expect("a log");
            let mirror = pool.mirror.as_ref().expect("a mirror");
            let is_told = mirror.notes.iter().any(|note| note.contains("is no longer a copy of the log"));
            assert_eq!((mirror.paths(), is_told), (cut.paths.clone(), *path == former), "{}", path.display());
            assert_eq!(live(&pool), written, "{}", path.display());
        }
        cut.without(dead, || {
            let said = cut.open_at(&former).map(|pool| pool.path).expect_err("refused").to_string();
            assert!(said.contains("third") && said.contains("may hold more"), "{said}");
        });
        cut.without(1 - dead, || assert!(cut.open_at(&former).is_err(), "it leads nowhere"));
    }
}

#[test]
fn what_cannot_take_the_place_of_a_lost_copy_is_refused_and_commits_go_on() {
    let used = Used::new();
    used.commit();
    let [first, second] = used.paths();
    let third = first.with_file_name("third");
    let refused = |used: &Used, path: &Path, words: &str| {
        let said = used.world.pool.replace_copy(path, true).map(|_| ()).expect_err("refused").to_string();
        assert!(said.contains(words), "{said}");
        used.commit();
    };
    refused(&used, &third, "both copies are complete");
    used.devices.fails.set(Some(1));
    used.commit();
    used.devices.fails.set(None);
    refused(&used, &first, "to which commits still go");
    refused(&used, &used.file.path, "already exists");
    refused(&used, &used.world.memory.path().join("x"), "RAM");
    let World { disk: Some(others), pool: _pool, .. } = &World::mirrored(IMAGE, JOURNAL) else { panic!() };
    fs::copy(others.path().join("mirror"), &third).expect("another log's");
    refused(&used, &third, "holds another log");
    fs::copy(&second, &third).expect("a copy of the copy");
    say(&third, MirrorState::Alone, 0);
    refused(&used, &third, "went on alone");
    // The lost one itself, well again.
    let replaced = used.world.pool.replace_copy(&second, false).expect("fit");
    drop(replaced);
    used.commit();
    let written = usize::from(used.written.get());
    let cut = used.cut();
    assert_eq!(cut.live(0), written, "it was not even begun");
}

/// A daemon dies before the end, when the copy that is left says "both", and when both count already.
#[test]
fn who_takes_over_gives_a_rebuild_up_or_has_both_say_that_they_count() {
    for (step, copies) in [(None, 1), (Some(3), 1), (Some(4), 3)] {
        let used = Used::alone(1);
        let source = used.source();
        let mut rebuild = used.begin(&source).expect("begun");
        if let Some(step) = step {
            copy_all(&mut rebuild, |_| ()).expect("copied");
            assert!(used.devices.mortal(step, || rebuild.finish().expect("both count")));
            // For whoever is not simulated.
            used.desk().lock().store(0, SeqCst);
            used.desk().seats().for_each(|seat| seat.holder().store(0, SeqCst));
        }
        std::mem::forget(rebuild);
        assert_eq!((used.desk().joining().load(SeqCst), used.desk().copies().load(SeqCst)), (2, copies));
        sim::install(None);
        let (paths, written) = (used.paths(), usize::from(used.written.get()));
        let World { memory, disk, dir, pool, engine, .. } = used.world;
        drop((pool, engine));
        let pool = block::open_in(&paths[0], memory.path()).expect("a log");
        let desk = Desk::new(&pool.region, IMAGE as usize);
        assert_eq!((desk.joining().load(SeqCst), desk.copies().load(SeqCst)), (0, copies), "{step:?}");
        assert!(pool.mirror.as_ref().is_some_and(|mirror| mirror.notes[0].contains("was being rebuilt")));
        drop(pool);
        let cut = Cut { paths, memory, _dirs: (disk.expect("a disk"), dir) };
        match copies {
            1 => cut.without(1, || assert_eq!(cut.live(0), written, "{step:?}: it is alone")),
            _ => cut.without(0, || cut.refused(1, &["may hold more"])),
        }
        assert_eq!(cut.live(1), written, "{step:?}");
    }
}

/// Whoever rebuilds dies at each write, and the power goes at once, or after a commit of an heir, who goes on with the
/// rebuild's writes or has given it up.
// Holds: R13
#[test]
fn a_rebuild_that_dies_at_any_write_loses_nothing() {
    for (dead, commits, gives_up) in [(0, false, false), (0, true, true), (1, true, false), (1, true, true)] {
        let died_at = |step: u32| {
            let used = Used::alone(dead);
            let source = used.source();
            let died = used.devices.mortal(step, || {
                let mut rebuild = used.begin(&source).expect("begun");
                copy_all(&mut rebuild, |_| ()).expect("copied");
                rebuild.finish().expect("both count");
            });
            if gives_up {
                used.desk().joining().store(0, SeqCst);
            }
            if commits {
                used.commit();
                // It may have had to be the one that counts.
                assert_eq!(used.desk().failed().load(SeqCst), 0);
            }
            let written = usize::from(used.written.get());
            let cut = used.cut();
            assert_eq!(cut.live(step as usize % 2), written, "copy {dead} was rebuilt until {step}");
            assert!(cut.is_equal());
            died
        };
        // A piece in the middle is like its neighbours.
        let is_like_others = |step: &u32| (14..28).contains(step);
        let steps = (0..).take_while(|step| is_like_others(step) || died_at(*step)).count();
        assert!(steps > 36, "each piece is a step: {steps}");
    }
}
