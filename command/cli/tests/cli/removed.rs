//! The space of removed files comes back as it does without Seawall, whoever removes them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::mounts::Mounts;
use crate::common::{Place, Writer, has, wait_for};

/// Whether a process, this one not counted, has it open: as long as one has, it keeps its blocks.
fn is_open((dev, ino): (u64, u64)) -> bool {
    let me = std::process::id().to_string();
    let of =
        |process: &Path| fs::read_dir(process.join("fd")).into_iter().flatten().flatten().collect::<Vec<_>>();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let others = processes.filter(|entry| entry.file_name() != *me);
    others
        .flat_map(|entry| of(&entry.path()))
        .any(|fd| fs::metadata(fd.path()).is_ok_and(|meta| (meta.dev(), meta.ino()) == (dev, ino)))
}

fn id(path: impl AsRef<Path>) -> (u64, u64) {
    let meta = fs::metadata(path).expect("a file");
    (meta.dev(), meta.ino())
}

/// Asserts that nobody has it open a moment later.
#[track_caller]
fn comes_back(file: (u64, u64), how: &str) {
    let begin = Instant::now();
    while is_open(file) {
        assert!(begin.elapsed() < Duration::from_secs(30), "removed by {how}: it keeps its space");
        std::thread::sleep(Duration::from_millis(50));
    }
}

const WAYS: [(&str, &str); 2] =
    [("rm", "rm x.db-wal"), ("a rename over it", "echo > new && mv new x.db-wal")];

/// The shell runs there; `seawall` precedes it if it is to have the preload.
fn sh(at: &Path, seawall: Option<&Place>, text: &str) {
    let mut command = match seawall {
        Some(place) => place.run_command(&["sh", "-c", text]),
        None => {
            let mut sh = Command::new("sh");
            sh.args(["-c", text]);
            sh
        }
    };
    let status = command.current_dir(at).stdin(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("sh starts").success(), "{text}");
}

const WRITE: &str = "dd if=/dev/urandom of=x.db-wal bs=64k count=20 oflag=dsync";

#[test]
fn a_removed_file_is_let_go_while_its_pool_is_used() {
    let place = Place::new();
    let mut user = Writer::start(&place);
    user.write(1);
    let dir = place.data.path();
    for (how, command) in WAYS {
        for by in [None, Some(&place)] {
            sh(dir, Some(&place), WRITE);
            let file = id(place.file("x.db-wal"));
            assert!(is_open(file), "it is managed");
            sh(dir, by, command);
            comes_back(file, how);
        }
    }
    user.write(5);
    user.finish().succeeds();
}

#[test]
fn a_file_that_is_removed_from_a_mount_is_let_go() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    for (how, command) in WAYS {
        sh(&m.place.file("at"), None, WRITE);
        let file = id(m.behind("x.db-wal"));
        assert!(is_open(file), "it is managed");
        sh(&m.place.file("at"), None, command);
        comes_back(file, how);
    }
    m.umount().succeeds();
}

/// As on the bare file system, whoever has it open goes on with it.
#[test]
fn who_has_a_removed_file_open_goes_on_with_it() {
    if !has("perl") {
        return eprintln!("skipped: needs perl");
    }
    let place = Place::new();
    let body = "use IO::Handle; $| = 1; open(my $f, '+>', 'x.db-wal') or die;
        sub w { sysseek($f, 0, 0); syswrite($f, $_[0] x 8192) == 8192 or die; $f->sync or die }
        w('a'); print \"a\\n\";
        while (<STDIN>) {
            chomp; w($_); sysseek($f, 0, 0); sysread($f, my $r, 8192) == 8192 or die; $r eq $_ x 8192 or die;
            print \"$_\\n\";
        }";
    let mut run = place.run_command(&["perl", "-e", body]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(run.stdout.take().expect("piped")));
    let mut next = move || lines.next().expect("a line").expect("text");
    assert_eq!(next(), "a");
    let open = File::open(place.file("x.db-wal")).expect("open");
    fs::remove_file(place.file("x.db-wal")).expect("removed");
    let daemon = place.daemon().expect("a daemon");
    let has_it = |pid: u64| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("fds").flatten();
        fds.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.ends_with("x.db-wal (deleted)"))).count()
            > 0
    };
    for byte in (b'b'..=b'y').map(char::from) {
        writeln!(run.stdin.as_mut().expect("piped"), "{byte}").expect("it lives");
        assert_eq!(next(), byte.to_string());
        let mut block = [0; 8192];
        open.read_exact_at(&mut block, 0).expect("read");
        assert!(block.iter().all(|found| *found == byte as u8), "what was written is read");
        std::thread::sleep(Duration::from_millis(100));
    }
    wait_for("the daemon to let go of it", || !has_it(daemon));
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
}
