//! The contract: the same cases on the bare file system and under Seawall, traces identical.
//!
//! * `SEAWALL_BIN`: the `seawall` to test (default: this workspace's, built if absent).
//! * `SEAWALL_CONTRACT_BARE=1`: bare on both sides, to test the cases themselves.
//! * `SEAWALL_CONTRACT_MEDIUM=block`: the log on a disk, of every test.
//! * `SEAWALL_CONTRACT_CASE=NAME`: one case or one family only.
//! * `SEAWALL_CONTRACT_KEEP=1`: leave the work directories.

use crate::common::bounded;
use crate::common::cases::{LIMIT, expected, program};
use crate::common::disk::Disk;
use crate::common::files;
use crate::common::seawall::{Medium, Pool, bare_only};
use crate::common::trace;
use crate::common::work::Work;
use std::path::Path;
use std::process::Command;

/// Runs `program` under Seawall; bare where the cases themselves are being tested.
fn under_seawall(pool: &Pool, directory: &Path, program: &mut Command) -> bounded::Finished {
    if bare_only() {
        return bounded::run(program, "the cases, bare again", LIMIT);
    }
    bounded::run(&mut pool.around(directory, program), "the cases under seawall", LIMIT)
}

fn compare(bare: &bounded::Finished, seawall: &bounded::Finished) {
    let differences = trace::differences(&bare.stdout, &seawall.stdout);
    assert!(
        differences.is_empty(),
        "{} of {} cases differ:\n\n{}\n\nstandard error under seawall:\n{}",
        differences.len(),
        trace::cases(&bare.stdout).len(),
        differences.join("\n\n"),
        seawall.stderr,
    );
    assert!(seawall.status.success(), "under seawall: {}\n{}", seawall.ending(), seawall.output());
}

#[test]
fn every_case_agrees_with_the_bare_file_system() {
    every_case_agrees(Pool::new("cases", "256M"));
}

#[test]
fn every_case_agrees_with_the_log_on_a_block_device() {
    every_case_agrees(Pool::on(Medium::Block, "cases", "64M"));
}

// Holds: internals/CACHE#tested
#[test]
fn every_case_agrees_with_a_block_cache() {
    every_case_agrees(Pool::cached("cases", "256M"));
}

fn every_case_agrees(pool: Pool) {
    let work = Work::new("cases");
    let right = work.directory("seawall");
    let found = under_seawall(&pool, &right, &mut program(&right, &work, &[]));
    compare(expected(), &found);
}

/// Each side on a fresh small file system, because each fills it.
#[test]
fn a_full_file_system_agrees() {
    let work = Work::new("space");
    let side = |name: &str| Disk::new(&work.directory(name), 48);
    let (Some(left), Some(right)) = (side("bare"), side("seawall")) else { return };
    let mut bare_side = program(left.path(), &work, &["space"]);
    let expected = bounded::run(&mut bare_side, "the cases, bare", LIMIT).expect_success("the cases, bare");
    let pool = Pool::new("space", "64M");
    let found = under_seawall(&pool, right.path(), &mut program(right.path(), &work, &["space"]));
    drop(pool);
    compare(&expected, &found);
}

/// While nothing is lost, a replay of the log has nothing to say: it must change no file. It would,
/// were a write around the log ever acknowledged without retiring the records below it.
// Holds: P4
#[test]
fn replay_over_whole_files_changes_nothing() {
    if bare_only() {
        return;
    }
    let work = Work::new("replay");
    let directory = work.directory("data");
    let pool = Pool::new("replay", "256M");
    let mut cases = program(&directory, &work, &[]);
    cases.args(["--keep", "--linger"]);
    let run = bounded::Running::start(&mut pool.around(&directory, &cases), "the cases under seawall");
    run.wait_for("all cases ran", LIMIT);
    pool.kill_everything();
    drop(run);
    let before = files::contents(&directory);
    let said = pool.replay();
    let changed = files::changed(&before, &files::contents(&directory));
    assert!(
        changed.is_empty(),
        "the replay changed files that were whole:\n{}\n{}",
        changed.join("\n"),
        said.output()
    );
}

/// The same with names in the log: a replay makes no name anew, takes none away, and gives no file another's content. Then the disk
/// loses all that nobody has synced for real, and the log has what was synced: every file, by every name.
// Holds: P1, P4
#[test]
fn names_are_as_they_were_after_a_replay_and_after_a_power_cut() {
    if bare_only() {
        return;
    }
    let work = Work::new("names");
    let Some(disk) = Disk::new(&work.directory("disk"), 512) else { return };
    let directory = disk.path().join("data");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::File::open(disk.path()).and_then(|above| above.sync_all()).expect("durable");
    let pool = Pool::with_names("names", "256M");
    let families = ["names", "unlink", "open", "metadata", "truncate", "write", "append", "set_id"];
    let mut cases = program(&directory, &work, &families);
    // SQLite's names have guards of their own beside them, and each changes the directory behind the log's back.
    cases.args(["--variant", "bypass", "--keep", "--settle", "--linger"]);
    let run = bounded::Running::start(&mut pool.around(&directory, &cases), "the cases under seawall");
    run.wait_for("all cases ran", LIMIT);
    pool.kill_everything();
    drop(run);
    let before = files::tree(&directory);
    assert!(before.len() > 50, "{} files", before.len());
    let cut = disk.snapshot();
    let log = work.directory("log").join("copy");
    std::fs::copy(pool.path(), &log).expect("copied");
    let unchanged = |what: &str| {
        let said = pool.replay();
        let changed = files::changed(&before, &files::tree(&directory));
        assert!(changed.is_empty(), "{what} changed:\n{}\n{}", changed.join("\n"), said.output());
    };
    unchanged("a replay over whole files");
    disk.restore(&cut);
    std::fs::copy(&log, pool.path()).expect("copied back");
    let lost = files::changed(&before, &files::tree(&directory)).len();
    assert!(lost > 20, "the disk lacked only {lost} files: there was little to replay");
    unchanged("a power cut, after everything was synced,");
}
