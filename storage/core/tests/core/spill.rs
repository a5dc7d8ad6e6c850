//! A small pool with a spill area behind it: what is copied there is the log, once, and nothing else is.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Managed, World, roll_back};
use seawall_core::At;
use seawall_core::format::{Layout, SpillEntry, slot_at};
use seawall_core::inspect::inspect;
use seawall_core::pool::{self, Pool, PoolError};
use seawall_core::recover::{Damage, Mode, Options, RecoverError, recover};
use seawall_core::spill::{Plan, Spiller};
use seawall_media::sim;

const REPLAY: Options = Options { mode: Mode::Replay, accept_loss: false };
const SMALL: u64 = 16 << 20;
/// One write: a few of them in a segment.
const PIECE: usize = 15_000;
/// Nearly a quarter of the log.
const LONG: usize = 3 << 20;

fn content(i: usize) -> Vec<u8> {
    (0..PIECE).map(|at| (at + i * 7) as u8 | 1).collect()
}

/// A managed file that is in the log, and a spiller.
fn begin(area: u64) -> (World, Managed, Spiller) {
    let world = World::with_area(SMALL, area);
    let m = world.manage("wal");
    world.fsync(&m);
    let spiller = Spiller::open(&world.pool).expect("the area").expect("it has one");
    (world, m, spiller)
}

fn write(world: &World, m: &Managed, pieces: std::ops::Range<usize>) {
    for i in pieces {
        world.pwrite(m, 0, &content(i), (i * PIECE) as u64);
    }
}

/// Writes so many bytes, with the spiller looking after each of them.
fn load(world: &World, m: &Managed, spiller: &mut Spiller, bytes: usize) {
    for i in 0..bytes / PIECE {
        write(world, m, i..i + 1);
        spiller.round(&world.engine).expect("a round");
    }
}

/// The machine restarts: what is not on disk is gone, and nobody has the pool open.
fn reopen(world: World, m: &Managed) -> (Pool, impl Sized) {
    roll_back(m, &[]);
    let World { dir, memory, disk, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    (pool::open(&path).expect("open"), (dir, memory, disk))
}

fn area_of(pool: &Pool) -> PathBuf {
    pool.area.as_ref().expect("an area").path().into()
}

fn damage_of(pool: &Pool) -> Vec<Damage> {
    match recover(pool, REPLAY).expect_err("refused") {
        RecoverError::Damaged(all) => all,
        other => panic!("not damage: {other}"),
    }
}

/// The slots whose entries are above the retired LSN.
fn live_slots(pool: &Pool) -> Vec<u32> {
    let retired = pool.retired().load(&pool.region).expect("the cell");
    let slots = 0..pool.area.as_ref().expect("an area").slots();
    let is_live = |slot: &u32| {
        SpillEntry::of(pool.layout(), *slot).load(&pool.region).expect("an entry").last_lsn > retired
    };
    slots.filter(is_live).collect()
}

#[test]
fn three_pools_full_of_commits_fit_and_survive() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 48 << 20);
    assert!(world.is_tracked(&m), "it never went around the log");
    assert!(spiller.spilling(0).bytes > 32 << 20);
    let expected = std::fs::read(&m.path).expect("read");
    let (pool, _kept) = reopen(world, &m);
    let report = recover(&pool, REPLAY).expect("recovered");
    assert_eq!(report.live, (48 << 20) / PIECE as u64);
    assert!(std::fs::read(&m.path).expect("read") == expected);
    assert_eq!(recover(&pool, REPLAY).expect("again").live, 0);
    assert_eq!(live_slots(&pool), [], "a closed log has nothing in its area");
}

/// Faster than the area can be written, and nobody destages: for a file whose fsync may take long.
#[test]
fn who_finds_the_log_full_waits_for_the_area() {
    let (world, m, mut spiller) = begin(64 << 20);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&world, &m, 0..(48 << 20) / PIECE));
        while !writer.is_finished() {
            spiller.round(&world.engine).expect("a round");
        }
    });
    assert!(world.is_tracked(&m), "it never went around the log");
}

#[test]
fn without_an_area_the_same_load_finds_the_log_full() {
    let world = World::new(SMALL);
    let m = world.manage("wal");
    world.fsync(&m);
    write(&world, &m, 0..(48 << 20) / PIECE);
    assert!(!world.is_tracked(&m));
}

