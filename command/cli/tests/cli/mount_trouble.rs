//! `seawall mount` when something is short, in the way or dies under load: the kernel's own error or a clear one, and
//! nothing is lost.

use crate::common;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::common::mounts::{Mounts, tracked};
use crate::common::{Said, kill, wait_for, wait_for_end};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::{Pid, chown};

const NOBODY: u32 = 65534;

/// Appends one block after the other, each synced, and returns how many until `end`.
fn append(path: &Path, end: &AtomicBool, acknowledged: &AtomicU64) {
    let mut file = File::options().create(true).append(true).open(path).expect("opened");
    while !end.load(Relaxed) {
        let n = acknowledged.load(Relaxed);
        file.write_all(&[n as u8; 4096]).expect("written");
        file.sync_data().expect("synced");
        acknowledged.store(n + 1, Relaxed);
    }
}

fn check(path: &Path, acknowledged: u64) {
    let found = fs::read(path).expect("read");
    assert!(found.len() as u64 >= acknowledged * 4096, "{} blocks of {acknowledged}", found.len() / 4096);
    let wrong = found.chunks(4096).enumerate().find(|(i, block)| block.iter().any(|byte| *byte != *i as u8));
    assert!(wrong.is_none(), "block {:?}", wrong.map(|(i, _)| i));
}

// Holds: K5
#[test]
fn the_daemon_is_killed_under_load() {
    const WRITERS: usize = 3;
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let (end, counts) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; WRITERS]);
    std::thread::scope(|scope| {
        for (i, count) in counts.iter().enumerate() {
            let (path, end) = (m.at(&format!("{i}-wal")), &end);
            scope.spawn(move || append(&path, end, count));
        }
        for _ in 0..3 {
            let before: Vec<u64> = counts.iter().map(|count| count.load(Relaxed)).collect();
            let all_went_on =
                || counts.iter().zip(&before).all(|(count, before)| count.load(Relaxed) > before + 20);
            wait_for("every writer to go on", all_went_on);
            let old = m.place.daemon().expect("a daemon");
            kill(old);
            wait_for_end(old);
            wait_for("another daemon", || m.place.daemon().is_some_and(|pid| pid != old));
        }
        end.store(true, Relaxed);
    });
    m.umount().succeeds();
    for (i, count) in counts.iter().enumerate() {
        check(&m.behind(&format!("{i}-wal")), count.load(Relaxed));
    }
}

/// With a daemon that frees nothing the log fills up: writes go around it, fsyncs are real.
#[test]
fn the_log_is_full() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let daemon = Pid::from_raw(i32::try_from(m.place.daemon().expect("a daemon")).expect("a process id"));
    send(daemon, Signal::SIGSTOP).expect("stopped");
    for i in 0..40_u64 {
        file.write_all_at(&vec![i as u8; 1 << 20], i << 20).expect("written");
        if i % 8 == 0 {
            file.sync_all().expect("synced");
        }
    }
    file.sync_all().expect("synced");
    send(daemon, Signal::SIGCONT).expect("goes on");
    drop(file);
    m.umount().succeeds();
    let found = fs::read(m.behind("x-wal")).expect("read");
    assert_eq!(found.len(), 40 << 20);
    assert!(found.chunks(1 << 20).enumerate().all(|(i, part)| part.iter().all(|byte| *byte == i as u8)));
}

/// A small file system of its own under the backing directory; unmounted when dropped.
struct Small(PathBuf);

