//! Limits that a container or an administrator sets: commands say in plain words what does not fit them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use crate::common::{Place, SEAWALL, Said, has, is_root, wait_for};
use seawall_daemon::process::now_ns;
use seawall_media::Region;
use seawall_wire::shm::Shm;

const RUN: [&str; 4] = ["--preset", "sqlite", "--data", "."];
const WRITE: [&str; 7] =
    ["dd", "if=/dev/zero", "of=x-wal", "bs=4096", "count=2", "oflag=dsync", "status=none"];

fn limited(place: &Place, limit: &str) -> Said {
    let mut command = Command::new("prlimit");
    command.args([limit, SEAWALL, "run", "--pool", place.pool()]).args(RUN).arg("--").args(WRITE);
    command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs").into()
}

#[test]
fn a_limit_that_is_too_small_is_named() {
    if !has("prlimit") {
        return;
    }
    let place = Place::new();
    let begin = Instant::now();
    limited(&place, "--nofile=12:12").fails(125, &["open files", "is 12", "needs 64"]);
    limited(&place, "--as=62914560:62914560").fails(125, &["address space", "is 62914560", "raise it"]);
    assert!(begin.elapsed() < Duration::from_secs(10), "nobody waits for a daemon that is none");
    limited(&place, "--nofile=64:64").succeeds();
    // Room for an arena of the C library, and for a moment not for a thread beside it: one start in three failed.
    (0..8).for_each(|_| {
        limited(&place, "--as=268435456:268435456").succeeds();
    });
    limited(&place, "--memlock=0:0").succeeds();
}

/// Such a file's writer gets a signal, unless it wants to hear of it.
#[test]
fn a_limit_on_the_length_of_files_is_named_and_ends_nobody() {
    if !has("prlimit") {
        return;
    }
    let place = Place::new();
    let says = ["ulimit -f is 1024 KiB", "raise the limit"];
    limited(&place, "--fsize=1048576:1048576").fails(125, &says);
    let log = place.file("log");
    let with = |words: &[&str]| {
        let mut command = Command::new("prlimit");
        command.arg("--fsize=1048576:1048576").arg(SEAWALL).args(words);
        Said::from(command.env_remove("LD_PRELOAD").output().expect("runs"))
    };
    let log = log.to_str().expect("text");
    with(&["init", "--block", log, "--size", "64M"]).fails(1, &says);
    let memory = place.ram("another");
    with(&["init", &memory, "--size", "64M", "--emulated"]).fails(1, &says);
    assert!(!Path::new(log).exists() && !Path::new(&memory).exists(), "nothing is left");
}

/// The kernel still judges what the command itself does: the signal ends it.
#[test]
fn a_command_hears_of_a_long_file_as_ever() {
    let place = Place::new();
    let script = "ulimit -f 8; exec dd if=/dev/zero of=x-plain bs=4096 count=20 status=none";
    assert_eq!(place.run(&["sh", "-c", script]).code, Some(128 + 25), "SIGXFSZ");
}

/// No /proc at all, as in some containers.
#[test]
fn a_missing_proc_is_named_and_nothing_hangs() {
    if !is_root() || !has("unshare") {
        return;
    }
    let place = Place::new();
    let (backing, at) = (place.file("backing"), place.file("mount"));
    [&backing, &at].iter().for_each(|dir| fs::create_dir(dir).expect("made"));
    let without = |words: &[&str]| {
        let script = "mount -t tmpfs none /proc && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", SEAWALL]).args(words);
        Said::from(command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs"))
    };
    let pool = ["--pool", place.pool(), "--emulated", "--size", "16M"];
    let begin = Instant::now();
    without(&[&["run"][..], &pool, &RUN, &["--"], &WRITE].concat()).fails(125, &["Is /proc mounted?"]);
    let paths = [backing.to_str().expect("text"), at.to_str().expect("text")];
    without(&[&["mount"][..], &pool, &["--preset", "sqlite"], &paths].concat())
        .fails(1, &["Is /proc mounted?"]);
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_run_time_directory_whose_name_is_too_long_is_passed_over() {
    let place = Place::new();
    let long = place.file(&"x".repeat(150));
    fs::create_dir(&long).expect("made");
    let with = |words: &[&str]| {
        let mut command = place.command(words);
        Said::from(command.env("XDG_RUNTIME_DIR", &long).output().expect("runs"))
    };
    let run = ["run", "--pool", place.pool()];
    let said = with(&[&run[..], &RUN, &["--"], &WRITE].concat());
    said.succeeds();
    assert!(!said.err.contains("not active"), "{}", said.err);
    let status = format!("{SEAWALL} status --json --pool {} > status.json", place.pool());
    let both = format!("{}; {status}", WRITE.join(" "));
    with(&[&run[..], &RUN, &["--", "sh", "-c", &both]].concat()).succeeds();
    let status: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.file("status.json")).expect("asked")).expect("JSON");
    assert!(status["files"][0]["writes"].as_u64() > Some(0), "it was served: {status}");
}

