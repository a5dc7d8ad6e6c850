//! A pool on a block device: what a journal holds after a power cut, and what a sync waits for.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crate::common::{Calls, World, roll_back};
use seawall_core::journal::{Journal, Way};
use seawall_core::pool::block;
use seawall_core::store::Store;
use seawall_core::{Engine, Errno, takeover};
use seawall_media::Region;
use seawall_media::block::Device;
use seawall_stats::{Class, Event, Summary};
use seawall_wire::shm::Shm;

const IMAGE: u64 = 16 << 20;

fn writes(world: &World) -> u64 {
    let journal = world.engine.pool().journal().expect("a journal");
    journal.desk(world.engine.pool()).writes().load(std::sync::atomic::Ordering::SeqCst)
}

// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn what_was_synced_survives_and_costs_one_device_write() {
    let world = World::on_block(IMAGE);
    let m = world.manage("file");
    m.file.write_all_at(&[1; 8192], 0).expect("room");
    assert!(world.fsync(&m), "the first sync is real");
    let before = writes(&world);
    world.pwrite(&m, 0, &[2; 4096], 0);
    world.pwrite(&m, 1, &[3; 100], 4096);
    assert_eq!(writes(&world), before, "a write waits for nothing");
    assert!(!world.fsync(&m));
    assert_eq!(writes(&world), before + 1, "one device write for all");
    assert!(!world.fsync(&m));
    assert_eq!(writes(&world), before + 1, "nothing is left to do");
    world.pwrite(&m, 0, &[4; 50], 0);
    let path = m.path.clone();
    roll_back(&m, &[1; 8192]);
    drop(m);
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("recovered").live, 2, "what nobody synced is not on the device");
    let content = std::fs::read(path).expect("readable");
    assert_eq!((content[0], content[4095], content[4096], content[4195], content[4196]), (2, 2, 3, 3, 1));
}

// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn a_truncate_is_on_the_device_before_the_file_system_can_make_it_durable() {
    let world = World::on_block(IMAGE);
    let m = world.manage("file");
    m.file.write_all_at(&[1; 8192], 0).expect("room");
    assert!(world.fsync(&m));
    world.pwrite(&m, 0, &[2; 100], 8000);
    assert!(!world.fsync(&m));
    world.truncate(&m, 0);
    // Nobody syncs; the file system commits the new size all the same, and then the power goes.
    let path = m.path.clone();
    roll_back(&m, &[]);
    drop(m);
    let (report, _dir, _memory) = world.recover();
    report.expect("recovered");
    let content = std::fs::read(path).expect("readable");
    assert_eq!(content.len(), 0, "a record over nothing makes a file that never was");
}

#[test]
fn threads_that_sync_at_once_lose_nothing() {
    const THREADS: usize = 8;
    const ROUNDS: u8 = 40;
    let world = World::on_block(IMAGE);
    let files: Vec<_> = (0..THREADS).map(|i| world.manage(&format!("file{i}"))).collect();
    for m in &files {
        m.file.write_all_at(&[0; 4096], 0).expect("room");
        assert!(world.fsync(m));
    }
    std::thread::scope(|scope| {
        for (i, m) in files.iter().enumerate() {
            let world = &world;
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    world.pwrite(m, i, &[round; 1000], usize::from(round % 3) as u64 * 1000);
                    assert!(!world.fsync(m));
                }
            });
        }
    });
    let expected: Vec<Vec<u8>> = files.iter().map(|m| std::fs::read(&m.path).expect("readable")).collect();
    let paths: Vec<_> = files.iter().map(|m| m.path.clone()).collect();
    files.iter().for_each(|m| roll_back(m, &[0; 4096]));
    drop(files);
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("recovered").live, THREADS as u64 * u64::from(ROUNDS));
    for (path, expected) in paths.iter().zip(&expected) {
        assert_eq!(&std::fs::read(path).expect("readable"), expected);
    }
}

