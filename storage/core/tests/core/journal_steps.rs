//! A pool on a block device, step by step: something happens at each step of a sync, and then the power goes.
//!
//! A step is an access to a shared word, or a device write. The rules that are held here are those that chance alone
//! rarely reaches: what a batch may hold, which number it gets, when a segment may be used again.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::steps::Steps;
use crate::common::{Managed, World};
use seawall_core::pool::{Pool, block};
use seawall_core::{recover, table};
use seawall_media::block::read;
use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

const IMAGE: u64 = 16 << 20;
/// So small that reading it takes no time.
const JOURNAL: u64 = 3 << 20;

/// What a power cut now leaves: a pool that is made from a copy of the journal.
fn after_a_power_cut(journal: &Path) -> (Pool, tempfile::TempDir) {
    let memory = tempfile::tempdir_in("/dev/shm").expect("memory");
    let copy = memory.path().join("journal");
    std::fs::copy(journal, &copy).expect("a copy");
    (block::open_in(&copy, memory.path()).expect("a pool"), memory)
}

fn scan(pool: &Pool) -> recover::Scan {
    let files = table::files(pool).expect("a table").into_iter().map(|f| (f.slot, f)).collect();
    recover::scan(pool, &files)
}

fn tidy(world: &World) {
    sim::install(None);
    std::fs::remove_dir_all(world.pool.path.parent().expect("a directory")).expect("removed");
}

fn synced(world: &World, name: &str) -> Managed {
    let m = world.manage(name);
    m.file.write_all_at(&[1; 100_000], 0).expect("room");
    assert!(world.fsync(&m), "the first sync is real");
    m
}

/// A write, and its LSN.
fn write(world: &World, m: &Managed, thread: usize, bytes: usize) -> u64 {
    world.pwrite(m, thread, &vec![thread as u8 + 2; bytes], 0);
    world.slot(m).last_lsn()
}

/// Another process writes the file at each step of a sync: in the segment that was looked at already, then in one
/// that was not, whose header vouches for the first. Whatever the batch holds, what was before it is there too.
// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn a_batch_holds_nothing_without_what_was_before_it() {
    let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
    let m = Rc::new(synced(&world, "file"));
    let steps = Steps::install(&world);
    let (mut step, mut partial) = (0, 0);
    loop {
        // The look at the segments is among the first: each of those.
        step += if step < 160 { 1 } else { 50 };
        let lsns = Rc::new(RefCell::new(vec![write(&world, &m, 0, 30_000), write(&world, &m, 1, 100)]));
        let (w, f, l) = (Rc::clone(&world), Rc::clone(&m), Rc::clone(&lsns));
        let others = move || {
            for (thread, bytes) in [(0, 30_000), (0, 20_000), (1, 100)] {
                l.borrow_mut().push(write(&w, &f, thread, bytes));
            }
        };
        let (_, acted) = steps.during(step, Box::new(others), || assert!(!world.fsync(&m)));
        let (pool, _memory) = after_a_power_cut(&world.pool.path);
        let found = scan(&pool);
        assert_eq!(found.damage, [], "something was written at step {step}");
        let (live, all): (Vec<u64>, _) =
            (found.live.records().map(|record| record[0].header.lsn).collect(), lsns.borrow());
        assert!(all.starts_with(&live), "at step {step} {all:?} were written, and {live:?} are there");
        assert!(live.len() >= 2, "what was synced is there");
        partial += u32::from(live.len() < all.len());
        world.fsync(&m);
        world.destage(&m);
        if !acted {
            break;
        }
    }
    assert!(partial > 0, "some of it always came too late for the batch");
    tidy(&world);
}

/// Steps of a capture behind its look at the segments, and of whom it wakes; some more do no harm.
const LAST_STEPS: u64 = 40;

/// Another process syncs another file at each step of a write: what was under way then is not on the device yet, and
/// its own sync may not believe that it is.
#[test]
fn a_sync_hardens_nothing_that_others_have_under_way() {
    let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
    let (m, other) = (synced(&world, "file"), Rc::new(synced(&world, "other")));
    let steps = Steps::install(&world);
    for step in 1.. {
        let (w, o) = (Rc::clone(&world), Rc::clone(&other));
        let sync_other = move || {
            write(&w, &o, 1, 100);
            assert!(!w.fsync(&o));
        };
        let lsn = Cell::new(0);
        let (_, acted) = steps.during(step, Box::new(sync_other), || lsn.set(write(&world, &m, 0, 100)));
        assert!(!world.fsync(&m));
        let (pool, _memory) = after_a_power_cut(&world.pool.path);
        let live = scan(&pool).live;
        assert!(live.get(lsn.get()).is_some(), "synced at step {step}: {} is not in {live:?}", lsn.get());
        world.destage(&m);
        world.destage(&other);
        if !acted {
            break;
        }
    }
    tidy(&world);
}

