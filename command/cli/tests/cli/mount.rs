//! `seawall mount`: what it refuses and in which words; who dies, and what happens then.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::mounts::{Mounts, tracked};
use crate::common::{kill, wait_for, wait_for_end};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

#[test]
fn mountpoints_that_are_refused() {
    let Some(m) = Mounts::new() else { return };
    fs::create_dir_all(m.behind("inner")).expect("made");
    fs::create_dir(m.place.file("full")).expect("made");
    fs::write(m.place.file("full/x"), "").expect("written");
    m.mount_on("backing", "full").fails(1, &["full", "not empty"]);
    m.mount_on("backing", "backing/inner").fails(1, &["within each other"]);
    m.mount_on("backing", "nowhere").fails(1, &["nowhere", "No such file"]);
    m.mount_on("nowhere", "at").fails(1, &["nowhere", "No such file"]);
    m.mount_on("backing", "full/x").fails(1, &["is not a directory"]);
    m.mount_on("backing", "/proc").fails(1, &["/proc", "already a mountpoint"]);
    m.umount().fails(1, &["Seawall has mounted nothing"]);
    m.mount();
    m.mount_on("backing", "at").fails(1, &["already a mountpoint"]);
    fs::create_dir(m.place.file("at2")).expect("made");
    m.mount_on("backing", "at2").fails(1, &["backing", "already mounted"]);
    m.umount().succeeds();
}

#[test]
fn a_machine_without_fuse() {
    let Some(m) = Mounts::new() else { return };
    // A /dev of this thread's own, with nothing in it.
    mount(Some("none"), "/dev", Some("tmpfs"), MsFlags::empty(), None::<&str>).expect("a bare /dev");
    File::create("/dev/null").expect("made");
    let said = m.mount_on("backing", "at");
    umount2("/dev", MntFlags::MNT_DETACH).expect("the true /dev");
    said.fails(1, &["/dev/fuse", "modprobe fuse"]);
}

#[test]
fn a_file_is_logged_and_the_log_is_closed_at_the_end() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let state = m.state("x-wal");
    assert_eq!(state["tracked"], true, "{state}");
    assert!(m.behind("x-journal").is_dir(), "its guard is up");
    assert!(!m.at("x-journal").exists(), "and does not show");
    let mounts = m.place.status()["mounts"].clone();
    assert_eq!(mounts[0]["mountpoint"], *m.place.file("at").to_string_lossy(), "{mounts}");
    assert_eq!(mounts[0]["pid"], m.server(), "{mounts}");
    m.umount().fails(1, &["in use"]);
    drop(file);
    m.umount().succeeds();
    assert!(!m.behind("x-journal").exists(), "its guard is down");
    assert_eq!(fs::read(m.behind("x-wal")).expect("the file"), [2; 8192]);
}

/// A database's crash recovery syncs every file it has: what nobody wrote need not be logged.
#[test]
fn a_file_that_nobody_wrote_is_synced_and_not_registered() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("x-wal"), [1; 8192]).expect("made before");
    m.mount();
    let file = File::options().read(true).write(true).open(m.at("x-wal")).expect("opened");
    for _ in 0..3 {
        file.sync_all().expect("synced");
    }
    assert_eq!(m.place.status()["files"].as_array().map(Vec::len), Some(0), "nothing is registered");
    for _ in 0..2 {
        file.write_all_at(&[2; 8192], 0).expect("written");
        file.sync_all().expect("synced");
    }
    assert_eq!(m.state("x-wal")["tracked"], true, "its first write registers it");
    drop(file);
    m.umount().succeeds();
}

#[test]
fn umount_says_who_else_has_the_mount() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let mut other = Command::new("unshare").args(["--mount", "sleep", "1000"]).spawn().expect("a namespace");
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace("thread-self");
    wait_for("another namespace", || namespace(&other.id().to_string()) != own);
    let mut umount = m.place.command(&["umount", "at"]);
    let mut umount = umount.stderr(Stdio::piped()).spawn().expect("seawall starts");
    let mut said = String::new();
    let heard = BufReader::new(umount.stderr.take().expect("piped")).read_line(&mut said);
    other.kill().and_then(|()| other.wait()).expect("it is ours");
    heard.expect("it says what it waits for");
    assert!(said.contains(&format!("process {} (", other.id())), "{said}");
    assert!(umount.wait().expect("it ends").success());
}

#[test]
fn somebody_writes_behind_the_mount() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    drop(tracked(&m.at("x-wal")));
    let before = fs::read(m.at("x-wal")).expect("read");
    let behind = File::options().append(true).open(m.behind("x-wal")).expect("opened behind the mount");
    wait_for("the file to leave the log", || m.state("x-wal")["tracked"] == false);
    (&behind).write_all(b"behind").expect("written");
    drop(behind);
    let seen = || fs::read(m.at("x-wal")).expect("read");
    wait_for("what was written to be seen", || seen() == [&before[..], b"behind"].concat());
    m.umount().succeeds();
}

