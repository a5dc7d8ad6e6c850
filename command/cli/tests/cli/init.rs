//! The first process of a container: orphans are reaped, signals and exit codes pass, the end is orderly.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Place, SEAWALL, Said, has, is_root};

/// As the first process of a process-id namespace. `None` where that cannot be had.
fn first(place: &Place, options: &[&str], script: &str) -> Option<Said> {
    if !is_root() || !has("unshare") {
        return None;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", SEAWALL])
        .args(run(place, options, script));
    Some(command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs").into())
}

fn run<'a>(place: &'a Place, options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let all = ["run", "--quiet", "--pool", place.pool(), "--preset", "sqlite", "--data", "."];
    [&all[..], options, &["--", "sh", "-c", script]].concat()
}

/// Twenty processes whose parents are gone, ended; then a child of this process's parent that is a zombie is counted.
const ORPHANS: &str = r#"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sleep 0.1 &); done
sleep 0.6
for f in /proc/[0-9]*/status; do
    grep -q "^State:.Z" $f 2>/dev/null && grep -q "^PPid:.$PPID$" $f && echo zombie
done
# -q: others end between the list and the look, which alone would be a failure.
grep -qs "^PPid:.$PPID$" /proc/[0-9]*/status && echo counted
exit 7
"#;

#[test]
fn orphans_are_reaped_and_the_exit_code_is_the_commands() {
    let place = Place::new();
    let Some(said) = first(&place, &[], ORPHANS) else { return };
    said.fails(7, &[]);
    assert_eq!(said.out, "counted\n");
    assert_eq!(first(&place, &[], "kill -9 $$").expect("as before").code, Some(128 + 9));
}

#[test]
fn init_takes_orphans_where_another_process_is_the_first() {
    let place = Place::new();
    // They are its children, and none of the first process's.
    let theirs =
        "(sleep 0.5 & echo $! > pid); sleep 0.1; grep \"^PPid:.$PPID$\" /proc/$(cat pid)/status > parent";
    place.seawall(&run(&place, &["--init"], theirs)).succeeds();
    let said = place.seawall(&run(&place, &["--init"], ORPHANS));
    said.fails(7, &[]);
    assert_eq!(said.out, "counted\n");
}

/// The first process has no default actions: what nobody hands on is lost.
#[test]
fn every_signal_reaches_the_command() {
    let place = Place::new();
    let script = r#"
        for s in HUP INT QUIT USR1 USR2 TERM WINCH CONT URG ALRM PIPE 40 64; do trap "echo $s; came=$s" $s; done
        for s in HUP INT QUIT USR1 USR2 TERM WINCH CONT URG ALRM PIPE 40 64; do
            kill -$s $PPID; n=0
            until [ "$came" = $s ] || [ $n = 1000 ]; do sleep 0.01; n=$((n + 1)); done
        done
        exit 0
    "#;
    let expected = "HUP INT QUIT USR1 USR2 TERM WINCH CONT URG ALRM PIPE 40 64";
    let said = place.seawall(&run(&place, &["--init"], script));
    said.succeeds();
    assert_eq!(said.out.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    if let Some(said) = first(&place, &[], script) {
        assert_eq!(said.succeeds().out.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }
}

/// The kernel ends everybody with the first process, so that one first asks whoever uses the log to end, and closes it.
// Holds: admin/RUN#as-the-first-process-of-a-container
#[test]
fn what_the_command_leaves_behind_ends_before_the_container_does() {
    let place = Place::new();
    let script = r#"
        mkfifo fifo
        dd of=x-wal bs=4096 iflag=fullblock oflag=dsync status=none < fifo &
        (dd if=/dev/zero bs=4096 count=3 status=none; sleep 60) > fifo &
        sleep 0.5
        exit 3
    "#;
    let begin = Instant::now();
    let Some(said) = first(&place, &[], script) else { return };
    said.fails(3, &[]);
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert!(!place.guard().exists(), "closed, guards down");
    let inspected = place.seawall(&["inspect", place.pool(), "--json"]).json();
    assert_eq!(inspected["live"], 0);
    assert_eq!(std::fs::metadata(place.file("x-wal")).expect("written").len(), 3 * 4096);
}
