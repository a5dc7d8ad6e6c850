//! The contract on the mount: the same cases, the same crashes, and the stress against the bare file system.
//!
//! `SEAWALL_STRESS_SECONDS`: how long the stress goes on (`make soak`: ten minutes).

use crate::common::bounded::{self, Running};
use crate::common::cases::{LIMIT, expected, program};
use crate::common::disk::Disk;
use crate::common::files;
use crate::common::mount::{Mount, isolate};
use crate::common::seawall::{Pool, bare, setting};
use crate::common::trace;
use crate::common::work::Work;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How it is mounted.
type How = fn(&Pool, &Path, &Path) -> Option<Mount>;

const SCENE_LIMIT: Duration = Duration::from_secs(60);

/// Processes of the stress, with four threads each.
const STRESSES: u64 = 2;

/// Where Linux's FUSE, or the library, differs from the bare file system, and nothing of ours could change it.
/// Each must differ, so that what a newer kernel does is noticed.
const FUSE_DIFFERS: [(&str, &str); 9] = [
    ("open/unnamed_then_linked", "O_TMPFILE: the library does not know it, so EOPNOTSUPP"),
    ("seek/errors", "the longest offset is FUSE's, not the backing file system's"),
    ("direct/misaligned", "direct I/O of any alignment is taken"),
    ("direct/flag_switched_on", "the same"),
    ("direct/vectored", "the same"),
    ("fallocate/collapse_range", "FUSE passes it to no file system: EOPNOTSUPP"),
    ("fallocate/insert_range", "the same"),
    ("fallocate/errors", "the same"),
    ("set_id/by_moving_a_range", "the same"),
];

/// A directory, and where it is mounted.
struct Scene {
    work: Work,
    backing: PathBuf,
    mount: Mount,
}

impl Scene {
    /// `None`: it cannot be mounted here.
    fn new(name: &str, pool: &Pool, how: How) -> Option<Scene> {
        isolate();
        let work = Work::new(name);
        let (backing, at) = (work.directory("backing"), work.directory("mount"));
        let mount = how(pool, &backing, &at)?;
        Some(Scene { work, backing, mount })
    }

    fn end(&self) {
        self.mount.unmount().expect_success("seawall umount");
    }
}

/// One test for each way to mount.
macro_rules! on_mounts {
    ($play:ident: $($test:ident: $pool:expr, $how:path;)*) => {$(
        #[test]
        fn $test() {
            $play(&$pool, $how);
        }
    )*};
}

on_mounts! { every_case_agrees:
    every_case_agrees_with_the_bare_file_system_on_a_mount: Pool::new("mounted", "256M"), Mount::new;
    // Holds: internals/CACHE#tested
    every_case_agrees_on_a_mount_with_a_block_cache: Pool::cached("mounted", "256M"), Mount::new;
    every_case_agrees_with_requests_by_io_uring: Pool::new("uring", "256M"), Mount::by_uring;
}

fn every_case_agrees(pool: &Pool, how: How) {
    let Some(scene) = Scene::new("mounted", pool, how) else { return };
    let right = scene.mount.path().join("data");
    std::fs::create_dir(&right).expect("the mount is ours");
    let expected = expected();
    let found = bounded::run(&mut program(&right, &scene.work, &[]), "the cases on the mount", LIMIT)
        .expect_success("the cases on the mount");
    let (one, other) = (trace::cases(&expected.stdout), trace::cases(&found.stdout));
    let name = |case: &str| case.split(' ').next().unwrap_or_default().to_owned();
    let differ: BTreeSet<String> = one
        .iter()
        .filter(|(case, lines)| other.get(*case) != Some(lines))
        .map(|(case, _)| name(case))
        .collect();
    let ran: BTreeSet<String> = one.keys().map(|case| name(case)).collect();
    let allowed: BTreeSet<String> =
        FUSE_DIFFERS.iter().map(|(case, _)| (*case).to_owned()).filter(|case| ran.contains(case)).collect();
    let reports: Vec<String> = trace::differences(&expected.stdout, &found.stdout)
        .into_iter()
        .filter(|report| !allowed.iter().any(|case| report.starts_with(&format!("case {case} "))))
        .collect();
    assert!(reports.is_empty(), "{} cases differ:\n\n{}", reports.len(), reports.join("\n\n"));
    assert_eq!(differ, allowed, "a difference that is listed is gone: take it off the list");
    scene.end();
}

