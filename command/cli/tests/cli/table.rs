//! The table of managed files: full, and what more of a database than its own directory goes into it.

use std::fs;
use std::path::Path;

use crate::common::{Place, Said, cluster, kill, signal, wait_for};

/// Entries of the smallest pool.
const ENTRIES: usize = 256;

#[test]
fn a_full_table_gives_up_files_that_nobody_has_open() {
    let Some(place) = cluster::place() else { return };
    let write = "for my $i (1 .. 300) { open(my $f, '+>', 'base/5/' . (16384 + $i)) or die; \
                 syswrite($f, 'x' x 4096) == 4096 or die; close $f; }";
    let run = cluster::start(&place, "atomic", write);
    let status = place.status();
    let files = status["files"].as_array().expect("files");
    assert!(files.len() <= ENTRIES && files.len() > ENTRIES / 2, "{}", files.len());
    assert!(files.iter().all(|file| file["tracked"] == true), "{files:#?}");
    assert_eq!(status["files_max"], ENTRIES);
    assert!(status["evicted"].as_u64() >= Some(300 - ENTRIES as u64), "{}", status["evicted"]);
    assert_eq!(status["turned_away"], 0);
    cluster::finish(run);
}

#[test]
fn a_table_of_files_in_use_leaves_others_to_the_kernel_and_says_so() {
    let Some(place) = cluster::place() else { return };
    // Three hundred stay open; then some are closed, and the last one is synced again.
    let write = "use IO::Handle; my @f; for my $i (1 .. 300) { open(my $f, '+>', 'base/5/' . (16384 + $i)) or die; \
                 syswrite($f, 'x' x 4096) == 4096 or die; push @f, $f; } \
                 open(my $m, '>', 'crowded') or die; close $m; <STDIN>; close(shift @f) for 1 .. 100; \
                 for my $try (1 .. 5) { select(undef, undef, undef, 0.3); $f[-1]->sync or die; \
                 syswrite($f[-1], 'y' x 4096) == 4096 or die; }";
    let mut run = cluster::start_until(&place, "atomic", write, "crowded");
    let status = place.status();
    assert_eq!(status["files"].as_array().map(Vec::len), Some(ENTRIES));
    assert!(status["turned_away"].as_u64() > Some(0), "{}", status["turned_away"]);
    let told = place.seawall(&["status", "--pool", place.pool()]);
    assert!(told.out.contains("FULL"), "{}", told.out);
    cluster::go_on(&mut run);
    wait_for("the program", || place.file("done").exists());
    let status = place.status();
    let last = cluster::file(&status, "/16684");
    assert!(last.is_some_and(|file| file["tracked"] == true), "it asked again when it was synced: {last:?}");
    cluster::finish(run);
}

#[test]
fn a_tablespace_made_at_run_time_is_managed_from_its_first_file_on() {
    let Some(place) = cluster::place() else { return };
    let elsewhere = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let real = elsewhere.path().canonicalize().expect("a real path");
    let space = real.display();
    let write = format!(
        "mkdir '{space}/PG_15_202209061' or die; mkdir '{space}/PG_15_202209061/5' or die; \
         symlink('{space}', 'pg_tblspc/16399') or die; \
         open(my $f, '+>', 'pg_tblspc/16399/PG_15_202209061/5/16400') or die; \
         syswrite($f, 'x' x 8192) == 8192 or die;"
    );
    let run = cluster::start(&place, "atomic", &write);
    let status = place.status();
    let file = real.join("PG_15_202209061/5/16400");
    let found = cluster::file(&status, file.to_str().expect("UTF-8"));
    // The write. Nothing is truncated by opening a file that the open makes.
    let found = found.unwrap_or_else(|| panic!("{} is not managed: {status:#}", file.display()));
    assert!(found["tracked"] == true && found["writes"] == 1 && found["untracked_writes"] == 0, "{found:#}");
    assert_eq!(status["not_covered"].as_array().map(Vec::len), Some(0));
    says_what_is_not_covered(&place);
    cluster::finish(run);
}

