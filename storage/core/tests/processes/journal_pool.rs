//! A pool on a block device is opened: what belongs together, what is damaged, what is refused.

use std::fs::{self, File};
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Calls, World};
use crate::{nobody_forks, spawning};
use seawall_core::pool::{self, Pool, PoolError, block};
use seawall_core::recover::{Mode, Options, recover};
use seawall_core::{Errno, inspect};
use seawall_media::Region;
use seawall_media::block::{ANCHOR_BYTES, RING_AT};
use seawall_wire::desk::Desk;

const IMAGE: u64 = 16 << 20;
/// So small that reading it takes no time.
const JOURNAL: u64 = 3 << 20;
const AUTO: Options = Options { mode: Mode::Auto, accept_loss: false };

/// A journal with three synced records in it, its image, and what keeps both.
struct Used {
    path: PathBuf,
    memory: tempfile::TempDir,
    _dirs: (tempfile::TempDir, Option<tempfile::TempDir>),
}

impl Used {
    fn new() -> Self {
        Self::and(|_| ())
    }

    /// Something else is done at last.
    fn and(last: impl FnOnce(&World)) -> Self {
        let nobody_forks = nobody_forks();
        let world = World::with_journal(IMAGE, JOURNAL);
        drop(nobody_forks);
        let m = world.manage("file");
        m.file.write_all_at(&[1; 8192], 0).expect("room");
        assert!(world.fsync(&m), "the first sync is real");
        for i in 0..3 {
            world.pwrite(&m, 0, &[i + 2; 100], 0);
            assert!(!world.fsync(&m));
        }
        last(&world);
        let World { dir, memory, disk, pool, engine, .. } = world;
        let path = pool.path.clone();
        drop((pool, engine));
        Self { path, memory, _dirs: (dir, disk) }
    }

    fn open(&self) -> Result<Pool, PoolError> {
        let _nobody_forks = nobody_forks();
        block::open_in(&self.path, self.memory.path())
    }

    fn image(&self) -> PathBuf {
        let found = fs::read_dir(self.memory.path()).expect("memory").flatten().map(|e| e.path());
        found.into_iter().find(|p| p.extension().is_some_and(|e| e == "image")).expect("an image")
    }

    /// The power goes: memory is lost.
    fn cut(&self) {
        for entry in fs::read_dir(self.memory.path()).expect("memory").flatten() {
            fs::remove_file(entry.path()).expect("removed");
        }
    }

    /// Changes bytes of the journal.
    fn patch(&self, at: u64, change: impl FnOnce(&mut [u8])) {
        let file = File::options().read(true).write(true).open(&self.path).expect("the journal");
        let mut bytes = vec![0; 4096];
        file.read_exact_at(&mut bytes, at).expect("read");
        change(&mut bytes);
        file.write_all_at(&bytes, at).expect("written");
    }

    /// Where batches begin.
    fn batches(&self) -> Vec<u64> {
        let bytes = fs::read(&self.path).expect("the journal");
        let magic = bytes[RING_AT as usize..][..4].to_vec();
        let starts = (RING_AT as usize..bytes.len()).step_by(4096);
        starts.filter(|at| bytes[*at..].starts_with(&magic)).map(|at| at as u64).collect()
    }
}

#[track_caller]
fn refused(opened: Result<Pool, PoolError>, words: &[&str]) {
    let text = opened.map(|pool| pool.path).expect_err("refused").to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in: {text}"));
}

fn live(pool: &Pool) -> u64 {
    let found = inspect::inspect(pool);
    assert_eq!(found.damage, Vec::<String>::new());
    found.live
}

// Holds: R10
#[test]
fn an_image_in_front_of_another_copy_of_its_log_is_refused() {
    let copy = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
    let used = Used::and(|world| {
        fs::copy(&world.pool.path, copy.path()).expect("a copy");
        let journal = world.engine.pool().journal().expect("a journal");
        for _ in 0..2 {
            journal.close(&world.pool.region, world.pool.layout(), || ()).expect("a new lap");
        }
    });
    fs::copy(copy.path(), &used.path).expect("put in its place");
    refused(used.open(), &["another copy of this log", "put the other copy back"]);
}

