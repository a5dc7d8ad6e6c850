//! The lost copy of a mirrored log is rebuilt while processes write: what it is worth alone then, and who dies or fails
//! meanwhile.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::common::ledger::Load;
use crate::common::mirrors::{Failing, lose_memory, make, mirrored, recover, ring, text};
use crate::common::mounts::{Mounts, tracked};
use crate::common::{Place, Said, Writer, kill, kill_everything, signal, wait_for};

fn mirror(place: &Place, on: &Path) -> Said {
    place.seawall(&["mirror", "--pool", place.pool(), "--on", text(on)])
}

/// Which copies are written.
fn written(place: &Place) -> [bool; 2] {
    let status = place.status();
    [0, 1].map(|i| status["journal"]["mirror"]["copies"][i]["written"] == true)
}

/// A log whose second copy failed under a writer, and is well again.
fn alone() -> Option<(Place, PathBuf, Writer)> {
    let (place, second) = mirrored();
    let mut writer = Writer::start(&place);
    writer.write(2);
    let Some(failing) = Failing::new(&second) else {
        writer.finish().succeeds();
        return None;
    };
    writer.write(2);
    wait_for("the loss", || written(&place) == [true, false]);
    drop(failing);
    Some((place, second, writer))
}

/// Begins, and returns when the copy is being written.
fn begin(place: &Place, on: &Path) -> Child {
    let mut command = place.command(&["mirror", "--pool", place.pool(), "--on", text(on)]);
    let asking = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    wait_for("the rebuild", || {
        let rebuild = &place.status()["journal"]["mirror"]["rebuild"];
        rebuild["state"] == "copying" || rebuild["state"] == "done"
    });
    asking.expect("seawall starts")
}

fn said(asking: Child) -> Said {
    asking.wait_with_output().expect("seawall ends").into()
}

fn log(place: &Place) -> String {
    let path = place.status()["log"].as_str().expect("a path").to_owned();
    fs::read_to_string(path).expect("the daemon's log")
}

/// Whichever copy fails first: what was rebuilt is all there is in the end.
// Holds: R13
#[test]
fn a_copy_that_was_rebuilt_under_load_is_worth_as_much_as_the_one_that_is_lost_then() {
    for lost in [0, 1] {
        let (place, second) = mirrored();
        let copies = [place.pool.clone(), second];
        let Some(load) = Load::start(&place) else { return };
        let Some(failing) = Failing::new(&copies[lost]) else {
            load.kill(&place);
            recover(&place, &place.pool).succeeds();
            return;
        };
        wait_for("the loss", || !written(&place)[lost]);
        // It takes writes again, of which nobody must make any.
        drop(failing);
        let third = place.file("third.log");
        let told = mirror(&place, &third);
        told.succeeds();
        assert!(told.out.contains("third.log is whole"), "{}", told.out);
        assert_eq!(
            told.out.contains("seawall.log is not a copy of the log any more"),
            lost == 0,
            "{}",
            told.out
        );
        assert_eq!(written(&place), [true, true]);
        // Everybody had it open.
        let former = ring(&copies[lost]);
        load.goes_on();
        assert!(former == ring(&copies[lost]), "the former copy is written");
        let last = Failing::new(&copies[1 - lost]).expect("it failed before");
        wait_for("the other loss", || !written(&place)[1 - lost]);
        wait_for("the daemon's log", || log(&place).matches("THE LOG LOST ITS COPY").count() == 2);
        load.goes_on();
        let killed = load.kill(&place);
        drop(last);
        // By their names.
        copies.iter().for_each(|copy| fs::rename(copy, copy.with_extension("away")).expect("moved"));
        killed.lose_memory(&place);
        recover(&place, &third).succeeds();
        killed.are_there(&place);
    }
}