/// A leader dies at a step of its write, its successor at another one, and the third one's batch counts.
// Holds: internals/FAILURE_MODEL#what-each-medium-survives
#[test]
fn two_leaders_that_die_in_a_row_leave_the_next_one_what_counts() {
    let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
    let m = synced(&world, "file");
    let steps = Steps::install(&world);
    write(&world, &m, 0, 100);
    let in_a_sync = || steps.during(u64::MAX, Box::new(|| ()), || assert!(!world.fsync(&m))).0;
    let total = in_a_sync();
    write(&world, &m, 0, 100);
    die_in_a_sync(&world, &m, &steps, total - LAST_STEPS);
    // The next one finds out first that the leader is dead.
    let [firsts, seconds] = [total, in_a_sync()].map(|total| total - LAST_STEPS..=total);
    for (first, second) in firsts.flat_map(|i| seconds.clone().map(move |j| (i, j))) {
        write(&world, &m, 0, 100);
        die_in_a_sync(&world, &m, &steps, first);
        die_in_a_sync(&world, &m, &steps, second);
        assert!(!world.fsync(&m));
        let journal = File::open(&world.pool.path).expect("the journal");
        let read_at = |into: &mut [u8], at| journal.read_exact_at(into, at);
        let found = read(JOURNAL, std::iter::once(0..JOURNAL), read_at, |_, _| ()).expect("a journal");
        let desk = Desk::new(&world.pool.region, IMAGE as usize);
        let (counts, end) = desk.newest();
        assert_eq!(
            (found.last, found.end),
            (counts.number(), end),
            "died at {first} and at {second} of {total}"
        );
        world.destage(&m);
    }
    tidy(&world);
}

fn cursors_of(world: &World) -> Vec<u64> {
    let desk = Desk::new(&world.pool.region, IMAGE as usize);
    (0..world.pool.superblock.segments).map(|segment| desk.cursor(segment).load(SeqCst)).collect()
}

/// A leader is stopped at each step of its sync, another process syncs in its place, and the first one goes on.
// Holds: L22
#[test]
fn one_that_is_replaced_at_any_step_harms_nothing_when_it_goes_on() {
    let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
    let m = synced(&world, "file");
    let other = Rc::new(synced(&world, "other"));
    let steps = Steps::install(&world);
    let desk = || Desk::new(&world.pool.region, IMAGE as usize);
    write(&world, &m, 0, 100);
    let (total, _) = steps.during(u64::MAX, Box::new(|| ()), || assert!(!world.fsync(&m)));
    // The look at the segments is long; what comes before and behind it is gone through step by step.
    let wanted = (1..50).chain((50..total).step_by(20)).chain(total.saturating_sub(50)..=total + 5);
    for step in wanted {
        let first = write(&world, &m, 0, 100);
        let (w, o, s) = (Rc::clone(&world), Rc::clone(&other), Rc::clone(&steps));
        let (lsn, cursors) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (second, on_device) = (Rc::clone(&lsn), Rc::clone(&cursors));
        let in_its_place = move || {
            s.meanwhile(|| {
                // Of the same lane: in the same segment, behind what the first one captures.
                second.set(write(&w, &o, 0, 100));
                assert!(!w.fsync(&o));
                *on_device.borrow_mut() = cursors_of(&w);
            });
        };
        steps.during(step, Box::new(in_its_place), || assert!(!world.fsync(&m)));
        let (pool, _memory) = after_a_power_cut(&world.pool.path);
        let found = scan(&pool);
        let synced = [first, lsn.get()].into_iter().filter(|lsn| *lsn != 0);
        assert_eq!(found.damage, [], "replaced at step {step}");
        synced.for_each(|lsn| assert!(found.live.get(lsn).is_some(), "{lsn}, at step {step}"));
        // Cleaning would take what lies behind a cursor for something that the next capture writes.
        let is_behind = |(now, then): (u64, &u64)| now < *then;
        assert!(!cursors_of(&world).into_iter().zip(&*cursors.borrow()).any(is_behind), "at step {step}");
        assert_eq!(
            desk().seats().filter(|seat| seat.holder().load(SeqCst) != 0).count(),
            0,
            "nobody sits any more"
        );
        world.destage(&m);
        world.destage(&other);
    }
    assert!(desk().replaced_ever().load(SeqCst) > 20, "it led at many steps");
    tidy(&world);
}

/// A process dies at this step of a sync, and another one comes.
fn die_in_a_sync(world: &Rc<World>, m: &Managed, steps: &Steps, at: u64) {
    steps.die(
        world,
        at,
        |_| true,
        || {
            world.fsync(m);
        },
    );
}

/// A signal handler that syncs while its own thread leads could neither lead nor wait.
#[test]
fn no_signal_handler_runs_while_its_thread_leads() {
    let world = World::with_journal(IMAGE, JOURNAL);
    let m = synced(&world, "file");
    let steps = Steps::install(&world);
    let leads = Rc::new(Cell::new(0));
    for step in (1..).step_by(7) {
        write(&world, &m, 0, 100);
        let view = Region::map(&world.pool.file, world.pool.region.len() as u64, false).expect("a mapping");
        let seen = Rc::clone(&leads);
        let look = move || {
            if Desk::new(&view, IMAGE as usize).lock().load(SeqCst) != 0 {
                seen.set(seen.get() + 1);
                assert!(is_held_back(10), "SIGUSR1 at step {step}");
            }
        };
        if !steps.during(step, Box::new(look), || assert!(!world.fsync(&m))).1 {
            break;
        }
    }
    assert!(leads.get() > 10 && !is_held_back(10));
    tidy(&world);
}

fn is_held_back(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("a number") >> (signal - 1) & 1 == 1
}

/// A segment's header vouches for the segment before it. When that one is used again, the device must know that nobody
/// needs what was in it.
#[test]
fn a_segment_is_used_again_when_the_device_knows_that_it_is_retired() {
    let world = World::with_journal(IMAGE, JOURNAL);
    let m = synced(&world, "file");
    for _ in 0..3 {
        write(&world, &m, 0, 30_000);
    }
    assert!(!world.fsync(&m));
    assert!(world.destage(&m).freed >= 2, "two segments were written");
    write(&world, &m, 0, 100);
    assert!(!world.fsync(&m));
    let (pool, _memory) = after_a_power_cut(&world.pool.path);
    let found = scan(&pool);
    assert_eq!((found.damage.as_slice(), found.live.len()), ([].as_slice(), 1));
    tidy(&world);
}
