//! Nobody waits for a process that is busy, or stopped.

use crate::common;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::common::cluster;
use crate::common::mounts::Mounts;
use crate::common::{Place, Said, Writer, has, kill, kill_everything, signal, wait_for, wait_for_end};

/// Processes that run now and then and have much open: to look at each of them takes long.
struct Busy(Vec<Child>);

impl Busy {
    /// `None` without Perl.
    fn start(processes: usize) -> Option<Self> {
        let body = "my @open; while (@open < 3000 && open(my $one, '<', '/dev/null')) { push @open, $one } \
                    $| = 1; print '.'; select(undef, undef, undef, 0.3) while 1;";
        let one = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -n $(ulimit -Hn); exec perl -e \"$0\"", body]);
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("perl starts")
        };
        let mut all = Self(has("perl").then(|| (0..processes).map(one).collect())?);
        for child in &mut all.0 {
            child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it has opened them");
        }
        Some(all)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A look at them all takes seconds, and after it the thread that looks pauses for some times as long.
#[test]
fn a_daemon_beside_busy_processes_ends_at_once_and_the_next_starts_at_once() {
    let Some(_busy) = Busy::start(250) else { return eprintln!("skipped: needs perl") };
    let place = Place::new();
    let mut writer = Writer::start_less_privileged(&place);
    writer.write(5);
    let status = place.status();
    assert_eq!(status["watch"].as_str(), Some("inotify"), "{status}");
    let daemon = status["daemon_pid"].as_u64().expect("a daemon");
    // An open, so that it looks. It has to be at it.
    drop(std::fs::File::open(place.file("x-wal")).expect("open"));
    std::thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    writer.finish().succeeds();
    wait_for_end(daemon);
    println!("ended after {:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(1), "the daemon ended after {:?}", begin.elapsed());
    let begin = Instant::now();
    place.run(&["true"]).succeeds();
    assert!(begin.elapsed() < Duration::from_secs(2), "the next one ran after {:?}", begin.elapsed());
}

/// A daemon that is stopped until this is dropped.
struct Still(u64);

impl Still {
    fn new(daemon: u64) -> Self {
        signal(daemon, "STOP");
        Self(daemon)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

/// Where a file of this name lies.
type Path = fn(&str) -> String;

/// A program that writes a file for each name that it is sent, syncs it, and says how many milliseconds that took.
struct Program {
    run: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Program {
    const BODY: &str = "use IO::Handle; use Time::HiRes 'time'; $| = 1;
        while (<STDIN>) {
            chomp; my $begin = time;
            open(my $f, '+>', $_) or die $!; syswrite($f, $_ x 1000) or die $!; $f->sync or die $!;
            printf \"%d\\n\", (time - $begin) * 1000;
        }";

    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut run = command.spawn().expect("it starts");
        let said = BufReader::new(run.stdout.take().expect("piped"));
        Self { run, said }
    }

    /// Milliseconds.
    fn write(&mut self, name: &str) -> u64 {
        writeln!(self.run.stdin.as_mut().expect("piped"), "{name}").expect("it lives");
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it lives");
        line.trim().parse().expect("a number")
    }

    /// Writes ten new files while the daemon is stopped. Returns how many milliseconds they took in all.
    fn writes_on(&mut self, daemon: u64, path: Path) -> u64 {
        let still = Still::new(daemon);
        let took: Vec<u64> = (b'0'..=b'9').map(|i| self.write(&path(&char::from(i).to_string()))).collect();
        drop(still);
        println!("{took:?}");
        took.iter().sum()
    }

    fn end(mut self) {
        drop(self.run.stdin.take());
        assert!(self.run.wait().expect("it ends").success());
    }
}

fn less_privileged(run: Command) -> Command {
    if !common::is_root() {
        return run;
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    command.arg(run.get_program()).args(run.get_args()).env_remove("LD_PRELOAD");
    command.current_dir(run.get_current_dir().expect("a directory"));
    command
}

fn is_managed(place: &Place, name: &str) -> bool {
    let status = place.status();
    let files = status["files"].as_array().expect("files");
    files.iter().any(|file| file["path"].as_str().is_some_and(|path| path.ends_with(name)))
}

/// All that its process waits is one second, whatever it opens; what it cannot have managed it syncs.
// Holds: K3
#[test]
fn a_stopped_daemon_costs_a_process_one_second() {
    if !has("perl") {
        return eprintln!("skipped: needs perl");
    }
    // A file that is to be in the log from its first write on waits for a daemon that died; for this one no more than
    // others do.
    let sides: [(_, _, _, Path); 2] = [
        (Place::new(), "sqlite", "tail", |name| format!("{name}-wal")),
        (cluster::place().expect("perl"), "postgres", "atomic", |name| {
            format!("base/5/1{}", name.bytes().map(|byte| byte.to_string()).collect::<String>())
        }),
    ];
    for (place, preset, policy, path) in sides {
        let mut run = place.command(&["run", "--pool", place.pool(), "--preset", preset, "--data", "."]);
        run.args(["--policy", policy, "--", "perl", "-e", Program::BODY]);
        let mut program = Program::start(less_privileged(run));
        program.write(&path("a"));
        assert!(is_managed(&place, &path("a")));
        let daemon = place.daemon().expect("a daemon");
        let sum = program.writes_on(daemon, path);
        assert!(sum < 2000, "{policy}: {sum} ms in all");
        wait_for("the process to hear it again", || {
            program.write(&path("b"));
            is_managed(&place, &path("b"))
        });
        program.end();
    }
}

// Holds: K3
#[test]
fn a_stopped_daemon_costs_a_mount_one_second() {
    let Some(m) = Mounts::new().filter(|_| has("perl")) else { return };
    m.mount();
    let mut perl = Command::new("perl");
    perl.args(["-e", Program::BODY]).current_dir(m.place.file("at"));
    let mut program = Program::start(perl);
    program.write("before-wal");
    let daemon = m.place.daemon().expect("a daemon");
    let sum = program.writes_on(daemon, |name| format!("{name}-wal"));
    assert!(sum < 2000, "{sum} ms in all");
    wait_for("the mount to hear it again", || {
        program.write("after-wal");
        is_managed(&m.place, "after-wal")
    });
    program.end();
    m.umount().succeeds();
}

/// A shell under `run`, each of whose commands is a process of its own.
struct Shell {
    run: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Shell {
    fn start(run: Command) -> Self {
        let Program { run, said } = Program::start(run);
        Self { run, said }
    }

    /// Runs it; how long that took.
    fn does(&mut self, command: &str) -> Duration {
        let begin = Instant::now();
        writeln!(self.run.stdin.as_mut().expect("piped"), "{command} && echo done || echo failed")
            .expect("it lives");
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it lives");
        assert_eq!(line, "done\n", "{command}");
        begin.elapsed()
    }
}

fn file(place: &Place, name: &str) -> serde_json::Value {
    let status = place.status();
    cluster::file(&status, name).unwrap_or_else(|| panic!("{name} is not managed: {status}")).clone()
}

/// The daemon's log.
fn log(place: &Place) -> String {
    let status = place.status();
    fs::read_to_string(status["log"].as_str().expect("a path")).expect("a log")
}

const OVERWRITE: &str = "dd if=/dev/zero of=a-wal bs=4096 count=4 conv=notrunc oflag=dsync status=none";

/// Its watchdog gives them what the daemon would: they go on in the log.
// Holds: K3
#[test]
fn processes_that_start_while_the_daemon_is_stopped_are_in_the_log() {
    for less in [false, true] {
        let place = Place::new();
        let run = place.run_command(&["sh"]);
        let mut shell = Shell::start(if less { less_privileged(run) } else { run });
        shell.does(OVERWRITE);
        let written = |place: &Place| file(place, "a-wal")["absorbed"].as_u64().expect("a number");
        let before = written(&place);
        let still = Still::new(place.daemon().expect("a daemon"));
        let took: Duration = (0..5).map(|_| shell.does(OVERWRITE)).sum();
        println!("{took:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
        place.run(&["true"]).fails(125, &["is stopped", "kill -CONT"]);
        drop(still);
        assert!(written(&place) >= before + 15, "{before} {}", written(&place));
        drop(shell.run.stdin.take());
        assert!(shell.run.wait().expect("it ends").success());
    }
}

/// Where a block lies that is in the log: the first one is synced.
const LOGGED: u64 = 3 * 4096;

fn overwrite(place: &Place, name: &str) -> File {
    let begin = Instant::now();
    let file = File::options().write(true).open(place.file(name)).expect("open");
    assert!(begin.elapsed() < Duration::from_secs(2), "the open took {:?}", begin.elapsed());
    file.write_all_at(&[0xee; 4096], LOGGED).expect("written");
    file.sync_all().expect("synced");
    file
}

/// The daemon catches up when it goes on.
// Holds: K3
#[test]
fn who_opens_a_file_while_the_daemon_is_stopped_is_seen_afterwards() {
    for less in [false, true] {
        let place = Place::new();
        let mut writer = if less { Writer::start_less_privileged(&place) } else { Writer::start(&place) };
        writer.write(5);
        let still = Still::new(place.daemon().expect("a daemon"));
        let stranger = overwrite(&place, "x-wal");
        writer.write(5);
        drop(still);
        let is_out = |place: &Place| file(place, "x-wal")["flags"].to_string().contains("foreign");
        wait_for("the daemon to see the stranger", || is_out(&place));
        drop(stranger);
        wait_for("the daemon to let the file back", || !is_out(&place));
        writer.write(5);
        writer.finish().succeeds();
    }
}

/// As after a power cut: what is left in the log is replayed.
fn replayed(place: &Place) -> (u8, Said) {
    let said = place.seawall(&["recover", "--replay", "--pool", place.pool()]);
    let mut byte = [0];
    File::open(place.file("x-wal")).expect("the file").read_exact_at(&mut byte, LOGGED).expect("read");
    (byte[0], said)
}

/// The file has left the log before the open returns, as if the daemon had been at work.
// Holds: K3
#[test]
fn what_a_stranger_synced_while_the_daemon_was_stopped_is_not_rolled_back() {
    if !common::is_root() {
        return eprintln!("skipped: an open waits for the daemon of root only");
    }
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
    kill(writer.run.id().into());
    signal(daemon, "STOP");
    drop(overwrite(&place, "x-wal"));
    kill(daemon);
    kill(program.into());
    writer.run.wait().expect("reaped");
    wait_for_end(program.into());
    wait_for_end(daemon);
    let (byte, said) = replayed(&place);
    said.succeeds();
    assert_eq!(byte, 0xee, "{}", said.out);
}

/// Where it is heard of afterwards: once the daemon has gone on.
// Holds: K3
#[test]
fn what_a_stranger_synced_and_left_is_safe_when_the_daemon_goes_on() {
    let place = Place::new();
    let mut writer = Writer::start_less_privileged(&place);
    writer.write(5);
    let still = Still::new(place.daemon().expect("a daemon"));
    drop(overwrite(&place, "x-wal"));
    std::thread::sleep(Duration::from_secs(1));
    drop(still);
    wait_for("the daemon to catch up", || log(&place).contains("caught up"));
    kill_everything(&place, writer);
    let (byte, said) = replayed(&place);
    said.succeeds();
    assert_eq!(byte, 0xee, "{}", said.out);
}

/// A control group of a test's own.
struct Group {
    dir: std::path::PathBuf,
    /// The file that freezes it, and what is written there to freeze it and to let it go on.
    state: (&'static str, &'static str, &'static str),
}

impl Group {
    /// `None` where none can be made that can be frozen.
    fn new() -> Option<Self> {
        let kinds = [
            ("/sys/fs/cgroup/freezer", ("freezer.state", "FROZEN", "THAWED")),
            ("/sys/fs/cgroup", ("cgroup.freeze", "1", "0")),
        ];
        kinds.into_iter().find_map(|(root, state)| {
            let dir = std::path::Path::new(root).join(format!("seawall-test-{}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            let group = Self { dir, state };
            group.dir.join(state.0).exists().then_some(group)
        })
    }

    /// The same command, in this group.
    fn command(&self, of: &Command) -> Command {
        let mut command = Command::new("sh");
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.dir.display());
        command.args(["-c", &enter, "sh"]).arg(of.get_program()).args(of.get_args());
        if let Some(dir) = of.get_current_dir() {
            command.current_dir(dir);
        }
        for (name, value) in of.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn is_frozen(&self) -> bool {
        let said = |file: &str, what: &str| {
            fs::read_to_string(self.dir.join(file)).is_ok_and(|text| text.contains(what))
        };
        said("freezer.state", "FROZEN") || said("cgroup.events", "frozen 1")
    }

    fn say(&self, what: &str) {
        fs::write(self.dir.join(self.state.0), what).expect("its state");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.dir.join(self.state.0), self.state.2);
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The daemon, `seawall run` and the database are frozen all together, as `docker pause` or `systemctl freeze` does it.
// Holds: K3
#[test]
fn no_open_waits_for_a_daemon_whose_control_group_is_frozen() {
    let Some(group) = common::is_root().then(Group::new).flatten() else {
        return eprintln!("skipped: needs root, and a control group that can be frozen");
    };
    let place = Place::new();
    let mut writer = Writer::start_by(&place, group.command(&place.run_command(&Writer::PROGRAM)));
    writer.write(5);
    let daemon = place.daemon().expect("a daemon");
    wait_for("the watchdog to be there", || {
        fs::read_to_string(group.dir.join("cgroup.procs")).is_ok_and(|pids| {
            let names =
                pids.lines().map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default());
            pids.lines().any(|pid| pid == daemon.to_string())
                && !names.into_iter().any(|name| name.contains("-watch"))
        })
    });
    group.say(group.state.1);
    wait_for("all of them to be frozen", || group.is_frozen());
    let begin = Instant::now();
    drop(overwrite(&place, "x-wal"));
    let took = begin.elapsed();
    group.say(group.state.2);
    println!("{took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    writer.write(5);
    writer.finish().succeeds();
}

/// It is stopped at any moment: before it has read of an open, and before it has answered. Nobody waits for longer than the
/// watchdog needs.
#[test]
fn no_open_waits_for_a_daemon_that_is_stopped_at_any_moment() {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let daemon = place.daemon().expect("a daemon");
    let (path, end) = (place.file("x-wal"), AtomicBool::new(false));
    let slowest = std::thread::scope(|scope| {
        let opens = || {
            let mut slowest = Duration::ZERO;
            while !end.load(Relaxed) {
                let begin = Instant::now();
                drop(File::options().write(true).open(&path).expect("open"));
                slowest = slowest.max(begin.elapsed());
            }
            slowest
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(opens)).collect();
        for pause in 0..6 {
            std::thread::sleep(Duration::from_millis(100 + 7 * pause));
            let still = Still::new(daemon);
            std::thread::sleep(Duration::from_millis(1300));
            drop(still);
        }
        end.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("it ends")).max().expect("four")
    });
    println!("{slowest:?}");
    assert!(slowest < Duration::from_millis(1500), "{slowest:?}");
    writer.write(5);
    writer.finish().succeeds();
}