impl Small {
    fn new(m: &Mounts) -> Option<Self> {
        let (image, at) = (m.place.file("image"), m.place.file("backing"));
        File::create(&image).and_then(|file| file.set_len(24 << 20)).expect("made");
        let made = Command::new("mkfs.ext4").arg("-q").arg(&image).status().is_ok_and(|s| s.success());
        let mounted = made
            && Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&at)
                .status()
                .is_ok_and(|s| s.success());
        if !mounted {
            eprintln!("skipped: no file system of our own");
        }
        mounted.then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn the_backing_file_system_is_full() {
    const ENOSPC: i32 = 28;
    let Some(m) = Mounts::new() else { return };
    let Some(_small) = Small::new(&m) else { return };
    m.mount();
    for name in ["x-wal", "plain"] {
        let file = tracked(&m.at(name));
        let mut at = 8192;
        let full = loop {
            match file.write_at(&[7; 65536], at) {
                Ok(n) => at += n as u64,
                Err(e) => break e,
            }
        };
        assert_eq!(full.raw_os_error(), Some(ENOSPC), "{full}");
        file.sync_all().expect("what was written is synced");
        assert_eq!(file.metadata().expect("stat").len(), at);
        file.set_len(8192).expect("cut");
        file.sync_all().expect("synced");
        file.write_all_at(&[9; 8192], 0).expect("there is room again");
        file.sync_all().expect("synced");
    }
    m.umount().succeeds();
    for name in ["x-wal", "plain"] {
        assert_eq!(fs::read(m.behind(name)).expect("read"), [9; 8192], "{name}");
    }
}

/// The kernel remembers more files than a process may usually have open.
#[test]
fn more_files_than_descriptors() {
    const FILES: usize = 700;
    let Some(m) = Mounts::new() else { return };
    let script = "ulimit -Sn 256; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", common::SEAWALL, "mount", "backing", "at", "--pool", m.place.pool()]);
    command.args(["--preset", "sqlite", "--quiet"]).current_dir(m.place.data.path());
    let said: Said = command.output().expect("sh").into();
    said.succeeds();
    for i in 0..FILES {
        fs::write(m.at(&format!("file-{i}")), "x").expect("made");
    }
    for i in 0..FILES {
        assert_eq!(fs::metadata(m.at(&format!("file-{i}"))).expect("found").len(), 1);
    }
    m.umount().succeeds();
}

fn as_nobody(m: &Mounts, arguments: &[&str]) -> Said {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR"]);
    command.args(arguments).current_dir(m.place.data.path()).stdin(Stdio::null());
    command.output().expect("setpriv").into()
}