#[test]
fn a_disk_that_keeps_up_copies_nothing() {
    let (world, m, mut spiller) = begin(64 << 20);
    for i in 0..4 {
        write(&world, &m, i * 500..(i + 1) * 500);
        assert_eq!(spiller.round(&world.engine), Ok(0));
        world.destage(&m);
    }
    assert_eq!(spiller.spilling(0).bytes, 0);
}

#[test]
fn slots_are_used_again_once_they_are_retired_and_not_before() {
    let (world, m, mut spiller) = begin(8 << 20);
    let mut seen = 0;
    for round in 0..4 {
        for i in 0..(20 << 20) / PIECE {
            write(&world, &m, i..i + 1);
            spiller.round(&world.engine).expect("a round");
        }
        let retired = world.pool.retired().load(&world.pool.region).expect("the cell");
        assert!(spiller.spilling(retired).used > 0, "round {round}");
        seen += spiller.spilling(retired).used;
        assert!(world.destage(&m).failed.is_empty());
        let retired = world.pool.retired().load(&world.pool.region).expect("the cell");
        assert_eq!(spiller.spilling(retired).used, 0);
    }
    assert!(seen > spiller.spilling(0).slots, "slots were used more than once");
    load(&world, &m, &mut spiller, 18 << 20);
    let expected = std::fs::read(&m.path).expect("read");
    let disk = expected.clone();
    assert!(!live_slots(&world.pool).is_empty());
    roll_back(&m, &disk[..(20 << 20) / 2]);
    let (world_pool, _kept) = {
        let World { dir, memory, disk, pool, engine, .. } = world;
        let path = pool.path.clone();
        drop((pool, engine));
        (pool::open(&path).expect("open"), (dir, memory, disk))
    };
    recover(&world_pool, REPLAY).expect("recovered");
    let written = (18 << 20) / PIECE * PIECE;
    assert!(std::fs::read(&m.path).expect("read")[..written] == expected[..written]);
}

#[test]
fn an_area_that_is_full_is_no_error_and_loses_nothing() {
    let (world, m, mut spiller) = begin(4 << 20);
    // Nobody destages: with a daemon it would be waited for longer.
    world.engine.shm().header().daemon_pid().store(0, SeqCst);
    load(&world, &m, &mut spiller, 40 << 20);
    assert!(!world.is_tracked(&m), "the file left the log, by a real sync");
    world.fsync(&m);
    let expected = std::fs::read(&m.path).expect("read");
    let World { dir, memory, disk, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    let pool = pool::open(&path).expect("open");
    recover(&pool, REPLAY).expect("recovered");
    assert!(std::fs::read(&m.path).expect("read") == expected);
    drop((dir, memory, disk));
}

/// The highest LSNs of what live slots hold.
fn copied(pool: &Pool) -> Vec<u64> {
    let last = |slot: u32| SpillEntry::of(pool.layout(), slot).load(&pool.region).expect("an entry").last_lsn;
    live_slots(pool).into_iter().map(last).collect()
}

/// Records of so many files, each as long as one may be: together they need most of the log. All are under way until the
/// end. Returns the first one's LSN.
fn publish_most_of_the_log(world: &World, files: &[Managed]) -> u64 {
    let long = vec![9; LONG];
    let begin = |(thread, m): (usize, &Managed)| {
        let begun = world.engine.begin(world.who(thread), m.name, m.file.as_fd());
        std::mem::forget(begun.log_write(At::Offset(0), [&long[..]].into_iter()).expect("a record"));
        assert!(world.is_tracked(m));
        world.slot(m).last_lsn()
    };
    let lsns: Vec<u64> = (1..).zip(files).map(begin).collect();
    lsns[0]
}

/// The publish of one that dies inside it is finished from its record, and the record is read in the pool.
#[test]
fn what_is_being_published_stays_in_the_pool() {
    let (world, m, mut spiller) = begin(64 << 20);
    write(&world, &m, 0..(2 << 20) / PIECE);
    let files = ["a", "b", "c", "d"].map(|name| world.manage(name));
    files.iter().for_each(|m| assert!(world.fsync(m)));
    let under_way = publish_most_of_the_log(&world, &files);
    assert!(spiller.round(&world.engine).expect("a round") > 0);
    assert_eq!(spiller.round(&world.engine), Ok(0), "though it is short of room");
    assert!(copied(&world.pool).iter().all(|last| *last < under_way));
}

/// Acts at one access to a shared word.
struct Acts<'a> {
    left: Cell<u64>,
    action: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl sim::Observer for Acts<'_> {
    fn touched(&self, _base: usize) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0
            && let Some(action) = self.action.take()
        {
            action();
        }
    }
}