#[test]
fn an_image_of_another_pool_or_boot_is_not_taken() {
    let (used, other) = (Used::new(), Used::new());
    fs::copy(other.image(), used.image()).expect("in its place");
    let pool = used.open().expect("a pool");
    assert!(pool.image.as_ref().is_some_and(|image| image.made), "the journal says what is true");
    assert_eq!(live(&pool), 3);
}

// Holds: R9
#[test]
fn one_damaged_anchor_is_no_harm_and_two_are_named() {
    let written = Used::and(|world| {
        let journal = world.engine.pool().journal().expect("a journal");
        journal.close(&world.pool.region, world.pool.layout(), || ()).expect("an anchor of its own");
    });
    written.cut();
    for byte in [0, 50] {
        written.patch(0, |bytes| bytes[byte] ^= 1);
        assert!(block::is_journal(&written.path).expect("readable"));
        drop(written.open().expect("an update that a crash interrupted looks the same"));
        written.cut();
        written.patch(0, |bytes| bytes[byte] ^= 1);
    }
    [0, ANCHOR_BYTES as u64].iter().for_each(|at| written.patch(*at, |bytes| bytes[50] ^= 1));
    refused(written.open(), &["anchors of the log are damaged", "restore"]);
}

// Holds: R9
#[test]
fn a_batch_that_the_device_confirmed_and_lost_is_named() {
    let used = Used::new();
    used.cut();
    let batches = used.batches();
    used.patch(batches[batches.len() - 2], |bytes| bytes.fill(0));
    let words = ["of the log durable, and the batch is gone", "does not honour flush requests"];
    refused(used.open(), &words);
    refused(block::open_read_only_in(&used.path, used.memory.path()), &words);
    let damage = block::check(&used.path).expect_err("found");
    assert!(damage.to_string().contains(words[0]), "{damage}");
}

/// A drive that lies: it confirmed three batches and had none of them for sure, so a power cut takes any of them, or a
/// sector out of their middle. Found out is one that lost a batch which the header of a later one names. If no header
/// does, what is lost looks like a write that was under way.
// Holds: L21
#[test]
fn a_drive_that_lies_is_found_out_unless_it_lost_only_its_newest_batches() {
    let used = Used::new();
    used.cut();
    let (whole, batches) = (fs::read(&used.path).expect("the journal"), used.batches());
    let newest = &batches[batches.len() - 3..];
    for (all, lost) in [true, false].into_iter().flat_map(|all| (0..8u32).map(move |lost| (all, lost))) {
        let harm = |bytes: &mut [u8]| if all { bytes.fill(0) } else { bytes[64..512].fill(0xee) };
        fs::write(&used.path, &whole).expect("as it was confirmed");
        let is_lost = |i: &usize| lost >> i & 1 == 1;
        (0..3).filter(is_lost).for_each(|i| used.patch(newest[i], harm));
        let kept = (0..3).take_while(|i| !is_lost(i)).count();
        let is_named = (kept + 1..3).any(|i| !is_lost(&i) || !all);
        if !is_named {
            assert_eq!(live(&used.open().expect("nobody can tell")), kept as u64, "lost {lost:#b}");
            used.cut();
        } else {
            refused(
                used.open(),
                &["of the log durable, and the batch is gone", "does not honour flush requests"],
            );
        }
    }
}

#[test]
fn a_look_writes_nothing_and_sees_what_a_recovery_would() {
    let used = Used::new();
    let look = || block::open_read_only_in(&used.path, used.memory.path()).expect("a pool");
    assert_eq!(live(&look()), 3, "by its image");
    used.cut();
    let before = fs::read(&used.path).expect("the journal");
    let modified = |path: &Path| fs::metadata(path).expect("stat").modified().expect("a time");
    let time = modified(&used.path);
    assert_eq!(live(&look()), 3, "by what the journal holds");
    assert!(block::check(&used.path).expect("whole").is_some());
    assert_eq!((fs::read(&used.path).expect("the journal"), modified(&used.path)), (before, time));
    assert_eq!(fs::read_dir(used.memory.path()).expect("memory").count(), 0, "no image is left behind");
    let pool = used.open().expect("a pool");
    assert_eq!(live(&pool), 3);
    // In use.
    assert_eq!(live(&look()), 3);
    refused(used.open(), &["in use by a running daemon"]);
}

