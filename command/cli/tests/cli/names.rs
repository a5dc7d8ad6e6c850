//! Names in the log: new files, renames and removals wait for no disk, and are there after a power cut.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use crate::common::volume::{Running, Volume, processes};
use crate::common::{Place, signal, wait_for};
use serde_json::Value;

/// A disk with a file system that keeps the order of names, and the program. `None` where there are no loop devices.
fn on(kind: &str) -> Option<Volume> {
    made(kind, &[])
}

fn made(kind: &str, options: &[&str]) -> Option<Volume> {
    at(Place::new(), kind, options)
}

fn at(place: Place, kind: &str, options: &[&str]) -> Option<Volume> {
    Volume::of(place, kind, options, ("names", include_str!("programs/names.c")))
}

/// Runs the program until it is over.
fn run(volume: &Volume, how: &str, times: u32) -> Running {
    volume.run(&[how, volume.at().to_str().expect("text"), &times.to_string()])
}

/// The directory, as `status` has it.
fn directory(volume: &Volume) -> Value {
    file(volume, &volume.data)
}

/// A file or a directory likewise.
fn file(volume: &Volume, path: &Path) -> Value {
    let status = volume.place.status();
    let is_it = |file: &&Value| file["path"].as_str() == path.to_str();
    status["files"].as_array().expect("files").iter().find(is_it).cloned().unwrap_or_default()
}

/// Runs a shell in the directory, until it says that it is over.
fn shell(volume: &Volume, script: &str) -> Running {
    let (data, pool) = (volume.data.to_str().expect("text"), volume.place.pool());
    let mut shell =
        volume.place.command(&["run", "--quiet", "--pool", pool, "--preset", "any", "--unguarded"]);
    shell.args(["--data", data, "--", "sh", "-c", script]).current_dir(data);
    let mut run = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("seawall starts");
    let (to, out) = (run.stdin.take(), BufReader::new(run.stdout.take().expect("a pipe")));
    let mut running = Running { run, to, out };
    until(&mut running, "over");
    running
}

/// The last number that was durable, when the program says a line.
fn until(running: &mut Running, line: &str) -> u32 {
    let mut last = 0;
    loop {
        let mut said = String::new();
        assert!(running.out.read_line(&mut said).expect("said") > 0, "it ended");
        match said.trim() {
            said if said == line => return last,
            said => last = said.parse().expect("a number"),
        }
    }
}