/// Between the look at a segment and the take it is destaged, used again, and full of what is being published.
#[test]
fn a_segment_that_is_used_again_meanwhile_stays_in_the_pool() {
    let mut acted = 0;
    for at in (1_u64..).step_by(131) {
        let (world, m, mut spiller) = begin(64 << 20);
        let files = ["a", "b", "c", "d"].map(|name| world.manage(name));
        files.iter().for_each(|m| assert!(world.fsync(m)));
        write(&world, &m, 0..(13 << 20) / PIECE);
        let world = Rc::new((world, m));
        let under_way = Rc::new(Cell::new(u64::MAX));
        let (scene, lsn) = (Rc::clone(&world), Rc::clone(&under_way));
        let action = move || {
            let (world, m) = &*scene;
            assert!(world.destage(m).freed > 100);
            lsn.set(publish_most_of_the_log(world, &files));
        };
        let acts = Rc::new(Acts { left: Cell::new(at), action: RefCell::new(Some(Box::new(action))) });
        sim::install(Some(Rc::clone(&acts) as Rc<dyn sim::Observer>));
        spiller.step(&world.0.engine).expect("a step");
        sim::install(None);
        if acts.action.take().is_some() {
            break;
        }
        acted += 1;
        assert!(copied(&world.0.pool).iter().all(|last| *last < under_way.get()), "at {at}");
    }
    assert!(acted > 5, "{acted}");
}

// Holds: R17
#[test]
fn a_live_slot_that_is_not_what_was_copied_is_damage() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let (pool, _kept) = reopen(world, &m);
    let slot = live_slots(&pool)[3];
    let area = OpenOptions::new().read(true).write(true).open(area_of(&pool)).expect("open");
    let at = slot_at(slot, pool.layout().segment_bytes) + 20_000;
    let mut byte = [0];
    area.read_exact_at(&mut byte, at).expect("read");
    area.write_all_at(&[byte[0] ^ 4], at).expect("write");
    assert!(damage_of(&pool).contains(&Damage::Slot { slot }));
    assert_eq!(std::fs::read(&m.path).expect("read"), [], "nothing was replayed");
    assert!(inspect(&pool).damage.iter().any(|text| text.contains("spill area")));
    area.write_all_at(&byte, at).expect("write");
    assert_eq!(recover(&pool, REPLAY).expect("recovered").live, (24 << 20) / PIECE as u64);
}

#[test]
fn an_entry_that_cannot_be_read_is_damage() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let (pool, _kept) = reopen(world, &m);
    let slot = live_slots(&pool)[0];
    let (at, _) = SpillEntry::of(pool.layout(), slot).range();
    pool.region.set_u64(at, 1);
    assert!(
        recover(&pool, REPLAY).is_ok_and(|report| report.live == (24 << 20) / PIECE as u64),
        "one copy does"
    );
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let (pool, _kept) = reopen(world, &m);
    [at, at + 32].iter().for_each(|at| pool.region.set_u64(*at, 1));
    assert!(damage_of(&pool).contains(&Damage::Slot { slot }));
}

#[test]
fn what_lies_in_slots_that_no_entry_names_is_nothing() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let (pool, _kept) = reopen(world, &m);
    let live = live_slots(&pool);
    let area = OpenOptions::new().write(true).open(area_of(&pool)).expect("open");
    for slot in (0..pool.area.as_ref().expect("an area").slots()).filter(|slot| !live.contains(slot)) {
        area.write_all_at(&[0xa5; 70_000 / 2], slot_at(slot, pool.layout().segment_bytes)).expect("write");
    }
    assert_eq!(recover(&pool, REPLAY).expect("recovered").live, (24 << 20) / PIECE as u64);
}

/// Between its entry and its next use a segment is in both places, and may be half overwritten already.
#[test]
fn a_segment_that_is_in_both_counts_once_and_as_it_was_copied() {
    let (world, m, mut spiller) = begin(64 << 20);
    write(&world, &m, 0..(14 << 20) / PIECE);
    let freed = spiller.round(&world.engine).expect("a round");
    assert!(freed > 0);
    let expected = std::fs::read(&m.path).expect("read");
    let (pool, _kept) = reopen(world, &m);
    // The copy in the pool: a record of it is gone, others behind it are still there.
    let layout = pool.layout();
    for segment in 0..freed {
        pool.region.set_u64(layout.segment(segment) + 64 + 8, 0);
    }
    let report = recover(&pool, REPLAY).expect("recovered");
    assert_eq!(report.live, (14 << 20) / PIECE as u64);
    assert!(std::fs::read(&m.path).expect("read") == expected);
}

