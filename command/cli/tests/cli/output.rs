//! Nobody reads any more, or nothing can be written: every command does its work, and none panics.

use crate::common;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, pipe};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Place, SEAWALL, Said, wait_for};

/// A command for every sub-command, in this order: `{pool}`, `{new}`, `{data}`, `{repo}` are filled in. Some fail, and say
/// why; none may panic.
const COMMANDS: &[&str] = &[
    "init {new} --size 16M --emulated",
    "keeper serve {data}/keeper --listen nowhere",
    "keeper status 127.0.0.1:1 --json",
    "keeper cert ca {data}/ca",
    "keeper cert owner {data}/ca db1",
    "keeper cert keeper {data}/ca k1 127.0.0.1",
    "keeper cert show {data}/ca/keeper-k1",
    "run --quiet --emulated --pool {pool} --preset sqlite --data {data} -- true",
    "attach no-such-service",
    "detach no-such-service",
    "status --pool {pool}",
    "status --pool {pool} --json",
    "drain --pool {pool}",
    "recover --pool {pool}",
    "recover --pool {pool} --json",
    "recover --abandon {data}",
    "takeover {pool}",
    "takeover {data}/none --keeper 127.0.0.1:1 --dry-run --json",
    "freeze {data} -- true",
    "thaw {data}",
    "guard {data}",
    "mirror {data}/log --pool {pool}",
    "inspect {pool}",
    "inspect {pool} --json",
    "twin status --state {data}",
    "doctor /dev/shm",
    "doctor --json",
    "provision",
    "provision region99",
    "provision list --json",
    "layout status",
    "layout plan x /dev/null --mount /x",
    "tier",
    "tier --json",
    "tier where 1",
    "tune postgres --pool {pool}",
    "mount {data} {data}",
    "disk {data}/none.img --socket {data}/none.sock",
    "umount {data}",
    "verify {pool}",
    "cache list --pool {pool}",
    "stop --pool {pool}",
    "snap --pool {pool} --repo {repo}",
    "snap --pool {pool} --repo {repo}",
    "snaps --repo {repo}",
    "report first last --repo {repo}",
    "compare a b --repo {repo}",
    "top --pool {pool} -n 1",
    "metrics --pool {pool} --listen nowhere",
    "lab list",
    "help",
    "run --help",
];

/// Where a stream leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sink {
    Closed,
    NoReader,
    OneLine,
    Full,
}

fn words(place: &Place, command: &str) -> Vec<String> {
    let fill = |word: &str| {
        let data = place.data.path().display().to_string();
        word.replace("{pool}", place.pool())
            .replace("{new}", &place.ram("new.pool"))
            .replace("{repo}", &place.file("snapshots.db").display().to_string())
            .replace("{data}", &data)
    };
    command.split(' ').map(fill).collect()
}

/// Runs it with standard output, or standard error, leading there.
fn run(place: &Place, words: &[String], sink: Sink, is_error: bool) -> Said {
    let mut command = match sink {
        Sink::Closed => {
            let mut sh = Command::new("sh");
            let close = if is_error { "exec \"$@\" 2>&-" } else { "exec \"$@\" >&-" };
            sh.args(["-c", close, "sh", SEAWALL]).args(words);
            sh
        }
        _ => {
            let mut command = Command::new(SEAWALL);
            command.args(words);
            command
        }
    };
    let mut lines = None;
    let stdio = match sink {
        Sink::Closed => Stdio::null(),
        Sink::Full => OpenOptions::new().write(true).open("/dev/full").expect("it is there").into(),
        Sink::NoReader | Sink::OneLine => {
            let (reader, writer) = pipe().expect("a pipe");
            lines = (sink == Sink::OneLine).then_some(reader);
            writer.into()
        }
    };
    let (mut said, error) = pipe().expect("a pipe");
    let (stdout, stderr) = if is_error { (error.into(), stdio) } else { (stdio, Stdio::from(error)) };
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).current_dir(place.data.path());
    let mut child = command.env_remove("LD_PRELOAD").spawn().expect("seawall starts");
    drop(command);
    if let Some(reader) = lines {
        let _ = BufReader::new(reader).read_line(&mut String::new());
    }
    let mut code = None;
    wait_for("the command", || {
        code = child.try_wait().expect("waited");
        code.is_some()
    });
    // A daemon that it started may hold the other end.
    std::thread::sleep(Duration::from_millis(1));
    rustix::io::ioctl_fionbio(&said, true).expect("set");
    let mut bytes = Vec::new();
    let _ = said.read_to_end(&mut bytes);
    Said {
        code: code.and_then(|code| code.code()),
        out: String::new(),
        err: String::from_utf8_lossy(&bytes).into(),
    }
}

