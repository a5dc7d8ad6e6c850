//! Guards that stand in for a file which the database replaces while it runs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::mounts::{Mounts, tracked};
use crate::common::{Place, wait_for};
use tempfile::TempDir;

/// A RocksDB directory with a file CURRENT, and a shell under Seawall that has written to its log.
struct Scene {
    place: Place,
    dir: TempDir,
    shell: Child,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        fs::write(dir.path().join("CURRENT"), "one\n").expect("written");
        let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "rocksdb", "--data"]);
        run.arg(dir.path()).args(["--", "sh", "-e"]).current_dir(dir.path());
        let shell = run.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("seawall starts");
        let mut scene = Self { place, dir, shell };
        scene.tell("dd if=/dev/zero of=000001.log bs=4096 count=1 oflag=dsync status=none");
        wait_for("the guard", || scene.is_guarded());
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn tell(&mut self, command: &str) {
        let stdin = self.shell.stdin.as_mut().expect("piped");
        writeln!(stdin, "{command}").expect("the shell lives");
    }

    fn is_guarded(&self) -> bool {
        is_guard(&self.path("CURRENT"))
    }

    /// Ends the shell; the guard goes down.
    fn finish(mut self) -> String {
        drop(self.shell.stdin.take());
        assert!(self.shell.wait().expect("the run ends").success(), "the shell saw what it should not");
        wait_for("the guard's end", || !self.path("CURRENT.seawall").exists());
        read(&self.path("CURRENT"))
    }
}

fn is_guard(file: &Path) -> bool {
    read(file).contains("run-seawall-recover")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

// Holds: P5
#[test]
fn what_a_database_replaces_removes_and_makes_is_beside_the_guard() {
    let mut scene = Scene::new();
    let (text, aside) = (scene.path("CURRENT"), scene.path("CURRENT.seawall"));
    let inode = fs::metadata(&text).expect("the text").ino();
    scene.tell("grep -qx one CURRENT; echo two >new; mv new CURRENT; grep -qx two CURRENT");
    wait_for("the replacement", || read(&aside) == "two\n");
    scene.tell("rm CURRENT; test ! -e CURRENT; echo three >new; ln new CURRENT; rm new");
    wait_for("the new file", || read(&aside) == "three\n");
    assert_eq!(fs::metadata(&text).expect("the text").ino(), inode, "the guard was up all the time");
    assert_eq!(scene.finish(), "three\n");
}

// Holds: L14
#[test]
fn a_guard_that_was_replaced_is_put_up_again() {
    let scene = Scene::new();
    let new = scene.path("new");
    fs::write(&new, "two\n").expect("written");
    fs::rename(&new, scene.path("CURRENT")).expect("replaced, by a hand that does not see the guard");
    wait_for("the guard", || scene.is_guarded());
    assert_eq!(scene.finish(), "two\n");
}

/// Replaces, reads, looks at, removes and makes the file again and again, and says what it sees that it should not.
const CHANGES: &str = r#"
    my $n = 0;
    sub put { open(my $f, ">", "new") or die "new: $!"; print $f "$_[0]\n"; close($f); }
    sub is { open(my $f, "<", "CURRENT") or die "no CURRENT: $!"; my $l = <$f>; $l eq "$_[0]\n" or die "$l for $_[0]"; }
    until (-e "enough") {
        put(++$n); rename("new", "CURRENT") or die "rename: $!"; is($n);
        -f "CURRENT" or die "no file"; chmod(0644, "CURRENT") or die "chmod: $!";
        rename("CURRENT", "was") or die "rename away: $!"; !-e "CURRENT" or die "still there";
        put(++$n); link("new", "CURRENT") or die "link: $!"; is($n);
        unlink("CURRENT") or die "unlink: $!"; !-e "CURRENT" or die "still there";
        open(my $f, ">", "CURRENT") or die "make: $!"; print $f ++$n . "\n"; close($f); is($n);
    }
    print "$n\n";
"#;

/// Whatever a call meets, the file is where the program has put it, while the guard comes and goes.
// Holds: P5
#[test]
fn a_file_is_where_its_database_has_put_it_while_the_guard_comes_and_goes() {
    let mut scene = Scene::new();
    fs::write(scene.path("changes.pl"), CHANGES).expect("written");
    scene.tell("perl changes.pl >was-last || echo failed >was-last; mv was-last last");
    for _ in 0..200 {
        scene.place.seawall(&["freeze", "--pool", scene.place.pool(), "--", "true"]).succeeds();
    }
    fs::write(scene.path("enough"), "").expect("written");
    wait_for("the end of the changes", || scene.path("last").exists());
    let last = read(&scene.path("last"));
    assert!(last.trim().parse::<u64>().is_ok_and(|changes| changes > 1000), "{last}");
    assert_eq!(scene.finish(), last);
}

// Holds: P5
#[test]
fn through_a_mount_a_file_is_where_its_database_has_put_it_too() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("CURRENT"), "one\n").expect("written");
    m.mount_with("backing", "at", "rocksdb", &[]).succeeds();
    let log = tracked(&m.at("000001.log"));
    wait_for("the guard", || is_guard(&m.behind("CURRENT")));
    fs::write(m.at("changes.pl"), CHANGES).expect("written");
    let mut perl = Command::new("perl");
    perl.arg("changes.pl").current_dir(m.place.file("at")).stdout(Stdio::piped());
    let program = perl.spawn().expect("perl starts");
    for _ in 0..100 {
        m.place.seawall(&["freeze", "--pool", m.place.pool(), "--", "true"]).succeeds();
    }
    fs::write(m.at("enough"), "").expect("written");
    let ended = program.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "it saw what it should not");
    let last = String::from_utf8(ended.stdout).expect("a number");
    assert!(last.trim().parse::<u64>().is_ok_and(|changes| changes > 300), "{last}");
    drop(log);
    m.umount().succeeds();
    assert_eq!(read(&m.behind("CURRENT")), last);
    assert!(!m.behind("CURRENT.seawall").exists());
}