/// What each place of the anchor says: 0, or how far a log was closed.
fn closed(path: &Path) -> [u64; 2] {
    let bytes = fs::read(path).expect("the journal");
    [0, ANCHOR_BYTES].map(|at| u64::from_le_bytes(bytes[at + 80..][..8].try_into().expect("eight bytes")))
}

#[test]
fn a_log_that_was_closed_says_so_until_it_is_used_again() {
    let used = Used::new();
    let pool = used.open().expect("a pool");
    assert_eq!(closed(&used.path), [0, 0]);
    recover(&pool, AUTO).expect("recovered");
    pool.remove_image(true).expect("removed");
    drop(pool);
    assert_eq!(closed(&used.path).iter().filter(|closed| **closed != 0).count(), 1);
    let anchors = fs::read(&used.path).expect("the journal")[..2 * ANCHOR_BYTES].to_vec();
    let pool = used.open().expect("another image");
    let read = pool.image.as_ref().and_then(|image| image.read).expect("made from the journal");
    assert_eq!((read.batches, read.highest), (1, read.last), "its tables, and nothing is under way");
    assert_eq!(live(&pool), 0);
    recover(&pool, AUTO).expect("nothing to do");
    assert_ne!(closed(&used.path), [0, 0], "nothing was written");
    pool.region.change(&[(0, 64)], |_| ()).expect("written");
    assert_eq!(closed(&used.path), [0, 0], "in no place, should the newer one be damaged");
    drop(pool);
    used.cut();
    // The power went between the first batch behind the mark and the next anchor.
    let file = File::options().write(true).open(&used.path).expect("the journal");
    file.write_all_at(&anchors, 0).expect("written");
    let pool = used.open().expect("the mark is not believed");
    assert!(pool.image.as_ref().and_then(|image| image.read).is_some_and(|now| now.last > read.last));
}

// Holds: L23
#[test]
fn an_image_that_was_given_up_writes_nothing_any_more() {
    let nobody_forks_now = nobody_forks();
    let world = World::with_journal(IMAGE, JOURNAL);
    drop(nobody_forks_now);
    let m = world.manage("file");
    assert!(world.fsync(&m));
    world.destage(&m);
    world.pool.remove_image(false).expect("removed");
    assert_eq!(closed(&world.pool.path), [0, 0], "a file is registered");
    let before = fs::read(&world.pool.path).expect("the journal");
    world.pwrite(&m, 0, &[2; 100], 0);
    let sync = || -> Result<(), Errno> { panic!("a real sync cannot stand in") };
    assert_eq!(world.engine.fsync(world.who(0), m.name, sync), Err(Errno::IO));
    assert_eq!(world.engine.harden_all(), Err(Errno::IO));
    assert!(before == fs::read(&world.pool.path).expect("the journal"), "nothing was written");
    let World { memory, pool, engine, disk, .. } = world;
    let path = pool.path.clone();
    let _nobody_forks = nobody_forks();
    drop(pool);
    let pool = block::open_in(&path, memory.path()).expect("another image");
    assert!(pool.image.as_ref().is_some_and(|image| image.made));
    assert_eq!(engine.harden_all(), Err(Errno::IO), "the old one still writes nothing");
    drop((pool, disk));
}

// Holds: R11
#[test]
fn a_log_whose_device_failed_and_is_back_is_recovered_in_the_same_boot() {
    let fail = |world: &World| {
        let m = world.manage("other");
        world.fsync(&m);
        let desk = Desk::new(&world.pool.region, IMAGE as usize);
        desk.failed().store(Errno::IO.raw_os_error() as u32, SeqCst);
    };
    let used = Used::and(fail);
    let pool = used.open().expect("the device is back");
    assert!(pool.image.as_ref().is_some_and(|image| !image.made && image.read.is_some()));
    assert_eq!(live(&pool), 3);
    assert!(!recover(&pool, AUTO).expect("recovered").replayed);
    drop(pool);
    used.cut();
    assert_eq!(live(&used.open().expect("a pool")), 0, "and closed on the device");
    // What it had confirmed is gone.
    let used = Used::and(fail);
    let last = *used.batches().last().expect("batches");
    used.patch(last, |bytes| bytes.fill(0));
    refused(used.open(), &["failed and still fails", "do not restart this machine"]);
}