#[test]
fn a_container_without_a_writable_directory_but_memory_is_served() {
    if !is_root() || !has("unshare") {
        return;
    }
    let place = Place::new();
    let script = r#"
        mount --bind "$PWD" "$PWD" && cd "$PWD"
        mount -o remount,ro,bind / && mount -t tmpfs -o ro none /run && mount -t tmpfs -o ro none /tmp || exit 77
        exec "$@"
    "#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", SEAWALL, "run", "--pool"]);
    command.arg(place.pool()).args(RUN).arg("--").args(WRITE);
    let said =
        Said::from(command.current_dir(place.data.path()).env_remove("LD_PRELOAD").output().expect("runs"));
    if said.code != Some(77) {
        said.succeeds();
        assert!(!said.err.contains("not active"), "{}", said.err);
    }
}

/// As many slots of a pool's run-time memory as are free, taken in the name of this process; given back at the end.
struct Taken {
    shm: Shm,
    slots: Vec<u32>,
}

impl Taken {
    fn all(place: &Place) -> Self {
        let memory = place.in_memory();
        let path =
            memory.iter().find(|path| path.extension().is_some_and(|end| end == "rt")).expect("it is there");
        let file = File::options().read(true).write(true).open(path).expect("open");
        let len = file.metadata().expect("stat").len();
        let shm = Shm::open(Region::map(&file, len, false).expect("a mapping")).expect("run-time memory");
        let is_ours = |i: &u32| {
            let client = shm.client(*i).expect("a slot");
            let is_free = client.pid().compare_exchange(0, std::process::id(), SeqCst, SeqCst).is_ok();
            if is_free {
                client.since().store(now_ns(), SeqCst);
            }
            is_free
        };
        let slots = (0..shm.shape().clients).filter(is_ours).collect();
        Self { shm, slots }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let client = |i: &u32| self.shm.client(*i).expect("a slot");
        self.slots.iter().for_each(|i| client(i).pid().store(0, SeqCst));
    }
}

/// It is no silent bypass: a process that nobody could tell from others is refused, and the next one is not.
// Holds: internals/SEMANTICS#errors
#[test]
fn a_process_too_many_gets_an_error_for_managed_files_and_says_why() {
    let place = Place::new();
    let body = format!(
        "touch started; read go; {} 2>dd; echo $? >code; read go; {}",
        WRITE.join(" "),
        WRITE.join(" ")
    );
    let mut run = place.run_command(&["sh", "-c", &body]);
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("seawall starts");
    wait_for("the program", || place.file("started").exists());
    let taken = Taken::all(&place);
    assert!(taken.slots.len() > 4000, "{}", taken.slots.len());
    let mut go = run.stdin.take().expect("piped");
    go.write_all(b"\n").expect("it lives");
    let told = || fs::read_to_string(place.file("code")).unwrap_or_default();
    wait_for("the first write", || told().ends_with('\n'));
    assert_ne!(told(), "0\n");
    let said = fs::read_to_string(place.file("dd")).expect("text");
    assert!(said.contains("too many processes") && said.contains("Input/output error"), "{said}");
    drop(taken);
    go.write_all(b"\n").expect("it lives");
    drop(go);
    Said::from(run.wait_with_output().expect("it ends")).succeeds();
    assert_eq!(fs::read(place.file("x-wal")).expect("read"), [0; 8192]);
}