/// It has the devices of the log from its start on.
#[test]
fn a_mount_writes_to_the_copy_that_was_rebuilt() {
    let Some(mut m) = Mounts::new() else { return };
    let second = make(&mut m.place);
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let write = |fill: u8| {
        file.write_all_at(&[fill; 4096], 0).expect("written");
        file.sync_all().expect("synced");
    };
    let failing = Failing::new(&second);
    write(3);
    if failing.is_some() {
        assert_eq!(written(&m.place), [true, false]);
        drop(failing);
        let third = m.place.file("third.log");
        mirror(&m.place, &third).succeeds();
        let former = ring(&second);
        (4..40).for_each(write);
        assert!(former == ring(&second), "the former copy is written");
        assert_eq!((m.state("x-wal")["real_syncs"].as_u64(), written(&m.place)), (Some(1), [true, true]));
        let last = Failing::new(&m.place.pool).expect("the other one failed before");
        write(40);
        assert_eq!(written(&m.place), [false, true]);
        drop(last);
    }
    drop(file);
    m.umount().succeeds();
}

// Holds: R13
#[test]
fn a_daemon_that_is_killed_while_it_rebuilds_is_replaced_and_the_copy_counts_only_when_it_is_whole() {
    let Some((place, second, mut writer)) = alone() else { return };
    let third = place.file("third.log");
    let asking = begin(&place, &third);
    let daemon = place.daemon().expect("a daemon");
    kill(daemon);
    said(asking).fails(1, &["the daemon ended before the copy was whole", "run this command again"]);
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    assert!(log(&place).contains("was being rebuilt when the former daemon ended"), "{}", log(&place));
    assert_eq!(written(&place), [true, false]);
    writer.write(5);
    let mirror_of = place.status()["journal"]["mirror"].clone();
    assert!(mirror_of["copies"][1]["path"].as_str().expect("a path").ends_with("third.log"), "{mirror_of}");
    // The same file, or the copy that was there first.
    mirror(&place, &third).succeeds();
    assert_eq!(written(&place), [true, true]);
    writer.write(5);
    // Either copy is as good as the other one, and the one that was left behind leads to them.
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    let garbled = File::options().write(true).open(&place.pool).expect("a copy");
    garbled.write_all_at(&vec![0x5a; 1 << 20], 8192).expect("garbled");
    recover(&place, &second).succeeds();
    assert_eq!(Writer::found(&place), 14);
    assert_eq!(ring(&place.pool), ring(&third), "made equal");
}

// Holds: R13
#[test]
fn a_rebuild_that_fails_is_told_and_commits_go_on() {
    let Some((place, second, mut writer)) = alone() else { return };
    mirror(&place, &place.pool).fails(1, &["to which commits still go"]);
    mirror(&place, &place.file("x-wal")).fails(1, &["was not rebuilt", "x-wal"]);
    mirror(&place, Path::new(&place.ram("x"))).fails(1, &["RAM"]);
    let asking = begin(&place, &second);
    let failing = Failing::new(&second).expect("it failed before");
    writer.write(2);
    said(asking)
        .fails(1, &["second.log was not rebuilt", "cannot write to", "not permitted", "goes on with"]);
    let status = place.seawall(&["status", "--pool", place.pool()]);
    assert!(status.out.contains("MIRROR LOST") && status.out.contains("not permitted"), "{}", status.out);
    let said = log(&place);
    assert!(said.contains("WAS NOT REBUILT") && said.matches("LOST ITS COPY").count() == 1, "{said}");
    writer.write(2);
    drop(failing);
    mirror(&place, &second).succeeds();
    assert_eq!(written(&place), [true, true]);
    mirror(&place, &second).fails(1, &["both copies are complete"]);
    writer.write(2);
    assert_eq!(place.status()["journal"]["failed"], 0);
    writer.finish().succeeds();
    assert_eq!(ring(&place.pool), ring(&second));
    assert_eq!(Writer::found(&place), 10);
}

#[test]
fn who_waits_for_a_rebuild_may_go() {
    let Some((place, second, mut writer)) = alone() else { return };
    let asking = begin(&place, &second);
    signal(asking.id().into(), "INT");
    said(asking).fails(1, &["still being rebuilt, by the daemon", "seawall status"]);
    let shown = place.seawall(&["status", "--pool", text(&second)]);
    assert!(shown.out.contains("MIRROR LOST: rebuilding"), "{}", shown.out);
    // The daemon stays for it when the last of its users has gone.
    writer.write(1);
    writer.finish().succeeds();
    wait_for("the end", || place.in_memory().is_empty());
    assert_eq!(ring(&place.pool), ring(&second));
    recover(&place, &second).succeeds();
}