// Holds: R17
#[test]
fn an_area_that_is_missing_is_asked_for() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let at = area_of(&world.pool);
    let away = at.with_extension("away");
    std::fs::rename(&at, &away).expect("away");
    let (pool, kept) = reopen(world, &m);
    let refused = recover(&pool, REPLAY).expect_err("refused");
    assert!(matches!(refused, RecoverError::Area { .. }), "{refused}");
    assert!(refused.to_string().contains("bring the area back"), "{refused}");
    assert_eq!(std::fs::read(&m.path).expect("read"), [], "nothing was replayed");
    let path = pool.path.clone();
    drop(pool);
    std::fs::rename(&away, &at).expect("back");
    let pool = pool::open(&path).expect("open");
    assert_eq!(recover(&pool, REPLAY).expect("recovered").live, (24 << 20) / PIECE as u64);
    drop(kept);
}

// Holds: R17
#[test]
fn an_area_with_nothing_in_it_is_not_missed() {
    let (world, m, _) = begin(64 << 20);
    write(&world, &m, 0..5);
    std::fs::remove_file(area_of(&world.pool)).expect("removed");
    let (pool, _kept) = reopen(world, &m);
    assert_eq!(recover(&pool, REPLAY).expect("recovered").live, 5);
}

// Holds: R17
#[test]
fn the_area_of_another_pool_is_not_believed() {
    let (world, m, mut spiller) = begin(64 << 20);
    load(&world, &m, &mut spiller, 24 << 20);
    let other = World::with_area(SMALL, 64 << 20);
    std::fs::rename(area_of(&other.pool), area_of(&world.pool)).expect("moved");
    let (pool, _kept) = reopen(world, &m);
    let refused = recover(&pool, REPLAY).expect_err("refused").to_string();
    assert!(refused.contains("another pool"), "{refused}");
    let path = area_of(&pool);
    File::options().write(true).open(&path).expect("open").write_all_at(&[0; 64], 0).expect("write");
    let path = pool.path.clone();
    drop(pool);
    let refused = recover(&pool::open(&path).expect("open"), REPLAY).expect_err("refused").to_string();
    assert!(refused.contains("not a spill area"), "{refused}");
}

/// A device that fails switches the area off; what is in memory is destaged as ever.
// Holds: R18
#[test]
fn an_area_that_fails_is_left_alone_and_nothing_is_lost() {
    let (world, m, mut spiller) = begin(64 << 20);
    write(&world, &m, 0..(14 << 20) / PIECE);
    // No write to it succeeds.
    spiller.fail_for_tests(OpenOptions::new().write(true).open("/dev/full").expect("open").into());
    assert!(spiller.round(&world.engine).is_err());
    assert_eq!(spiller.round(&world.engine), Ok(0), "it is not asked again");
    assert!(spiller.spilling(0).failed.is_some());
    assert_eq!(live_slots(&world.pool), []);
    let round = world.destage(&m);
    assert!(round.failed.is_empty() && round.freed > 100, "{round:?}");
}

#[test]
fn an_area_of_a_size_that_does_not_go_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("memory");
    let (path, area) = (dir.path().join("pool"), dir.path().join("area"));
    let most = Layout::for_size(SMALL).expect("a layout").most_slots();
    for bytes in [100_000, slot_at(most + 1, 64 << 10)] {
        let plan = Plan { path: area.clone(), bytes };
        let refused = pool::create_with_area(&path, SMALL, true, false, Some(&plan)).expect_err("refused");
        assert!(matches!(refused, PoolError::SpillSize { .. }), "{refused}");
        assert!(!path.exists() && !area.exists());
    }
    std::fs::write(&area, "somebody's").expect("write");
    let plan = Plan { path: area.clone(), bytes: 8 << 20 };
    let refused = pool::create_with_area(&path, SMALL, true, false, Some(&plan)).expect_err("refused");
    assert!(matches!(refused, PoolError::SpillPath { .. }), "{refused}");
    assert!(!path.exists());
    assert_eq!(std::fs::read(&area).expect("read"), b"somebody's");
}

/// A pool without an area is what it always was.
#[test]
fn a_pool_without_an_area_has_version_one() {
    let world = World::new(SMALL);
    assert_eq!((world.pool.superblock.version, world.pool.area.is_none()), (1, true));
    let world = World::with_area(SMALL, 8 << 20);
    assert_eq!((world.pool.superblock.version, world.pool.area.is_some()), (2, true));
}