// The bare file system and the mount do the same, side by side: every answer, every tree.
on_mounts! { random_operations_agree:
    random_operations_agree_with_the_bare_file_system: Pool::new("stress", "64M"), Mount::new;
    // Holds: internals/CACHE#tested
    random_operations_agree_with_a_block_cache: Pool::cached("stress", "64M"), Mount::new;
    random_operations_agree_with_requests_by_io_uring: Pool::cached("uring-stress", "64M"), Mount::by_uring;
}

/// Another one every time; a test that fails names it.
fn seed() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs() % 1_000_000)
}

fn random_operations_agree(pool: &Pool, how: How) {
    let seconds = setting("SEAWALL_STRESS_SECONDS", 3);
    let Some(scene) = Scene::new("stress", pool, how) else { return };
    let left = scene.work.directory("bare");
    // Several processes with several threads each, in other orders every time.
    let now = seed();
    let start = |seed: u64| {
        let mut stress = bare(&["stress"]);
        stress.arg(&left).arg(scene.mount.path());
        stress.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
        Running::start(&mut stress, "the stress")
    };
    let all: Vec<_> = (1..=STRESSES).map(|i| start(now * 10 + i)).collect();
    for stress in all {
        let limit = Duration::from_secs(120 + 2 * seconds);
        eprintln!("{}", stress.finish(limit).expect_success("the stress").stdout);
    }
    scene.end();
}

// By all the kernel's ways to change a file and to look at it, beside each other.
on_mounts! { what_is_read_was_written:
    what_is_read_is_what_was_last_written: Pool::new("coherence", "256M"), Mount::new;
    what_is_read_is_what_was_last_written_with_a_block_cache: Pool::cached("coherence", "256M"), Mount::new;
    what_is_read_is_what_was_last_written_with_requests_by_io_uring:
        Pool::new("uring-coherence", "256M"), Mount::by_uring;
}

fn what_is_read_was_written(pool: &Pool, how: How) {
    let seconds = setting("SEAWALL_STRESS_SECONDS", 5);
    let Some(scene) = Scene::new("coherence", pool, how) else { return };
    let mut coherence = bare(&["coherence"]);
    coherence.arg(scene.mount.path()).arg("--behind").arg(&scene.backing);
    coherence.args(["--seconds", &seconds.to_string(), "--seed", &seed().to_string()]);
    let limit = Duration::from_secs(120 + 2 * seconds);
    let done = bounded::run(&mut coherence, "the coherence", limit).expect_success("the coherence");
    eprintln!("{}", done.stdout);
    scene.end();
}

// Many processes and threads, some of them killed, on a log that is always full.
on_mounts! { the_smoke_agrees:
    the_smoke_agrees_with_its_model_on_a_mount: Pool::new("mounted-smoke", "16M"), Mount::new;
    the_smoke_agrees_with_its_model_on_a_mount_with_a_block_cache:
        Pool::cached("mounted-smoke", "16M"), Mount::new;
    the_smoke_agrees_with_requests_by_io_uring: Pool::new("uring-smoke", "16M"), Mount::by_uring;
}

fn the_smoke_agrees(pool: &Pool, how: How) {
    let Some(scene) = Scene::new("mounted-smoke", pool, how) else { return };
    let mut smoke = bare(&["smoke"]);
    smoke.arg(scene.mount.path()).args(["--processes", "2", "--threads", "3", "--seconds", "3"]);
    bounded::run(&mut smoke, "the smoke", LIMIT).expect_success("the smoke");
    scene.end();
}