#[test]
fn a_user_mounts() {
    let Some(m) = Mounts::new() else { return };
    if !common::has("fusermount3") {
        eprintln!("skipped: no fusermount3");
        return;
    }
    fs::set_permissions(m.place.data.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    for name in ["backing", "at"] {
        chown(&m.place.file(name), Some(NOBODY.into()), Some(NOBODY.into())).expect("given");
    }
    let pool = format!("/dev/shm/seawall-test-{}.pool", std::process::id());
    let mount =
        ["mount", "backing", "at", "--pool", &pool, "--preset", "sqlite", "--emulated", "--size", "16M"];
    let line = |more: &[&'static str]| [&[common::SEAWALL], &mount[..], more].concat();
    if as_nobody(&m, &["sh", "-c", "exec 3<>/dev/fuse"]).code != Some(0) {
        as_nobody(&m, &line(&[]))
            .fails(1, &["/dev/fuse", "This user may not open it", "chmod 666 /dev/fuse"]);
        eprintln!("skipped but for its error: here only root may open /dev/fuse");
        return fs::remove_file(pool).expect("removed");
    }
    let allowed = fs::read_to_string("/etc/fuse.conf")
        .is_ok_and(|text| text.lines().any(|line| line.trim() == "user_allow_other"));
    if !allowed {
        as_nobody(&m, &line(&["--allow-other"])).fails(1, &["user_allow_other", "/etc/fuse.conf"]);
    }
    let said = as_nobody(&m, &line(&[]));
    said.succeeds().says(&["goes through the mount's process"]);
    as_nobody(&m, &["sh", "-c", "echo text > at/x-wal && sync at/x-wal && cat at/x-wal"]).succeeds();
    as_nobody(&m, &[common::SEAWALL, "umount", "at"]).succeeds();
    assert_eq!(fs::read_to_string(m.behind("x-wal")).expect("read"), "text\n");
    as_nobody(&m, &[common::SEAWALL, "stop", "--pool", &pool]);
    fs::remove_file(pool).expect("removed");
}

/// A preloaded database and one on a mount, in one pool.
#[test]
fn both_fronts_share_a_pool() {
    let Some(m) = Mounts::new() else { return };
    fs::create_dir(m.place.file("preloaded")).expect("made");
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let script = "exec 9<>preloaded/y-wal; for i in 1 2 3 4 5; do echo $i >&9; sync preloaded/y-wal; done; \
                  echo ready; read end; true";
    let mut run =
        m.place.command(&["run", "--pool", m.place.pool(), "--preset", "sqlite", "--data", "preloaded"]);
    run.args(["--quiet", "--", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = run.spawn().expect("seawall starts");
    let mut ready = [0; 5];
    std::io::Read::read_exact(run.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
    file.write_all_at(&[3; 8192], 0).expect("written");
    file.sync_all().expect("synced");
    for name in ["x-wal", "y-wal"] {
        assert!(m.state(name).is_object(), "{name} is managed");
    }
    let clients = m.place.status()["clients"].as_array().map_or(0, Vec::len);
    assert!(clients >= 2, "the mount and the shell: {clients}");
    drop(run.stdin.take());
    assert!(run.wait().expect("ended").success());
    assert_eq!(m.state("x-wal")["tracked"], true, "the mount goes on");
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.place.file("preloaded/y-wal")).expect("read"), b"1\n2\n3\n4\n5\n");
    assert_eq!(fs::read(m.behind("x-wal")).expect("read"), [3; 8192]);
    assert!(
        !m.behind("x-journal").exists() && !m.place.file("preloaded/y-journal").exists(),
        "guards are down"
    );
}

#[test]
fn processes_of_sqlite_in_mode_delete() {
    const PROCESSES: usize = 4;
    const ROWS: usize = 25;
    let Some(m) = Mounts::new() else { return };
    if !common::has("sqlite3") {
        eprintln!("skipped: no sqlite3");
        return;
    }
    m.mount();
    let database = m.at("app.db");
    let sqlite = |text: &str| {
        let mut command = Command::new("sqlite3");
        command.arg(&database).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("sqlite3");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("told");
        child
    };
    let ended = |child: std::process::Child| -> Said { child.wait_with_output().expect("ended").into() };
    ended(sqlite("create table t(x);")).succeeds();
    let inserts = ".timeout 60000\n.bail on\npragma synchronous=full;\n".to_owned()
        + &"insert into t values(1);\n".repeat(ROWS);
    let children: Vec<_> = (0..PROCESSES).map(|_| sqlite(&inserts)).collect();
    for child in children {
        let said = ended(child);
        said.succeeds();
        assert_eq!(said.err, "");
    }
    let said = ended(sqlite("select count(*) from t; pragma integrity_check;"));
    assert_eq!(said.out, format!("{}\nok\n", PROCESSES * ROWS), "{}", said.err);
    m.umount().succeeds();
}

/// mount(8), fstab and systemd start us by another name.
#[test]
fn by_the_name_that_mount_uses() {
    let Some(m) = Mounts::new() else { return };
    let by = |name: &str, arguments: &[&str]| -> Said {
        let mut command = m.place.command(arguments);
        command.arg0(name).stdin(Stdio::null());
        command.output().expect("seawall starts").into()
    };
    let options = format!("rw,nofail,pool={},preset=sqlite,allow_other", m.place.pool());
    by("/sbin/mount.fuse.seawall", &["backing", "at", "-o", &options, "-t", "fuse.seawall"]).succeeds();
    drop(tracked(&m.at("x-wal")));
    assert_eq!(m.state("x-wal")["tracked"], true);
    by("umount.fuse.seawall", &["at", "-t", "fuse.seawall"]).succeeds();
    assert!(!m.behind("x-journal").exists(), "its guard is down");
    by("mount.seawall", &["backing", "at", "-o", "sync"]).fails(2, &["sync: unknown"]);
    let options = format!("{options},ro,nosuid,nodev,noexec,noatime");
    by("mount.seawall", &["backing", "at", "-o", &options]).succeeds();
    let mounts = fs::read_to_string("/proc/thread-self/mounts").expect("the kernel's list");
    let at = m.place.file("at");
    let line = mounts.lines().find(|line| line.contains(&*at.to_string_lossy())).expect("it is mounted");
    let flags: Vec<_> = line.split([' ', ',']).collect();
    for flag in ["ro", "nosuid", "nodev", "noexec", "noatime"] {
        assert!(flags.contains(&flag), "{flag}: {line}");
    }
    const EROFS: i32 = 30;
    let refused = File::create(m.at("new")).expect_err("nothing can be changed");
    assert_eq!(refused.raw_os_error(), Some(EROFS), "{refused}");
    assert_eq!(fs::read(m.at("x-wal")).expect("read"), [2; 8192]);
    m.umount().succeeds();
}

// Holds: L15
#[test]
fn a_database_that_relies_on_syncfs_is_refused() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("PG_VERSION"), "15\n").expect("made");
    fs::create_dir(m.behind("pg_wal")).expect("made");
    fs::write(m.behind("postgresql.conf"), "recovery_init_sync_method = syncfs\n").expect("made");
    let mount = ["mount", "backing", "at", "--pool", m.place.pool(), "--preset", "postgres", "--quiet"];
    m.place.seawall(&mount).fails(1, &["recovery_init_sync_method", "Set it to fsync"]);
    fs::write(m.behind("postgresql.conf"), "").expect("made");
    m.place.seawall(&mount).succeeds();
    m.umount().succeeds();
}

/// A freeze holds back whoever changes a data file under `atomic`, not the mount: others read it meanwhile.
#[test]
fn a_frozen_mount_reads_while_its_writes_wait() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("PG_VERSION"), "15\n").expect("written");
    fs::create_dir_all(m.behind("base/5")).expect("made");
    m.mount_with("backing", "at", "postgres", &["--policy", "atomic"]).succeeds();
    let file =
        File::options().read(true).write(true).create_new(true).open(m.at("base/5/16400")).expect("made");
    file.write_all_at(&[1; 8192], 0).expect("written");
    m.place.seawall(&["freeze", "--pool", m.place.pool()]).succeeds();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                file.write_all_at(&[2; 8192], 0).expect("written");
                written.fetch_add(1, Relaxed);
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(written.load(Relaxed), 0, "they wait");
        assert_eq!(fs::read(m.behind("base/5/16400")).expect("read"), [1; 8192]);
        assert_eq!(fs::read(m.at("PG_VERSION")).expect("read"), b"15\n");
        fs::write(m.at("base/5/other"), "not a data file").expect("written");
        m.place.seawall(&["thaw", "--pool", m.place.pool()]).succeeds();
    });
    assert_eq!(written.load(Relaxed), 12);
    assert_eq!(m.state("/16400")["tracked"], true);
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("base/5/16400")).expect("read"), [2; 8192]);
}