// Holds: K2
#[test]
fn what_is_made_while_the_daemon_is_replaced_waits_for_the_next_one() {
    let Some(place) = cluster::place() else { return };
    let write = "open(my $m, '>', 'started') or die; close $m; <STDIN>; \
                 open(my $f, '+>', 'base/5/16400') or die; syswrite($f, 'x' x 8192) == 8192 or die;";
    let mut run = cluster::start_until(&place, "atomic", write, "started");
    let daemon = place.daemon().expect("a daemon");
    // Whoever would start the next one is stopped.
    signal(run.id().into(), "STOP");
    kill(daemon);
    cluster::go_on(&mut run);
    wait_for("the file", || place.file("base/5/16400").exists());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let waits = !place.file("done").exists();
    signal(run.id().into(), "CONT");
    assert!(waits, "written past the log while no daemon was there");
    wait_for("the program", || place.file("done").exists());
    let status = place.status();
    let found = cluster::file(&status, "/16400");
    assert!(found.is_some_and(|f| f["tracked"] == true && f["untracked_writes"] == 0), "{status:#}");
    cluster::finish(run);
}

/// Seawall does not follow a link that somebody makes without it, but reports it.
fn says_what_is_not_covered(place: &Place) {
    let other = tempfile::tempdir_in("/var/tmp").expect("a directory");
    std::os::unix::fs::symlink(other.path(), place.file("pg_tblspc/16999")).expect("linked");
    let status = place.status();
    let not_covered = status["not_covered"].as_array().expect("directories");
    let real = other.path().canonicalize().expect("a real path");
    assert!(not_covered.iter().any(|dir| Path::new(dir.as_str().unwrap_or_default()) == real), "{status:#}");
    let told = place.seawall(&["status", "--pool", place.pool()]);
    assert!(told.out.contains("NOT COVERED"), "{}", told.out);
    fs::remove_file(place.file("pg_tblspc/16999")).expect("removed");
}

/// A database of more files than the usual log's table has entries.
#[test]
fn a_log_is_as_large_as_the_table_of_an_atomic_database_must_be() {
    let Some(place) = cluster::place() else { return };
    for i in 0..700 {
        fs::write(place.file(&format!("base/5/{}", 20_000 + i)), "").expect("made");
    }
    let notes = place.file("notes");
    let run = |options: &[&str], script: &str| {
        let mut command =
            place.command(&["run", "--preset", "postgres", "--policy", "atomic", "--data", "."]);
        command.args(options).args(["--", "sh", "-c", script]).env("SEAWALL_NOTES", &notes);
        Said::from(command.output().expect("runs"))
    };
    let log = place.ram("a.pool");
    let made = ["--emulated", "--pool", &log];
    run(&made, "true").succeeds();
    assert_eq!(fs::metadata(&log).expect("made").len(), 256 << 20, "1024 entries");
    let disk = place.file("b.log");
    let made = ["--block", disk.to_str().expect("a path")];
    run(&made, "true").succeeds();
    let inspected = place.seawall(&["inspect", "--json", made[1]]).json();
    assert_eq!(inspected["size"], 256 << 20);
    // One that is there already: `run` warns before the command starts, and nobody else does.
    let many = "for i in 1 2 3 4; do for j in 1 2 3; do dd if=/dev/zero of=base/5/$((20000+i*10+j)) bs=8192 count=1 \
                conv=notrunc,fsync status=none & done; done; wait";
    let said = run(&["--pool", place.pool()], many);
    said.succeeds().says(&["WARNING", "700 data files", "256 at a time", "--size 1G"]);
    assert_eq!(said.err.matches("TEAR").count(), 1, "{}", said.err);
}

/// The processes of a database would all say the same.
#[test]
fn that_pages_can_tear_is_said_by_one_process() {
    let Some(place) = cluster::place() else { return };
    // They are there before anybody has anything to say.
    let others = "for my $i (1 .. 4) { next if fork; select(undef, undef, undef, 0.02) until -e 'full'; \
                  open(my $f, '+>', 'base/5/' . (30000 + $i)) or die; syswrite($f, 'x' x 4096) == 4096 or die; exit; }";
    let hold = "my @f; for my $i (1 .. 300) { open(my $f, '+>', 'base/5/' . (16384 + $i)) or die; \
                syswrite($f, 'x' x 4096) == 4096 or die; push @f, $f; } \
                open(my $d, '>', 'full') or die; close $d; 1 while wait > 0;";
    let run =
        ["run", "--pool", place.pool(), "--preset", "postgres", "--policy", "atomic", "--data", ".", "--"];
    let mut command = place.command(&run);
    let said = Said::from(command.args(["perl", "-e", &format!("{others} {hold}")]).output().expect("runs"));
    said.succeeds().says(&["a data file is not in the log"]);
    assert_eq!(said.err.matches("can tear").count(), 1, "{}", said.err);
}