/// A file that is in no log: with a block cache the kernel cannot go past the mount.
#[test]
fn what_was_written_in_the_backing_directory_is_seen_at_the_next_open() {
    let Some(m) = Mounts::new() else { return };
    m.mount_cached("sqlite", "64M");
    let read = || fs::read(m.at("file")).expect("read");
    let write = |dir: &Path, fill: u8| {
        let file = File::options().write(true).open(dir).expect("opened");
        file.write_all_at(&[fill; 8192], 0).expect("written");
    };
    fs::write(m.behind("file"), [1; 8192]).expect("written");
    assert_eq!(read(), [1; 8192]);
    // Its time of change set back, as by rsync: only the other one shows it.
    let times = || fs::metadata(m.behind("file")).and_then(|meta| meta.modified()).expect("a time");
    let before = times();
    write(&m.behind("file"), 2);
    let file = File::options().write(true).open(m.behind("file")).expect("opened");
    file.set_modified(before).expect("set back");
    drop(file);
    assert_eq!(read(), [2; 8192]);
    // Another has it open, and has read it.
    let open = File::options().read(true).write(true).open(m.at("file")).expect("opened");
    open.read_exact_at(&mut [0; 8192], 0).expect("read");
    write(&m.behind("file"), 3);
    assert_eq!(read(), [3; 8192]);
    fs::write(m.behind("file"), [4; 9000]).expect("longer");
    assert_eq!(read(), [4; 9000], "its size too");
    // Another wrote it, here, a moment later: that hides it, until all have closed it.
    write(&m.behind("file"), 5);
    open.write_all_at(&[6; 4096], 4096).expect("written");
    drop(open);
    m.wait_released("file");
    assert_eq!(read(), [[5; 4096].as_slice(), &[6; 4096], &[4; 808]].concat());
    m.umount().succeeds();
}

/// A guard goes up while its SQLite database's journal is made, renamed and removed by another thread.
#[test]
fn names_stand_still_while_a_guard_goes_up() {
    const DATABASES: usize = 60;
    let Some(m) = Mounts::new() else { return };
    m.mount();
    for i in 0..DATABASES {
        let (journal, aside) = (m.at(&format!("{i}-journal")), m.at(&format!("{i}-aside")));
        let begin = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                begin.wait();
                fs::write(m.at(&format!("{i}-wal")), "the first write").expect("written");
            });
            begin.wait();
            while !writer.is_finished() {
                fs::write(&journal, "a journal").expect("made");
                fs::rename(&journal, &aside).expect("renamed");
                fs::rename(&aside, &journal).expect("renamed back");
                assert_eq!(fs::read(&journal).expect("it is there"), b"a journal");
                fs::remove_file(&journal).expect("removed");
            }
        });
        assert!(m.behind(&format!("{i}-journal/.seawall")).exists(), "the guard of {i} is where it belongs");
    }
    m.umount().succeeds();
}

/// The daemon lowers some of their guards by itself while the directory is looked at.
#[test]
fn a_directory_of_many_databases_is_removed() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    for round in 0..8 {
        let dir = m.at(&format!("d{round}"));
        fs::create_dir(&dir).expect("made");
        for i in 0..40 {
            let file = File::create(dir.join(format!("{i}-wal"))).expect("created");
            file.write_all_at(&[1; 4096], 0).expect("written");
            file.sync_data().expect("synced");
        }
        fs::remove_dir_all(&dir).expect("removed");
    }
    m.umount().succeeds();
}

#[test]
fn a_directory_with_nothing_but_guards_can_be_removed() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let dir = m.at("database");
    fs::create_dir(&dir).expect("made");
    drop(tracked(&dir.join("x-wal")));
    fs::write(dir.join("note"), "").expect("written");
    assert!(m.behind("database/x-journal").is_dir(), "its guard is up");
    fs::remove_file(dir.join("x-wal")).expect("removed");
    let left = fs::remove_dir(&dir).expect_err("there is a note in it");
    assert_eq!(left.kind(), std::io::ErrorKind::DirectoryNotEmpty, "{left}");
    assert!(m.behind("database/x-journal").is_dir(), "its guard is still up");
    fs::remove_file(dir.join("note")).expect("removed");
    fs::remove_dir(&dir).expect("nothing is left that shows");
    assert!(!m.behind("database").exists());
    fs::create_dir(&dir).expect("made again");
    drop(tracked(&dir.join("x-wal")));
    assert!(m.behind("database/x-journal").is_dir(), "guarded again");
    m.umount().succeeds();
    assert!(!m.behind("database/x-journal").exists(), "its guard is down");
}