/// Under `atomic` a data file that the daemon cannot take now is asked for with each write, and it is not kept quiet.
// Holds: internals/SEMANTICS#policy-atomic
#[test]
fn a_data_file_that_is_made_while_the_daemon_is_stopped_is_told_and_in_the_log_as_soon_as_it_goes_on() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("PG_VERSION"), "15\n").expect("written");
    fs::create_dir_all(m.behind("base/5")).expect("made");
    m.mount_with("backing", "at", "postgres", &["--policy", "atomic"]).succeeds();
    let daemon = Pid::from_raw(i32::try_from(m.place.daemon().expect("a daemon")).expect("a process id"));
    assert_eq!(m.place.status()["torn"], false);
    let file = File::create_new(m.at("base/5/16400")).expect("made");
    send(daemon, Signal::SIGSTOP).expect("stopped");
    let written = file.write_all_at(&[1; 8192], 0);
    send(daemon, Signal::SIGCONT).expect("goes on");
    written.expect("written");
    let status = m.place.status();
    assert_eq!(status["torn"], true, "{status:#}");
    let said = m.place.seawall(&["status", "--pool", m.place.pool()]);
    assert!(said.out.contains("PAGES CAN TEAR"), "{}", said.out);
    // The mount may have heard that the daemon is stopped, and asks it again within a second. Nothing is synced.
    wait_for("a write that is logged", || {
        file.write_all_at(&[2; 8192], 0).expect("written");
        let status = m.place.status();
        let files = status["files"].as_array().expect("files").clone();
        files.iter().any(|file| file["path"].as_str().is_some_and(|path| path.ends_with("/16400")))
    });
    assert_eq!(m.state("/16400")["tracked"], true);
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("base/5/16400")).expect("read"), [2; 8192]);
}