/// Everybody who waited is a `log file sync`, riders and leaders; a write to the device is a `log file parallel write` of
/// its leader's, and of nobody else.
#[test]
fn waits_are_counted_for_all_who_wait_and_device_writes_once() {
    const THREADS: usize = 8;
    let world = World::on_block(IMAGE);
    let files: Vec<_> = (0..THREADS).map(|i| world.manage(&format!("file{i}"))).collect();
    for m in &files {
        m.file.write_all_at(&[0; 4096], 0).expect("room");
        assert!(world.fsync(m));
    }
    let journal = world.engine.pool().journal().expect("a journal");
    let waited = || journal.desk(world.engine.pool()).waits().load(std::sync::atomic::Ordering::SeqCst);
    let before = (
        waited(),
        writes(&world),
        waits(&world, Event::LogFileSync),
        waits(&world, Event::LogFileParallelWrite),
    );
    std::thread::scope(|scope| {
        for (i, m) in files.iter().enumerate() {
            let world = &world;
            scope.spawn(move || {
                for round in 1..=40 {
                    world.pwrite(m, i, &[round; 1000], 0);
                    assert!(!world.fsync(m));
                }
            });
        }
    });
    let (syncs, device) = (waits(&world, Event::LogFileSync), waits(&world, Event::LogFileParallelWrite));
    assert_eq!(syncs.count - before.2.count, waited() - before.0, "whoever waited");
    assert_eq!(device.count - before.3.count, writes(&world) - before.1, "each write of the device once");
    let [all, part] = [syncs.sum_ns - before.2.sum_ns, device.sum_ns - before.3.sum_ns];
    assert!(0 < part && part <= all, "the device's part is within the wait of whoever led");
    std::fs::remove_dir_all(world.pool.path.parent().expect("a directory")).expect("removed");
}

fn waits(world: &World, event: Event) -> Summary {
    let (shm, mut sum) = (world.engine.shm(), Summary::new());
    for lane in 0..=shm.shape().lanes {
        Class::ALL.iter().for_each(|class| sum.add(shm.stats(lane), event, *class));
    }
    sum
}

#[test]
fn in_the_same_boot_the_image_is_newer_than_the_journal() {
    let world = World::on_block(IMAGE);
    let m = world.manage("file");
    m.file.write_all_at(&[1; 100], 0).expect("room");
    assert!(world.fsync(&m));
    world.pwrite(&m, 0, &[2; 100], 0);
    let World { memory, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    let pool = block::open_in(&path, memory.path()).expect("open");
    assert!(pool.is_same_boot());
    let files =
        seawall_core::table::files(&pool).expect("a table").into_iter().map(|f| (f.slot, f)).collect();
    assert_eq!(seawall_core::recover::scan(&pool, &files).live.len(), 1, "unsynced, and not lost");
    std::fs::remove_dir_all(path.parent().expect("a directory")).expect("removed");
}

// Holds: R11
#[test]
fn a_device_that_fails_fails_every_sync_from_then_on() {
    let world = World::on_block(IMAGE);
    let m = world.manage("file");
    assert!(world.fsync(&m));
    // The same image in front of a device that takes no write.
    let refuses = std::fs::File::open(&world.pool.path).expect("open");
    let at = world.engine.pool().journal().expect("a journal").desk_at();
    let len = world.pool.region.len() as u64;
    let region = Region::map(&world.pool.file, len, false).expect("a mapping");
    let broken = Store::journaled(region, Journal::new(Way::Own(Device::new(refuses.into())), at));
    world.pwrite(&m, 0, &[2; 100], 0);
    let memory =
        File::options().read(true).write(true).open(takeover::shm_path(world.memory.path(), &world.pool));
    let memory = memory.expect("the run-time memory");
    let len = memory.metadata().expect("a size").len();
    let shm = Shm::open(Region::map(&memory, len, false).expect("a mapping")).expect("run-time memory");
    let front = Engine::attach(broken, shm).expect("a front");
    assert_eq!(front.retire_for(m.name, world.slot(&m).last_lsn()), Err(Errno::IO));
    assert!(world.engine.is_dirty(m.name), "nobody may rely on it");
    let sync = || -> Result<(), Errno> { panic!("a real sync cannot stand in") };
    for _ in 0..2 {
        assert_eq!(
            world.engine.fsync(world.who(0), m.name, sync),
            Err(Errno::IO),
            "never retried into success"
        );
    }
    assert_eq!(world.engine.harden_all(), Err(Errno::IO));
    let _ = m.file.as_fd();
    std::fs::remove_dir_all(world.pool.path.parent().expect("a directory")).expect("removed");
}
