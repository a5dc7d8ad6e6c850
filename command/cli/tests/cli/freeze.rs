//! `seawall freeze` and `thaw`: what is frozen is out of the log, has no guard, and comes back; the writer sees nothing of it.

use crate::common;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Place, SEAWALL, Said, Writer, cluster, kill, signal, wait_for};
use serde_json::Value;

fn freeze(place: &Place, words: &[&str]) -> Said {
    place.seawall(&[&["freeze", "--pool", place.pool()], words].concat())
}

fn thaw(place: &Place) -> Said {
    place.seawall(&["thaw", "--pool", place.pool()])
}

/// The file that the writer writes, as `status` tells of it.
fn file(place: &Place) -> Value {
    place.status()["files"][0].clone()
}

fn wait_until_logged(place: &Place, writer: &mut Writer) {
    wait_for("the file to be in the log again", || {
        writer.write(1);
        file(place)["live"] == true
    });
}

// Holds: K8
#[test]
fn a_frozen_file_is_out_of_the_log_without_a_guard_and_thawed_it_is_back_behind_one() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(10);
    assert_eq!(file(&place)["live"], true);
    freeze(&place, &[]).succeeds();
    assert!(!place.guard().exists());
    writer.write(5);
    let frozen = file(&place);
    assert_eq!((&frozen["tracked"], &frozen["live"]), (&false.into(), &false.into()), "{frozen}");
    assert!(frozen["flags"].as_array().expect("flags").contains(&"frozen".into()), "{frozen}");
    let status = place.status();
    assert_eq!(status["guards"], 0);
    assert!(status["frozen"]["seconds_left"].as_u64() > Some(3500), "{}", status["frozen"]);
    assert!(place.seawall(&["status", "--pool", place.pool()]).out.contains("FROZEN"));
    freeze(&place, &[]).fails(1, &["already frozen", "seawall thaw"]);

    thaw(&place).succeeds();
    assert!(place.guard().exists(), "before the first record");
    wait_until_logged(&place, &mut writer);
    thaw(&place).fails(1, &["nothing is frozen"]);
    let said = writer.finish();
    assert_eq!(
        said.succeeds().err.lines().filter(|line| !line.contains(common::EMULATED)).count(),
        0,
        "{}",
        said.err
    );
    assert!(!place.guard().exists());
}

// Holds: K8
#[test]
fn a_freeze_ends_with_its_command_at_its_limit_and_with_its_daemon() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(3);
    let code = freeze(&place, &["--", "sh", "-c", "test ! -e x-journal && exit 7"]);
    assert_eq!(code.code, Some(7), "{}{}", code.out, code.err);
    assert!(place.guard().exists());
    wait_until_logged(&place, &mut writer);

    let ended = format!("'{}' thaw --pool '{}'", SEAWALL, place.pool());
    freeze(&place, &["--", "sh", "-c", &ended]).fails(1, &["ended before the command did", "Copy it again"]);

    freeze(&place, &["--for", "1s"]).succeeds();
    assert!(!place.guard().exists());
    wait_for("the limit", || place.status()["frozen"].is_null());
    assert!(place.guard().exists());
    thaw(&place).fails(1, &["nothing is frozen"]);

    freeze(&place, &[]).succeeds();
    writer.write(2);
    let daemon = place.daemon().expect("a daemon");
    // The run that would start the next one is stopped.
    signal(writer.run.id().into(), "STOP");
    kill(daemon);
    writer.write(2);
    assert!(!place.guard().exists(), "nobody logs: the mark outlives the daemon");
    signal(writer.run.id().into(), "CONT");
    wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
    assert!(place.guard().exists() && place.status()["frozen"].is_null());
    wait_until_logged(&place, &mut writer);

    // One that nobody ends does not keep the guard from going with the database.
    freeze(&place, &[]).succeeds();
    thaw(&place).succeeds();
    writer.finish().succeeds();
    wait_for("the guard's end", || !place.guard().exists());
}

// Holds: K8
#[test]
fn what_is_made_meanwhile_has_no_guard_and_is_in_the_log_after_the_thaw() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    freeze(&place, &[]).succeeds();
    let mut late =
        place.run_command(&["dd", "of=y-wal", "bs=4096", "iflag=fullblock", "oflag=dsync", "status=none"]);
    let mut late = late.stdin(Stdio::piped()).spawn().expect("seawall starts");
    let mut blocks = 0;
    let mut write = || {
        blocks += 1;
        late.stdin.as_mut().expect("piped").write_all(&[1; 4096]).expect("it lives");
        wait_for("a block", || fs::metadata(place.file("y-wal")).is_ok_and(|m| m.len() >= blocks * 4096));
    };
    // More than a file is asked about that was refused for good.
    (0..40).for_each(|_| write());
    assert!(!place.file("y-journal").exists());
    assert_eq!(place.status()["files"].as_array().map(Vec::len), Some(1));
    thaw(&place).succeeds();
    write();
    write();
    assert!(place.file("y-journal").exists());
    drop(late.stdin.take());
    assert!(late.wait().expect("ended").success());
    writer.finish().succeeds();
}

#[test]
fn a_directory_finds_its_pool() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(2);
    let data = place.data.path().to_str().expect("a path");
    place.seawall(&["freeze", data, "--", "test", "!", "-e", "x-journal"]).succeeds();
    freeze(&place, &["/var"]).succeeds();
    thaw(&place).succeeds();
    freeze(&place, &["/usr"]).fails(1, &["this pool holds nothing of it"]);
    writer.finish().succeeds();
    assert_eq!(freeze(&place, &["--", "sh", "-c", "exit 3"]).code, Some(3), "nothing is to be frozen");
}

