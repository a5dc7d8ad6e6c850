//! Guards follow what they protect, go with it, and are met by nobody while the machine runs.

use crate::common;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Writer, cc, has, is_root, kill_everything, names, wait_for};

/// A writer whose log has records, in a place of its own.
fn writing() -> (Place, Writer) {
    let place = Place::new();
    let mut writer = Writer::start(&place);
    writer.write(20);
    (place, writer)
}

/// A writer of `LOG`, which is a path below the place's directory.
fn writing_to(place: &Place, log: &str) -> Writer {
    let of = format!("of={log}");
    let program = ["dd", &of, "bs=4096", "iflag=fullblock", "oflag=dsync", "status=none"];
    Writer::start_by(place, place.run_command(&program))
}

/// Feeds it, and waits until the guard is up.
fn feed(writer: &mut Writer, guard: &Path) {
    use std::io::Write;
    for _ in 0..4 {
        writer.run.stdin.as_mut().expect("piped").write_all(&[1; 4096]).expect("the writer lives");
    }
    wait_for("the guard", || guard.join(".seawall").exists());
}

fn is_guarded(place: &Place, log: &str) -> bool {
    place.file(log).join(".seawall").exists()
}

// Holds: P5
#[test]
fn a_renamed_database_has_its_guard_before_it_has_its_name() {
    let (place, writer) = writing();
    place.run(&["sh", "-c", "mv x-wal y-wal && test -e /proc/self"]).succeeds();
    assert!(is_guarded(&place, "y-journal"), "it was up before the rename");
    wait_for("the old guard's end", || !is_guarded(&place, "x-journal"));
    kill_everything(&place, writer);
    assert!(is_guarded(&place, "y-journal"));
    let said = place.seawall(&["recover", "--replay", "--pool", place.pool()]);
    assert!(said.succeeds().out.contains("y-wal"), "{}", said.out);
    assert_eq!(names(place.data.path()), ["y-wal"]);
    assert_eq!(fs::read(place.file("y-wal")).expect("read").len(), 20 * 4096);
}

/// The guard is where SQLite's journal is to be: that goes beside it.
#[test]
fn a_renamed_journal_is_beside_its_guard() {
    let place = Place::new();
    let script = "use IO::Handle; open(my $f, '+>', 'x-journal') or die; \
                  for (1 .. 6) { syswrite($f, 'x' x 4096) == 4096 or die; $f->sync or die; } \
                  rename('x-journal', 'y-journal') or die $!; -f 'y-journal' or die 'gone'; -e 'x-journal' and die; \
                  exec('/bin/sleep', 1);";
    let mut run = place.run_command(&["perl", "-e", script]).spawn().expect("seawall starts");
    wait_for("the guard", || is_guarded(&place, "y-journal"));
    wait_for("the journal beside it", || place.file("y-journal.seawall").is_file());
    assert!(run.wait().expect("it ends").success());
    assert_eq!(names(place.data.path()), ["y-journal"]);
}