// Holds: R8
#[test]
fn places_that_cannot_hold_a_log_are_refused_and_nothing_is_left() {
    let (disk, memory) = (tempfile::tempdir_in("/var/tmp").expect("a directory"), pool::MEMORY);
    let at = disk.path().join("log");
    let make = |at: &Path, image: u64| {
        let made = block::create(at, image, false, Path::new(memory));
        made.expect_err("refused").to_string()
    };
    assert!(make(&at, 1 << 20).contains("too few"));
    let text = make(&at, 1 << 42);
    assert!(text.contains("has no room") && text.contains("--size"), "{text}");
    assert!(make(&disk.path().join("none/log"), IMAGE).contains("No such file"));
    let ram = tempfile::tempdir_in(memory).expect("a directory");
    let text = make(&ram.path().join("log"), IMAGE);
    assert!(text.contains("is RAM, and survives no power cut"), "{text}");
    fs::write(&at, "something").expect("written");
    assert!(make(&at, IMAGE).contains("already exists"));
    assert_eq!(fs::read_dir(disk.path()).expect("a directory").count(), 1);
    assert!(!block::is_journal(&at).expect("readable"));
}

/// Another process that has the image mapped: this program once more.
struct Mapper(std::process::Child);

const MAPPED: &str = "SEAWALL_TEST_MAPPED";

impl Mapper {
    fn of(image: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = std::process::Command::new(program);
        command
            .args(["--ignored", "--exact", "--nocapture", "journal_pool::maps_what_it_is_told"])
            .env(MAPPED, image);
        let pipes = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let spawning = spawning();
        let mut child = pipes.spawn().expect("spawned");
        let mut lines = std::io::BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("mapped"))));
        // Not sooner: the kernel lets us go on before it has closed the child's descriptors.
        drop(spawning);
        Self(child)
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the other process of two tests"]
fn maps_what_it_is_told() {
    let Some(path) = std::env::var_os(MAPPED) else { return };
    let file = File::options().read(true).write(true).open(path).expect("the image");
    let len = file.metadata().expect("stat").len();
    let _region = Region::map(&file, len, false).expect("a mapping");
    println!("mapped");
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Two images in front of one journal would write over each other.
#[test]
fn an_image_that_was_removed_is_not_made_again_while_somebody_has_it() {
    let used = Used::new();
    let mapper = Mapper::of(&used.image());
    drop(used.open().expect("taken over"));
    used.cut();
    refused(used.open(), &["was removed while processes", &mapper.0.id().to_string(), "stop them"]);
    drop(mapper);
    assert_eq!(live(&used.open().expect("a pool")), 3);
}

#[test]
fn a_log_whose_device_failed_is_not_used_again_before_its_clients_have_ended() {
    let used = Used::and(|world| {
        let desk = Desk::new(&world.pool.region, IMAGE as usize);
        desk.failed().store(Errno::IO.raw_os_error() as u32, SeqCst);
    });
    let mapper = Mapper::of(&used.image());
    refused(used.open(), &["the device of the log", &mapper.0.id().to_string(), "then start again"]);
    drop(mapper);
    used.open().expect("it goes on");
}

/// A daemon was killed between the two steps.
#[test]
fn an_image_that_was_given_up_and_not_removed_is_made_anew() {
    let used = Used::and(|world| {
        let journal = world.engine.pool().journal().expect("a journal");
        journal.give_up(&world.pool.region, None);
    });
    let pool = used.open().expect("a pool");
    assert!(pool.image.as_ref().is_some_and(|image| image.made));
    assert_eq!(live(&pool), 3);
}