/// Fsyncs of a file that the daemon does not take ask it again for a while, and not for ever.
#[test]
fn a_refused_file_is_asked_for_a_few_times() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    // Recovery could not write it: refused, and root may write it all the same.
    fs::write(m.behind("x-wal"), "").expect("made");
    fs::set_permissions(m.behind("x-wal"), std::os::unix::fs::PermissionsExt::from_mode(0o444)).expect("set");
    let file = File::options().write(true).open(m.at("x-wal")).expect("opened");
    let sync = |n: usize| {
        for _ in 0..n {
            file.write_all_at(b"x", 0).expect("written");
            file.sync_all().expect("synced");
        }
    };
    sync(2);
    fs::set_permissions(m.behind("x-wal"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    sync(1);
    assert_eq!(m.state("x-wal")["tracked"], true, "taken when it could be");
    drop(file);
    fs::write(m.behind("y-wal"), "").expect("made");
    fs::set_permissions(m.behind("y-wal"), std::os::unix::fs::PermissionsExt::from_mode(0o444)).expect("set");
    let file = File::options().write(true).open(m.at("y-wal")).expect("opened");
    for _ in 0..20 {
        file.write_all_at(b"x", 0).expect("written");
        file.sync_all().expect("synced");
    }
    fs::set_permissions(m.behind("y-wal"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    file.sync_all().expect("synced");
    let status = m.place.status();
    assert!(!status["files"].to_string().contains("y-wal"), "not asked any more: {status}");
    assert_eq!(
        status["left_out"]["path"],
        m.behind("y-wal").to_str().expect("a path"),
        "and said so: {status}"
    );
    drop(file);
    m.wait_released("y-wal");
    drop(tracked(&m.at("y-wal")));
    assert_eq!(m.state("y-wal")["tracked"], true, "opened anew, asked anew");
    let status = m.place.status();
    assert!(status["left_out"].is_null(), "it is managed now: {status}");
    m.umount().succeeds();
}

// Holds: K5
#[test]
fn the_server_is_killed() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let mut file = tracked(&m.at("x-wal"));
    file.write_all_at(&[3; 8192], 0).expect("written");
    file.sync_all().expect("synced");
    let server = m.server();
    kill(server);
    wait_for_end(server);
    const ENOTCONN: i32 = 107;
    // By io_uring, which is given up a little after its process: what comes meanwhile is aborted, or cancelled.
    const UNDER_WAY: [i32; 3] = [103, 125, 5];
    let gone = file.sync_all().expect_err("nobody serves it");
    let is_said = |e: &i32| *e == ENOTCONN || UNDER_WAY.contains(e);
    assert!(gone.raw_os_error().as_ref().is_some_and(is_said), "{gone}");
    assert!(file.read(&mut [0; 10]).is_err() || file.write_all_at(b"x", 0).is_err());
    let open = || File::open(m.at("y")).expect_err("nobody serves it").raw_os_error();
    wait_for("the mount to be given up", || open() == Some(ENOTCONN));
    drop(file);
    // The claim on the directory ends with the supervisor, which closes the log.
    wait_for("the next mount", || m.mount_on("backing", "at").code == Some(0));
    assert_eq!(fs::read(m.at("x-wal")).expect("the file"), [3; 8192]);
    m.umount().succeeds();
}

// Holds: K5
#[test]
fn the_daemon_is_killed() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    let file = tracked(&m.at("x-wal"));
    let old = m.place.daemon().expect("a daemon");
    kill(old);
    wait_for_end(old);
    file.write_all_at(&[4; 8192], 0).expect("written without a daemon");
    file.sync_all().expect("synced without a daemon");
    wait_for("another daemon", || m.place.daemon().is_some_and(|pid| pid != old));
    file.write_all_at(&[5; 8192], 8192).expect("written");
    file.sync_all().expect("synced");
    drop(file);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("x-wal")).expect("the file"), [[4; 8192], [5; 8192]].concat());
}

#[test]
fn a_read_only_backing_directory() {
    let Some(m) = Mounts::new() else { return };
    fs::write(m.behind("there"), "there").expect("written");
    let backing = m.place.file("backing");
    mount(Some(&backing), &backing, None::<&str>, MsFlags::MS_BIND, None::<&str>).expect("bound");
    let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(None::<&str>, &backing, None::<&str>, read_only, None::<&str>).expect("read-only");
    m.mount();
    assert_eq!(fs::read(m.at("there")).expect("read"), b"there");
    const EROFS: i32 = 30;
    let refused = File::create(m.at("new-wal")).expect_err("refused");
    assert_eq!(refused.raw_os_error(), Some(EROFS), "{refused}");
    let refused = File::options().write(true).open(m.at("there")).expect_err("refused");
    assert_eq!(refused.raw_os_error(), Some(EROFS), "{refused}");
    m.umount().succeeds();
}

#[test]
fn other_users_need_leave() {
    let Some(m) = Mounts::new() else { return };
    m.mount();
    fs::write(m.at("file"), "x").expect("written");
    let as_nobody = |path: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups", "cat"]).arg(path);
        command.output().expect("setpriv").status.success()
    };
    fs::set_permissions(m.place.data.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("opened");
    assert!(!as_nobody(&m.at("file")), "nobody else was let in");
    m.umount().succeeds();
    let pool = m.place.pool();
    m.place
        .seawall(&["mount", "backing", "at", "--pool", pool, "--preset", "sqlite", "--allow-other"])
        .succeeds();
    assert!(as_nobody(&m.at("file")), "now everybody is");
    m.umount().succeeds();
}