/// As what takes snapshots of a whole machine calls it, with several logs.
#[test]
fn a_hook_freezes_several_pools_together() {
    let places = [Place::new(), Place::new()];
    let mut writers = places.each_ref().map(Writer::start);
    writers.iter_mut().for_each(|writer| writer.write(3));
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/hooks/seawall-freeze-hook");
    let run = |pools: &[&str], word: &str| {
        let options: String = pools.iter().map(|pool| format!("--pool {pool} ")).collect();
        let mut hook = Command::new(&hook);
        hook.arg(word).env("SEAWALL", SEAWALL).env("SEAWALL_FREEZE", options + "--for 20s");
        Said::from(hook.output().expect("it runs"))
    };
    let pools = places.each_ref().map(Place::pool);
    let frozen = || places.each_ref().map(|place| !place.status()["frozen"].is_null());
    run(&pools, "freeze").succeeds();
    assert_eq!(frozen(), [true; 2]);
    run(&pools, "thaw").succeeds();
    assert_eq!(frozen(), [false; 2]);
    assert!(places.iter().all(|place| place.guard().exists()));
    // All or none.
    run(&[pools[0], "/nowhere"], "freeze").fails(1, &["/nowhere"]);
    assert_eq!(frozen(), [false; 2]);
    run(&pools[1..], "freeze").succeeds();
    run(&pools, "freeze").fails(1, &["already frozen"]);
    assert_eq!(frozen(), [false, true], "the first one was let go again");
    run(&pools[1..], "thaw").succeeds();
    assert_eq!(run(&pools, "freez").code, Some(2));
    for writer in writers {
        writer.finish().succeeds();
    }
}

/// Stands for PostgreSQL: changes a data file, and after a line of input that one and a new one.
const CHANGES: &str = "
    sub put {
        sysopen(my $f, $_[0], 01 | 0100 | 02000) or die;
        syswrite($f, $_[1] x 8192) == 8192 or die;
    }
    put('base/5/1', 'a');
    open(my $r, '>', 'ready') or die;
    <STDIN>;
    put('base/5/1', 'b');
    put('base/5/2', 'c');";

#[test]
fn under_the_policy_atomic_changes_wait_for_the_thaw() {
    let Some(place) = cluster::place() else { return };
    let mut run = cluster::start_until(&place, "atomic", CHANGES, "ready");
    freeze(&place, &["--for", "61s"]).fails(1, &["60 s at most", "snapshot"]);
    let said = freeze(&place, &[]);
    assert!(said.succeeds().out.contains("writes wait") && said.out.contains("for 30 s"), "{}", said.out);
    cluster::go_on(&mut run);
    std::thread::sleep(Duration::from_millis(400));
    let len = |name: &str| fs::metadata(place.file(name)).map_or(0, |file| file.len());
    assert_eq!((len("base/5/1"), len("base/5/2")), (8192, 0));
    assert!(!place.file("done").exists());
    let status = place.status();
    assert_eq!((&status["guards"], &status["frozen"]["writes_wait"]), (&0.into(), &true.into()));
    assert!(place.seawall(&["status", "--pool", place.pool()]).out.contains("writes wait, no guards"));
    thaw(&place).succeeds();
    wait_for("both changes", || place.file("done").exists());
    assert_eq!((len("base/5/1"), len("base/5/2")), (16384, 8192));
    let status = place.status();
    for name in ["5/1", "5/2"] {
        let file = cluster::file(&status, name).expect("managed");
        assert_eq!((&file["tracked"], &file["writes"]), (&true.into(), &file["writes"]), "{file}");
        assert!(file["writes"].as_u64() > Some(0), "not around the log: {file}");
    }
    assert_eq!(status["torn"], false);
    cluster::finish(run);
}

#[test]
fn changes_wait_no_longer_than_the_limit_and_the_daemon() {
    for ends in ["limit", "daemon"] {
        let Some(place) = cluster::place() else { return };
        let mut run = cluster::start_until(&place, "atomic", CHANGES, "ready");
        freeze(&place, &["--for", if ends == "limit" { "3s" } else { "60s" }]).succeeds();
        cluster::go_on(&mut run);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!place.file("done").exists(), "{ends}");
        if ends == "daemon" {
            kill(place.daemon().expect("a daemon"));
        }
        let begin = Instant::now();
        wait_for("both changes", || place.file("done").exists());
        assert!(begin.elapsed() < Duration::from_secs(20), "{ends}: {:?}", begin.elapsed());
        cluster::finish(run);
        thaw(&place).fails(1, &[]);
    }
}

/// On a disk: what is frozen is retired there too, before the guard goes. A power cut then finds nothing to replay, which
/// could undo what was written since.
// Holds: K8
#[test]
fn nothing_of_a_frozen_file_is_replayed_after_a_power_cut() {
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    place.seawall(&["init", "--block", place.pool(), "--size", "16M"]).succeeds();
    let mut writer = Writer::start(&place);
    writer.write(10);
    assert_eq!(file(&place)["live"], true);
    freeze(&place, &[]).succeeds();
    writer.write(5);
    common::kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    assert!(!place.guard().exists());
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!((&report["live"], &report["files"]), (&0.into(), &Value::Array(Vec::new())), "{report}");
    assert_eq!(Writer::found(&place), 15);
}