#[test]
fn no_command_panics_where_nobody_reads() {
    let place = Place::new();
    for sink in [Sink::Closed, Sink::NoReader, Sink::OneLine, Sink::Full] {
        for is_error in [false, true] {
            for command in COMMANDS {
                let said = run(&place, &words(&place, command), sink, is_error);
                let what = format!("{sink:?} {is_error} {command}: {:?} {}", said.code, said.err);
                assert!(!said.err.contains("panicked"), "{what}");
                // A panic ends in SIGABRT; SIGPIPE ends those that only print.
                let by_signal = said.code.is_none();
                assert!(!by_signal || matches!(sink, Sink::NoReader | Sink::OneLine), "{what}");
            }
            let _ = std::fs::remove_file(place.ram("new.pool"));
        }
    }
}

#[test]
fn every_command_is_tried() {
    let place = Place::new();
    let help = place.seawall(&["--help"]);
    let listed =
        help.out.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for name in listed.filter_map(|line| line.split_whitespace().next()) {
        assert!(
            COMMANDS.iter().any(|command| command.split(' ').next() == Some(name)),
            "{name} is not tried"
        );
    }
}

#[test]
fn what_cannot_be_printed_is_a_failure_and_what_was_to_be_done_is_done() {
    let place = Place::new();
    let said = run(&place, &words(&place, "status --pool {pool} --json"), Sink::Full, false);
    said.fails(1, &["cannot write to standard output", "No space left"]);
    // Work is not cut short by a reader who has left.
    let said = run(&place, &words(&place, "init {new} --size 16M --emulated"), Sink::NoReader, false);
    said.succeeds();
    assert!(File::open(place.ram("new.pool")).is_ok());
    let mut writer = common::Writer::start(&place);
    writer.write(20);
    common::kill_everything(&place, writer);
    run(&place, &words(&place, "recover --pool {pool}"), Sink::NoReader, false).succeeds();
    assert!(!place.guard().exists(), "recovered, guards and all");
}

/// What takes a size, or a time.
const WITH_SIZES: [&str; 8] = [
    "init {new} --emulated --size {n}",
    "init --block {data}/big.log --size {n}",
    "init {new} --emulated --size 16M --spill {data}/s --spill-size {n}",
    "run --emulated --pool {new} --size {n} --preset sqlite --data {data} -- true",
    "run --block {data}/b.log --size {n} --preset sqlite --data {data} -- true",
    "run --pool {pool} --cache {n} --preset sqlite --data {data} -- true",
    "run --pool {pool} --cache 16M --cache-max {n} --preset sqlite --data {data} -- true",
    "cache resize {n} --pool {pool}",
];
const WITH_TIMES: [&str; 3] = [
    "snap --pool {pool} --repo {repo} --every {n}",
    "snap --pool {pool} --repo {repo} --every 1s --for {n}",
    "snaps prune --repo {repo} --keep {n}",
];

/// Numbers at the end of what can be written down.
#[test]
fn no_number_overflows() {
    let place = Place::new();
    let try_it = |command: &str, number: &str| {
        let words = words(&place, &command.replace("{n}", number));
        let said = place.seawall(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let _ = std::fs::remove_file(place.ram("new.pool"));
        assert!(said.code.is_some(), "{command} {number}: ended by a signal: {}", said.err);
        said.says(&[]);
        said
    };
    for size in ["16777215T", "8388608T", "129T", "99999999999T", "18446744073709551615"] {
        for command in WITH_SIZES {
            let said = try_it(command, size);
            assert_ne!(said.code, Some(0), "{command} {size}");
        }
    }
    for size in ["0", "1"] {
        for command in WITH_SIZES {
            try_it(command, size);
        }
    }
    for time in ["213503982334601d", "18446744073709551615s", "0"] {
        for command in WITH_TIMES {
            try_it(command, time).fails(2, &["not a duration"]);
        }
    }
}
