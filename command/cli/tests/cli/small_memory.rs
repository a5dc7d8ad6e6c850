//! A container's memory: /dev/shm of 64 MB. Everything made fits, a failure leaves nothing behind, no error lasts.

use std::fs;
use std::process::Command;

use crate::common::{Place, SEAWALL, Said, Writer, has, is_root, kill_everything};

/// `run` of a program that writes and syncs `x-wal` in $D/s, with a /dev/shm of its own.
const HEAD: &str = r#"
set -e
S=$1 D=$2
export SEAWALL_NOTES=$D/notes
mount -t tmpfs -o size=64m tmpfs /dev/shm
mkdir -p $D/s
run() { $S run "$@" --preset sqlite --data $D/s -- dd if=/dev/zero of=$D/s/x-wal bs=4096 count=4 oflag=dsync status=none; }
left() { ls -A /dev/shm | grep -v filler || true; }
used() { df --output=used /dev/shm | tail -1; }
"#;

fn in_a_container(script: &str) -> Option<(Place, Said)> {
    if !is_root() || !has("unshare") {
        return None;
    }
    let place = Place::bare();
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &format!("{HEAD}{script}"),
        "sh",
        SEAWALL,
    ]);
    let said = command.arg(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs").into();
    Some((place, said))
}

#[test]
fn a_log_beside_the_data_is_as_large_as_there_is_room_in_memory() {
    let Some((place, said)) = in_a_container("run; left; run --emulated; ls /dev/shm") else { return };
    said.succeeds().says(&["a log of 32 MiB, as /dev/shm has only 64 MiB free", "--shm-size", "--size"]);
    assert_eq!(said.out.trim(), "seawall-0.pool", "of the first run nothing is left");
    assert!(place.file("s.seawall").exists());
    let whole =
        place.seawall(&["inspect", place.file("s.seawall").to_str().expect("a path"), "--json"]).json();
    assert_eq!(whole["size"], 32 << 20);
}

// Holds: admin/RUN#the-log
#[test]
fn a_log_that_does_not_fit_says_what_to_do_and_that_works() {
    let script = r#"
        $S init --block $D/s.seawall --size 128M >/dev/null
        for i in 1 2; do run 2>$D/first && exit 9; left; done
        run --size 32M 2>$D/second
        left
        run 2>$D/third
    "#;
    let Some((place, said)) = in_a_container(script) else { return };
    said.succeeds();
    assert_eq!(said.out.trim(), "", "nothing is left behind");
    let text = |name: &str| fs::read_to_string(place.file(name)).expect("written");
    let first = text("first");
    assert!(first.contains("/dev/shm has no room") && first.contains("--size"), "{first}");
    assert!(
        text("second").contains("is empty: making it again, with 32 MiB instead of 128 MiB"),
        "{}",
        text("second")
    );
    assert!(!text("third").contains("making it again"), "{}", text("third"));
}

#[test]
fn a_start_that_fails_for_want_of_memory_leaves_nothing() {
    let script = r#"
        $S init $D/disk.pool --emulated --size 16M >/dev/null
        dd if=/dev/zero of=/dev/shm/filler bs=1M count=100 status=none 2>/dev/null || true
        for i in 1 2 3; do run --emulated --pool $D/disk.pool 2>$D/full && exit 9; left; done
        rm /dev/shm/filler
        run --emulated --pool $D/disk.pool
    "#;
    let Some((place, said)) = in_a_container(script) else { return };
    said.succeeds();
    assert_eq!(said.out.trim(), "", "nothing is left behind");
    let full = fs::read_to_string(place.file("full")).expect("written");
    assert!(full.contains("run-time memory /dev/shm/") && full.contains("--shm-size"), "{full}");
}

/// Whoever starts next needs the room. 64 MiB, of which a log takes 44: the test sees what is still there, if only for
/// a moment.
#[test]
fn what_has_ended_has_given_its_memory_back() {
    let script = r#"
        for i in 1 2 3; do
            run 2>/dev/null; used
            $S daemon --keep --pool $D/s.seawall &
            until $S status --pool $D/s.seawall | grep -q '^daemon *pid'; do sleep 0.05; done
            $S stop --pool $D/s.seawall >/dev/null; used; wait
        done
    "#;
    let Some((_place, said)) = in_a_container(script) else { return };
    let used: Vec<_> = said.out.split_whitespace().map(str::to_owned).collect();
    assert_eq!(used, ["0"; 6], "{}", said.err);
    said.succeeds();
}

/// A log's contents count more than its size.
#[test]
fn a_log_that_holds_something_is_not_made_anew() {
    let mut place = Place::bare();
    place.pool = place.file("b.log");
    let log = place.pool().to_owned();
    place.seawall(&["init", "--block", &log, "--size", "16M"]).succeeds();
    let mut writer = Writer::start(&place);
    writer.write(20);
    kill_everything(&place, writer);
    let run = |size: &str| {
        place.seawall(&[
            "run", "--block", &log, "--size", size, "--preset", "sqlite", "--data", ".", "--", "true",
        ])
    };
    run("32M").succeeds().says(&["b.log already has 16 MiB: --size is only for a new log"]);
    assert_eq!(Writer::found(&place), 20);
    run("32M").succeeds().says(&["b.log is empty: making it again, with 32 MiB instead of 16 MiB"]);
    assert!(!run("32M").succeeds().err.contains("making it again"));
}