fn number(i: u32) -> String {
    format!("number {i}, and so many bytes\n")
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn new_files_that_replace_others_wait_for_no_disk_and_are_there_after_a_power_cut() {
    for (kind, is_on_disk) in [("ext4", false), ("xfs", false), ("ext4", true)] {
        let place = if is_on_disk { Place::on_disk("16M") } else { Place::new() };
        let Some(mut scene) = at(place, kind, &[]) else { continue };
        let mut running = run(&scene, "replace", 40);
        let durable = until(&mut running, "over");
        let directory = directory(&scene);
        let syncs = ["absorbed", "real_syncs"].map(|count| directory[count].as_u64().expect("a count"));
        assert!(syncs[0] >= 39 && syncs[1] <= 2, "{kind}: {directory}");
        scene.cut(running);
        scene.recover();
        assert_eq!(scene.files(), BTreeMap::from([("store".to_owned(), number(durable))]), "{kind}");
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(scene.data.join("store")).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o640, "{kind}");
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn directories_that_are_put_in_place_are_there_after_a_power_cut() {
    const PARTS: u32 = 12;
    for (kind, is_mount) in [("ext4", false), ("ext4", true), ("xfs", false)] {
        let Some(mut scene) = on(kind) else { continue };
        if is_mount {
            scene.serve();
        }
        let mut running = run(&scene, "parts", PARTS);
        assert_eq!(until(&mut running, "over"), PARTS);
        let directory = directory(&scene);
        let syncs = ["absorbed", "real_syncs"].map(|count| directory[count].as_u64().expect("a count"));
        assert!(syncs[0] >= u64::from(PARTS) - 1 && syncs[1] <= 2, "{kind}, mount {is_mount}: {directory}");
        let part = file(&scene, &scene.data.join(format!("part-{PARTS}")));
        assert!(part["tracked"] == true && part["real_syncs"] == 0, "{kind}, mount {is_mount}: {part}");
        assert!(!scene.data.join("part-3/SEAWALL-UNREPLAYED").exists(), "the one above has a note");
        scene.cut(running);
        scene.recover();
        let mut parts: Vec<String> = (1..=PARTS).map(|i| format!("part-{i}")).collect();
        parts.sort();
        assert_eq!(scene.names(), parts, "{kind}, mount {is_mount}");
        for i in 1..=PARTS {
            let rows = fs::read_to_string(scene.data.join(format!("part-{i}/rows")));
            assert_eq!(rows.expect("read"), number(i), "{kind}, mount {is_mount}");
        }
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn directories_that_are_made_and_removed_leave_the_one_above_in_the_log() {
    for (kind, is_mount) in [("ext4", false), ("ext4", true), ("xfs", false)] {
        let Some(mut scene) = on(kind) else { continue };
        if is_mount {
            scene.serve();
        }
        let mut running = run(&scene, "scratch", 12);
        assert_eq!(until(&mut running, "over"), 12);
        let directory = directory(&scene);
        let real = directory["real_syncs"].as_u64().expect("a count");
        assert!(directory["tracked"] == true && real <= 2, "{kind}, mount {is_mount}: {directory}");
        scene.cut(running);
        scene.recover();
        assert_eq!(scene.names(), Vec::<String>::new(), "{kind}, mount {is_mount}");
    }
}

/// Each of them another process; and a directory in another new one.
// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn what_a_shell_makes_and_syncs_in_new_directories_is_there_after_a_power_cut() {
    let Some(mut scene) = on("ext4") else { return };
    let script = "sync . .; mkdir -p new/below; echo one > new/below/file; sync new/below/file; \
                  mkdir other; echo two > other/file; sync other/file other .; echo over; exec sleep 1000";
    let running = shell(&scene, script);
    for path in ["new", "new/below", "other"] {
        let known = file(&scene, &scene.data.join(path));
        assert!(known["tracked"] == true && known["real_syncs"] == 0, "{path}: {known}");
    }
    scene.cut(running);
    scene.recover();
    for (path, text) in [("new/below/file", "one\n"), ("other/file", "two\n")] {
        assert_eq!(fs::read_to_string(scene.data.join(path)).expect("read"), text);
    }
}

/// The disk may have something else of it than what is in it now.
#[test]
fn a_new_directory_from_which_a_name_went_is_the_disks() {
    let Some(mut scene) = on("ext4") else { return };
    let script = "sync . .; mkdir new; echo one > new/old; mv new/old new/file; sync new/file; \
                  mkdir -m 700 kept; chmod 750 kept; echo two > kept/file; sync kept/file; echo over; exec sleep 1000";
    let running = shell(&scene, script);
    for path in ["new", "kept"] {
        assert!(file(&scene, &scene.data.join(path)).is_null(), "{path}");
    }
    scene.cut(running);
    scene.recover();
    for (path, text) in [("new/file", "one\n"), ("kept/file", "two\n")] {
        assert_eq!(fs::read_to_string(scene.data.join(path)).expect("read"), text);
    }
    let mode = fs::metadata(scene.data.join("kept")).map(|kept| std::os::unix::fs::MetadataExt::mode(&kept));
    assert_eq!(mode.expect("there") & 0o777, 0o750);
}

/// Recovery made it again with nothing in it: its content was synced where it came from, and is in no log.
#[test]
fn regression_a_file_that_is_linked_into_a_new_directory_keeps_what_was_synced_of_it() {
    let Some(mut scene) = on("ext4") else { return };
    let script = "sync . .; mkdir ../spool; echo one > ../spool/mail; sync ../spool/mail; mkdir new; \
                  ln ../spool/mail new/mail; rm ../spool/mail; sync new; echo over; exec sleep 1000";
    let running = shell(&scene, script);
    scene.cut(running);
    scene.recover();
    assert_eq!(fs::read_to_string(scene.data.join("new/mail")).expect("read"), "one\n");
}

/// The smallest log knows 256 files and directories at a time.
#[test]
fn regression_directories_give_up_their_places_in_the_log_to_others() {
    const SHELVES: u32 = 300;
    let Some(mut scene) = on("ext4") else { return };
    let mut running = run(&scene, "shelves", SHELVES);
    assert_eq!(until(&mut running, "over"), SHELVES);
    let status = scene.place.status();
    let counts = ["evicted", "turned_away"].map(|count| status[count].as_u64());
    assert!(counts[0] >= Some(40) && counts[1] == Some(0), "evicted, turned away: {counts:?}");
    assert!(!file(&scene, &scene.data.join(format!("shelf-{SHELVES}"))).is_null());
    scene.cut(running);
    scene.recover();
    for i in 1..=SHELVES {
        let book = fs::read_to_string(scene.data.join(format!("shelf-{i}/book")));
        assert_eq!(book.expect("read"), number(i));
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_directory_is_what_was_acknowledged_wherever_the_power_goes() {
    for how in ["replace", "unique"] {
        let Some(mut scene) = on("ext4") else { return };
        let mut running = run(&scene, how, 1_000_000);
        let mut said = String::new();
        while said.trim() != "200" {
            said.clear();
            running.out.read_line(&mut said).expect("said");
        }
        let mut out = std::mem::replace(&mut running.out, BufReader::new(spare()));
        scene.cut(running);
        let mut durable = 200;
        while out
            .read_line({
                said.clear();
                &mut said
            })
            .is_ok_and(|len| len > 0)
        {
            durable = said.trim().parse().unwrap_or(durable);
        }
        scene.recover();
        let files = scene.files();
        let newest =
            files.values().filter_map(|text| text.get(7..)?.split(',').next()?.parse::<u32>().ok()).max();
        let newest = newest.unwrap_or_else(|| panic!("{how}: {files:?}"));
        assert!(newest >= 200 && newest <= durable + 1, "{how}: {newest} of {durable}: {files:?}");
        let most = if how == "replace" { 2 } else { 3 };
        assert!(files.len() <= most, "{how}: {files:?}");
    }
}

/// A PostgreSQL with one database, as far as the preset knows, on a disk of its own; and the directory of its relations.
fn postgres(place: Place) -> Option<(Volume, PathBuf)> {
    let scene = at(place, "ext4", &[])?;
    let base = scene.data.join("base/5");
    fs::create_dir_all(&base).expect("made");
    fs::write(scene.data.join("PG_VERSION"), "15\n").expect("written");
    scene.sync();
    Some((scene, base))
}

/// Runs the program there, under the policy that keeps pages whole.
fn run_postgres(scene: &Volume, how: &str, times: u32) -> Running {
    let data = scene.data.to_str().expect("text");
    scene.run_as(&["--preset", "postgres", "--policy", "atomic"], &[how, data, &times.to_string()])
}

/// Under the policy that keeps pages whole, a relation's file waits for no disk when it is made, and for none when it goes.
#[test]
fn relations_are_made_and_removed_without_the_disk() {
    for is_on_disk in [false, true] {
        let place = if is_on_disk { Place::on_disk("16M") } else { Place::new() };
        let Some((mut scene, base)) = postgres(place) else { return };
        let mut running = run_postgres(&scene, "relations", 12);
        until(&mut running, "over");
        let directory = file(&scene, &base);
        assert_eq!(
            (&directory["tracked"], &directory["real_syncs"], &directory["left"]),
            (&true.into(), &1.into(), &0.into()),
            "{directory}"
        );
        // Of one that was renamed the first sync is counted as one of its name.
        for (name, syncs) in [("0", 1), ("2", 0), ("10", 0)] {
            let relation = file(&scene, &base.join(name));
            let is = (&relation["tracked"], &relation["real_syncs"]);
            assert_eq!(is, (&true.into(), &syncs.into()), "{relation}");
            assert_eq!(relation["watermark"], 0, "the disk need not have it: {relation}");
        }
        assert_eq!(file(&scene, &base.join("1")), Value::Null, "it is gone");
        scene.cut(running);
        scene.recover();
        let names: Vec<usize> = (0..11).filter(|i| base.join(i.to_string()).exists()).collect();
        assert_eq!(names, [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(fs::read_dir(&base).expect("listed").count(), names.len());
        for i in names {
            let holds = if i == 0 { b'a' + 11 } else { b'a' + i as u8 };
            assert_eq!(fs::read(base.join(i.to_string())).expect("read"), [holds; 8192], "{i}");
        }
    }
}

/// A new relation's pages go around the log until another process syncs it, or writes to it: each later one is a record.
// Holds: internals/SEMANTICS#policy-atomic
#[test]
fn a_new_relation_goes_around_the_log_until_another_process_syncs_or_writes_it() {
    for (is_on_disk, how) in
        [(false, "unsynced"), (false, "unsynced-other"), (true, "unsynced"), (true, "unsynced-other")]
    {
        let place = if is_on_disk { Place::on_disk("16M") } else { Place::new() };
        let Some((mut scene, base)) = postgres(place) else { return };
        let mut running = run_postgres(&scene, how, 300);
        assert_eq!(until(&mut running, "made"), 0);
        let path = base.join("16384");
        assert_eq!(file(&scene, &path), Value::Null, "nothing of it is in the log");
        writeln!(running.to.as_mut().expect("a pipe"), "sync").expect("told");
        assert_eq!(until(&mut running, "over"), 0);
        let relation = file(&scene, &path);
        let (second, records) = if how == "unsynced" { (b'a', 1) } else { (b'c', 2) };
        assert_eq!(
            (&relation["tracked"], &relation["writes"]),
            (&true.into(), &records.into()),
            "{how}: {relation}"
        );
        scene.cut(running);
        scene.recover();
        let pages = fs::read(&path).expect("read");
        let expected: Vec<u8> = [&[b'b', second][..], &[b'a'; 298]].concat();
        let is = pages.chunks(8192).map(|page| page.iter().all(|byte| *byte == page[0]).then_some(page[0]));
        assert_eq!(is.collect::<Option<Vec<u8>>>(), Some(expected), "{how}, {is_on_disk}");
    }
}

/// A MariaDB with one schema, as far as the preset knows, on a disk of its own; served on a mount, if `is_mount`.
fn mariadb(place: Place, is_mount: bool) -> Option<Volume> {
    let mut scene = at(place, "ext4", &[])?;
    fs::create_dir_all(scene.data.join("shop")).expect("made");
    fs::write(scene.data.join("ib_logfile0"), [0; 4096]).expect("written");
    scene.sync();
    if is_mount {
        scene.serve_as("mariadb");
    }
    Some(scene)
}

/// Runs the program there.
fn run_mariadb(scene: &Volume, how: &str, times: u32) -> Running {
    let (at, times) = (scene.at(), times.to_string());
    let words = [how, at.to_str().expect("text"), &times];
    if scene.at() == scene.data { scene.run_as(&["--preset", "mariadb"], &words) } else { scene.run(&words) }
}

/// After a power cut: one table, replaced for the last time in this round, and the binary log of so many rounds.
fn has_table(scene: &Volume, replaced: u32, rounds: u32, why: &str) {
    let shop = scene.data.join("shop");
    let has: Vec<_> =
        fs::read_dir(&shop).expect("listed").map(|entry| entry.expect("read").file_name()).collect();
    assert_eq!(has, ["old.ibd"], "{why}");
    assert_eq!(fs::read(shop.join("old.ibd")).expect("read"), number(replaced).into_bytes(), "{why}");
    let log: String = (1..=rounds).map(number).collect();
    assert_eq!(fs::read(scene.data.join("binlog.000001")).expect("read"), log.into_bytes(), "{why}");
}

/// MariaDB syncs no directory after it removed or renamed a table: a file system with a journal makes that durable with the next sync
/// of the binary log, which is a record here.
// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_table_that_was_replaced_is_that_after_a_power_cut_although_nobody_synced_its_directory() {
    for (is_on_disk, is_mount) in [(false, false), (true, false), (false, true)] {
        let place = if is_on_disk { Place::on_disk("16M") } else { Place::new() };
        let Some(mut scene) = mariadb(place, is_mount) else { return };
        let why = format!("disk: {is_on_disk}, mount: {is_mount}");
        let mut running = run_mariadb(&scene, "tables", 5);
        assert_eq!(until(&mut running, "over"), 5, "{why}");
        let binlog = file(&scene, &scene.data.join("binlog.000001"));
        assert!(binlog["absorbed"].as_u64() >= Some(4), "no sync of it is the disk's: {binlog}");
        scene.cut(running);
        scene.recover();
        has_table(&scene, 5, 5, &why);
    }
}

/// Has the program do a round.
fn told(running: &mut Running, what: &str, round: u32) {
    writeln!(running.to.as_mut().expect("a pipe"), "{what}").expect("told");
    assert_eq!(until(running, &round.to_string()), 0, "a round");
}

/// The daemon could not take the directory when its first name changed. That says nothing about the next time.
// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_schema_whose_names_cannot_be_logged_now_is_asked_for_again_and_its_changes_are_durable() {
    for (how, is_mount) in [("freeze", false), ("stop", false), ("freeze", true), ("stop", true)] {
        for is_cut_meanwhile in [true, false] {
            let Some(mut scene) = mariadb(Place::new(), is_mount) else { return };
            let why = format!("{how}, mount: {is_mount}, cut meanwhile: {is_cut_meanwhile}");
            let mut running = run_mariadb(&scene, "told", 10_000);
            (1..=3).for_each(|round| told(&mut running, "log", round));
            let daemon = scene.place.daemon().expect("a daemon");
            let seawall = |what: &str| {
                scene.place.seawall(&[what, "--pool", scene.place.pool()]).succeeds();
            };
            if how == "freeze" {
                seawall("freeze")
            } else {
                signal(daemon, "STOP")
            }
            told(&mut running, "table", 4);
            let mut last = 4;
            if !is_cut_meanwhile {
                if how == "freeze" {
                    seawall("thaw")
                } else {
                    signal(daemon, "CONT")
                }
                // The program asks a daemon that was stopped once a second, and waits a moment for its answer.
                wait_for("the schema to be in the log", || {
                    last += 1;
                    told(&mut running, "table", last);
                    file(&scene, &scene.data.join("shop"))["tracked"] == true
                });
                last += 1;
                told(&mut running, "table", last);
            }
            scene.cut_with(daemon, running);
            scene.recover();
            has_table(&scene, last, last, &why);
        }
    }
}

/// Each removal would wait for a log on a disk, and nobody asked for that.
#[test]
fn removals_without_syncs_do_not_wait_for_a_log_on_a_disk() {
    let Some(scene) = at(Place::on_disk("16M"), "ext4", &[]) else { return };
    let mut running = run(&scene, "burst", 300);
    until(&mut running, "over");
    let directory = directory(&scene);
    assert_eq!((&directory["tracked"], &directory["left"]), (&false.into(), &1.into()), "{directory}");
    let (daemon, all) = (scene.place.daemon().expect("a daemon"), processes(running.run.id()));
    running.kill(daemon, &all);
}

fn spare() -> ChildStdout {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().expect("started");
    let out = child.stdout.take().expect("a pipe");
    child.wait().expect("ended");
    out
}

/// The log's records of the file as a whole must not come back over it.
// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_file_that_became_durable_in_another_way_keeps_what_it_has() {
    for how in ["fsync", "msync", "dsync", "syncfs"] {
        let Some(mut scene) = on("ext4") else { return };
        let mut running = run(&scene, how, 0);
        assert_eq!(until(&mut running, "over"), 2, "{how}");
        scene.cut(running);
        scene.recover();
        assert_eq!(scene.files().get("file"), Some(&number(2)), "{how}");
    }
}

/// A file system with a journal makes it durable with the next sync of any file, and programs rely on that (RocksDB's tables, when
/// they are written through mappings): such a sync may be a record alone here.
// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn what_a_file_outside_the_log_was_cut_to_is_durable_before_another_file_s_sync() {
    for (how, is_mount) in [("cut", false), ("cut-mapped", false), ("cut", true), ("cut-mapped", true)] {
        let Some(mut scene) = on("ext4") else { return };
        if is_mount {
            scene.serve();
        }
        let mut running = run(&scene, how, 900_001);
        assert_eq!(until(&mut running, "over"), 4, "{how}, mount: {is_mount}");
        scene.cut(running);
        scene.recover();
        let has = |name: &str| fs::read(scene.data.join(name)).expect("there");
        let journal: String = (1..=4).map(number).collect();
        assert_eq!(has("journal"), journal.into_bytes(), "{how}, mount: {is_mount}");
        assert_eq!(has("table").len(), 900_001, "{how}, mount: {is_mount}");
    }
}

/// A record has no room for them: such a file is synced for real.
#[test]
fn a_file_with_extended_attributes_keeps_them() {
    let Some(mut scene) = on("ext4") else { return };
    let mut running = run(&scene, "xattr", 0);
    assert_eq!(until(&mut running, "over"), 1);
    scene.cut(running);
    scene.recover();
    let mut room = [0_u8; 8];
    let len = rustix::fs::getxattr(scene.data.join("file"), "user.kept", &mut room[..]);
    assert_eq!(len.map(|len| room[..len].to_vec()), Ok(b"yes".to_vec()));
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn what_a_program_without_seawall_does_to_names_is_not_undone() {
    let Some(mut scene) = on("ext4") else { return };
    let mut running = run(&scene, "replace", 3);
    until(&mut running, "over");
    fs::rename(scene.data.join("store"), scene.data.join("taken")).expect("renamed");
    File::open(&scene.data).expect("open").sync_all().expect("synced");
    wait_for("the directory to leave the log", || directory(&scene)["tracked"] == false);
    scene.cut(running);
    scene.recover();
    assert_eq!(scene.files(), BTreeMap::from([("taken".to_owned(), number(3))]));
}

/// Where the order of names is not kept, their syncs are the disk's.
#[test]
fn on_a_file_system_without_order_names_are_not_in_the_log_and_status_says_so() {
    let Some(scene) = made("ext4", &["-O", "^has_journal"]) else { return };
    let mut running = run(&scene, "replace", 5);
    until(&mut running, "over");
    assert_eq!(directory(&scene), Value::Null);
    let left_out = scene.place.status()["left_out"].clone();
    assert_eq!(left_out["path"].as_str(), scene.data.to_str(), "{left_out}");
    assert!(
        left_out["why"].as_str().is_some_and(|why| why.contains("changes of names in order")),
        "{left_out}"
    );
    let (daemon, all) = (scene.place.daemon().expect("a daemon"), processes(running.run.id()));
    running.kill(daemon, &all);
}