// Holds: P5, L14
#[test]
fn a_database_that_a_stranger_renames_takes_its_guard_along() {
    let (place, writer) = writing();
    fs::rename(place.file("x-wal"), place.file("y-wal")).expect("renamed");
    wait_for("the guard at the new name", || is_guarded(&place, "y-journal"));
    wait_for("the old guard's end", || !is_guarded(&place, "x-journal"));
    kill_everything(&place, writer);
    place.seawall(&["recover", "--replay", "--pool", place.pool()]).succeeds();
    assert_eq!(names(place.data.path()), ["y-wal"]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_renamed_directory_takes_its_guards_along_and_keeps_none() {
    let place = Place::new();
    fs::create_dir(place.file("new")).expect("made");
    let mut writer = writing_to(&place, "new/x-wal");
    feed(&mut writer, &place.file("new/x-journal"));
    fs::rename(place.file("new"), place.file("db")).expect("renamed");
    assert!(is_guarded(&place, "db/x-journal"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(is_guarded(&place, "db/x-journal") && !place.file("new").exists());
    writer.finish().succeeds();
    assert_eq!(names(&place.file("db")), ["x-wal"]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_database_that_leaves_its_directory_leaves_the_log() {
    let (place, mut writer) = writing();
    let other = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::rename(place.file("x-wal"), other.path().join("x-wal")).expect("renamed");
    wait_for("the guard's end", || !is_guarded(&place, "x-journal"));
    assert_eq!(names(other.path()), ["x-wal"]);
    let status = place.status();
    assert_eq!((&status["backlog_files"], &status["guards"]), (&0.into(), &0.into()), "{status:#}");
    drop(writer.run.stdin.take());
    assert!(writer.run.wait().expect("the run ends").success());
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_database_with_a_second_name_leaves_the_log() {
    let (place, writer) = writing();
    fs::hard_link(place.file("x-wal"), place.file("other-wal")).expect("linked");
    wait_for("the guard's end", || !is_guarded(&place, "x-journal"));
    writer.finish().succeeds();
    assert_eq!(names(place.data.path()), ["other-wal", "x-wal"]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_program_under_seawall_removes_its_directory() {
    let place = Place::new();
    let script = "for i in 1 2 3; do
            mkdir d; dd if=/dev/zero of=d/x-wal bs=4096 count=4 oflag=dsync status=none
            test -e /proc/self; rm -r d; test ! -e d
        done
        mkdir d; dd if=/dev/zero of=d/x-wal bs=4096 count=4 oflag=dsync status=none; rm d/x-wal; rmdir d";
    place.run(&["sh", "-ec", script]).succeeds();
    assert_eq!(names(place.data.path()), [""; 0]);
}

/// The guard's text stands for the very file that is removed.
#[test]
fn a_program_under_seawall_removes_a_directory_of_lmdb() {
    let place = Place::new();
    let script = "mkdir d; head -c 8192 /dev/zero >d/data.mdb
        dd if=/dev/zero of=d/data.mdb bs=4096 count=1 conv=notrunc,fsync status=none
        rm -r d; test ! -e d";
    let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "lmdb", "--data", ".", "--"]);
    let said = run.args(["sh", "-ec", script]).output().expect("seawall starts");
    common::Said::from(said).succeeds();
    assert_eq!(names(place.data.path()), [""; 0]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_directory_that_held_a_database_can_be_replaced() {
    let place = Place::new();
    let script = "mkdir d new; dd if=/dev/zero of=d/x-wal bs=4096 count=4 oflag=dsync status=none
        rm d/x-wal; mv -T new d; test ! -e new; ls -A d | wc -l | grep -qx 0";
    place.run(&["sh", "-ec", script]).succeeds();
    assert_eq!(names(place.data.path()), ["d"]);
    assert_eq!(names(&place.file("d")), [""; 0]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_program_under_seawall_does_not_see_guards() {
    let (place, writer) = writing();
    let Some(program) = cc(&place, "listing", include_str!("programs/listing.c"), &[]) else { return };
    let said = place.run(&[program.to_str().expect("a path"), "."]);
    let lists: Vec<&str> = said.succeeds().out.lines().collect();
    let seen = |list: &&&str| list.contains("journal") || list.contains("seawall");
    assert_eq!(lists.iter().filter(seen).count(), 0, "{lists:?}");
    assert!(lists.len() == 5 && lists.iter().all(|list| list.contains("x-wal")), "{lists:?}");
    assert!(is_guarded(&place, "x-journal"));
    writer.finish().succeeds();
}

/// A program that has `file` open and has written to it, until its input has a line; then it runs `walking` in its place.
fn walking(place: &Place, preset: &str, program: &Path, file: &str, beside: &str) -> String {
    let script = "use IO::Handle; $| = 1; open(my $f, '+<', $ARGV[1]) or die; \
                  for (1 .. 2) { syswrite($f, 'x' x 4096) == 4096 or die; $f->sync or die; } \
                  <STDIN>; system($ARGV[0], $ARGV[2], $ARGV[1]) == 0 or die;";
    let mut run =
        place.command(&["run", "--quiet", "--pool", place.pool(), "--preset", preset, "--data", "."]);
    let program = program.to_str().expect("a path");
    run.args(["--", "perl", "-e", script, program, file, "d"]);
    let run = run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut run = run.stderr(std::process::Stdio::piped()).spawn().expect("seawall starts");
    wait_for("the guard", || place.file(beside).exists());
    drop(run.stdin.take());
    let done = common::Said::from(run.wait_with_output().expect("it ends"));
    done.succeeds().out.clone()
}

/// Libc reads directories by functions of its own in these; what they find is what the bare program finds.
// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_program_under_seawall_walks_past_guards() {
    for (preset, name, beside) in
        [("lmdb", "data.mdb", "data.mdb.seawall"), ("sqlite", "x-wal", "x-journal/.seawall")]
    {
        let place = Place::new();
        let Some(program) = cc(&place, "walking", include_str!("programs/walking.c"), &[]) else { return };
        fs::create_dir_all(place.file("d/e")).expect("made");
        let file = format!("d/{name}");
        for (file, len) in [(&*file, 8192), ("d/e/other", 3), ("d/last", 5)] {
            fs::write(place.file(file), vec![0; len]).expect("written");
        }
        let bare = Command::new(&program).args(["d", &file]).current_dir(place.data.path()).output();
        let bare = common::Said::from(bare.expect("it runs"));
        assert_eq!(bare.succeeds().out.lines().count(), 16, "{}", bare.out);
        assert_eq!(
            walking(&place, preset, &program, &file, &format!("d/{beside}")),
            bare.out,
            "under the preset {preset}"
        );
    }
}

/// As root: the kernel asks the daemon before it opens a directory.
// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_strangers_copy_has_no_guard_and_the_original_gets_it_back() {
    if !is_root() {
        return;
    }
    let (place, mut writer) = writing();
    let copied = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let from = format!("{}/.", place.data.path().display());
    assert!(Command::new("cp").arg("-a").arg(from).arg(copied.path()).status().expect("cp").success());
    assert_eq!(names(copied.path()), ["x-wal"]);
    wait_for("the guard, and the file in the log again", || {
        writer.write(1);
        is_guarded(&place, "x-journal") && place.status()["files"][0]["live"] == true
    });
    writer.finish().succeeds();
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_bare_sqlite_works_beside_one_under_seawall() {
    if !is_root() || !has("sqlite3") {
        return;
    }
    let place = Place::new();
    let mut run = place.run_command(&["sqlite3", "x.db"]);
    let mut run = run.stdin(std::process::Stdio::piped()).spawn().expect("seawall starts");
    let mut tell = |sql: &str| {
        use std::io::Write;
        writeln!(run.stdin.as_mut().expect("piped"), "{sql}").expect("it lives");
    };
    tell(
        "pragma journal_mode = wal; create table t (a); insert into t values (1); insert into t values (2);",
    );
    wait_for("the guard", || is_guarded(&place, "x.db-journal"));
    let bare = |sql: &str| {
        let said = Command::new("sqlite3").arg(place.file("x.db")).arg(sql).output().expect("sqlite3");
        (
            said.status.success(),
            String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr),
        )
    };
    wait_for("both rows", || {
        bare("pragma busy_timeout = 5000; select count(*) from t") == (true, "5000\n2\n".into())
    });
    assert_eq!(bare("pragma busy_timeout = 5000; insert into t values (3)"), (true, "5000\n".into()));
    tell("pragma busy_timeout = 5000; insert into t values (4);");
    wait_for("its own row", || bare("select count(*) from t").1 == "4\n");
    wait_for("the guard's return", || {
        tell("insert into t values (5);");
        std::thread::sleep(std::time::Duration::from_millis(100));
        is_guarded(&place, "x.db-journal")
    });
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
    assert!(!place.file("x.db-journal").exists());
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn what_is_no_database_gets_no_guard() {
    let place = Place::new();
    let Some(program) = cc(&place, "streams", include_str!("programs/streams.c"), &[]) else { return };
    place.run(&[program.to_str().expect("a path"), "d"]).succeeds();
    let log = fs::read_to_string(place.status_log()).unwrap_or_default();
    assert!(!log.contains("guard"), "{log}");
    assert!(
        names(&place.file("d")).iter().all(|name| name.starts_with("file")),
        "{:?}",
        names(&place.file("d"))
    );
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn the_guard_of_a_closed_database_goes_while_others_run() {
    let place = Place::new();
    let mut first = writing_to(&place, "first-wal");
    feed(&mut first, &place.file("first-journal"));
    let mut second = writing_to(&place, "second-wal");
    feed(&mut second, &place.file("second-journal"));
    first.finish().succeeds();
    wait_for("the first one's end", || !place.file("first-journal").exists());
    assert!(is_guarded(&place, "second-journal"));
    second.finish().succeeds();
}

/// Of what stands there now the log holds nothing.
// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_directory_that_was_removed_and_restored_has_no_guard() {
    let place = Place::new();
    let mut other = writing_to(&place, "other-wal");
    feed(&mut other, &place.file("other-journal"));
    fs::create_dir(place.file("d")).expect("made");
    let mut writer = writing_to(&place, "d/x-wal");
    feed(&mut writer, &place.file("d/x-journal"));
    let backup = fs::read(place.file("d/x-wal")).expect("read");
    writer.finish().succeeds();
    fs::remove_dir_all(place.file("d")).expect("removed");
    fs::create_dir(place.file("d")).expect("made again");
    fs::write(place.file("d/x-wal"), backup).expect("restored");
    // Several looks around.
    std::thread::sleep(std::time::Duration::from_millis(1000));
    assert_eq!(names(&place.file("d")), ["x-wal"]);
    assert!(is_guarded(&place, "other-journal"));
    other.finish().succeeds();
    assert_eq!(names(&place.file("d")), ["x-wal"]);
}

// Holds: internals/FAILURE_MODEL#where-a-guard-can-be-met
#[test]
fn a_guard_outlives_chmod_and_the_loss_of_its_mark() {
    let place = Place::new();
    fs::write(place.file("CURRENT"), "one\n").expect("written");
    let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "rocksdb", "--data", ".", "--"]);
    run.args(["sh", "-ec", "exec 3>000001.log; head -c 4096 /dev/zero >&3; dd of=000001.log conv=notrunc,fsync bs=4096 \
                       count=1 if=/dev/zero status=none; read x; grep -qx one CURRENT; : >seen; read x; grep -qx one CURRENT"]);
    let mut run = run.stdin(std::process::Stdio::piped()).spawn().expect("seawall starts");
    let text = place.file("CURRENT");
    let is_up = || fs::read_to_string(&text).is_ok_and(|text| text.contains("run-seawall-recover"));
    wait_for("the guard", is_up);
    let mut go_on =
        || std::io::Write::write_all(run.stdin.as_mut().expect("piped"), b"\n").expect("it lives");
    // As entry points of images do.
    let all = [text.clone(), place.file("CURRENT.seawall"), place.file("000001.log")];
    all.iter()
        .for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("changed"));
    go_on();
    wait_for("its look", || place.file("seen").exists());
    rustix::fs::lremovexattr(&text, "user.seawall.guard").expect("removed");
    wait_for("the mark", || rustix::fs::lgetxattr(&text, "user.seawall.guard", &mut [0_u8; 0][..]).is_ok());
    go_on();
    assert!(run.wait().expect("it ends").success(), "the program saw the guard");
    assert_eq!(fs::read_to_string(&text).expect("read"), "one\n");
}

trait LogOf {
    fn status_log(&self) -> PathBuf;
}

impl LogOf for Place {
    /// The daemon's log.
    fn status_log(&self) -> PathBuf {
        PathBuf::from(format!("{}.log", self.pool()))
    }
}