/// An io_uring is given up a little after its process: what comes meanwhile is aborted, or cancelled.
fn wait_until_given_up(at: &Path) {
    const LIMIT: Duration = Duration::from_secs(60);
    let begin = std::time::Instant::now();
    loop {
        let gone = std::fs::File::open(at.join("nothing")).expect_err("nobody serves the mount any more");
        match gone.raw_os_error() {
            Some(libc::ENOTCONN) => return,
            Some(libc::ECONNABORTED | libc::ECANCELED) if begin.elapsed() < LIMIT => {}
            _ => panic!("{gone}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Plays `scene` on a mount, kills everything, cuts the power, replays: the files must be what they were.
fn survives(scene: &str, mounted: How) {
    isolate();
    let work = Work::new(scene);
    let Some(disk) = Disk::new(work.path(), 160) else { return };
    let (backing, at) = (disk.path().join("data"), work.directory("at"));
    std::fs::create_dir_all(&backing).expect("the file system is ours");
    std::fs::File::open(disk.path()).and_then(|parent| parent.sync_all()).expect("directories can be synced");
    let pool = Pool::new(&format!("mounted-{scene}"), "64M");
    let Some(mount) = mounted(&pool, &backing, &at) else { return };
    let program = bare(&["scene", scene, &mount.path().to_string_lossy()]);
    let mut run = Running::start(&mut { program }, &format!("scene {scene}"));
    run.wait_for("ready", SCENE_LIMIT);
    run.tell("go");
    run.wait_for("done", SCENE_LIMIT);
    pool.kill_everything();
    drop(run);
    wait_until_given_up(&at);
    let expected = files::contents(&backing);
    let snapshot = disk.snapshot();
    disk.restore(&snapshot);
    let left = files::changed(&expected, &files::contents(&backing));
    eprintln!("the power cut changed {} files:\n  {}", left.len(), left.join("\n  "));
    let said = pool.replay();
    let changed = files::changed(&expected, &files::contents(&backing));
    assert!(changed.is_empty(), "after the replay:\n{}\n{}", changed.join("\n"), said.output());
    // The dead mount is detached, the next one serves what was recovered.
    drop(mount);
    let again = mounted(&pool, &backing, &at).expect("mounted before");
    let changed = files::changed(&expected, &files::contents(again.path()));
    assert!(changed.is_empty(), "on the next mount:\n{}", changed.join("\n"));
}

#[test]
fn an_fsync_is_durable_with_requests_by_io_uring() {
    survives("fsync", Mount::by_uring);
}

macro_rules! crash_tests {
    ($($test:ident: $scene:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            survives($scene, Mount::new);
        }
    )*};
}

crash_tests! {
    // Holds: K5
    mounted_fsync_is_durable: "fsync",
    mounted_fdatasync_as_well_as_fsync: "fdatasync",
    mounted_vectored_writes_are_logged: "vectored",
    mounted_append_is_logged: "append",
    mounted_dsync_is_logged: "dsync",
    mounted_dsync_past_the_kernels_cache_is_logged: "dsync-new",
    mounted_dsync_past_the_kernels_cache_is_durable_without_the_log: "dsync-refused",
    mounted_large_writes_are_whole: "large",
    mounted_truncate_is_logged: "truncate",
    mounted_open_truncate_is_logged: "open-truncate",
    mounted_rename_is_followed: "rename",
    mounted_rename_over_a_managed_file: "rename-over",
    mounted_unlinked_files_records_do_not_come_back: "unlink",
    mounted_link_is_followed: "link",
    mounted_second_process: "second-process",
    mounted_fork_without_exec: "fork",
    mounted_two_concurrent_writers: "two-writers",
    mounted_mapping_is_logged: "mapping",
    mounted_fallocate_takes_part_in_the_order: "fallocate",
}
