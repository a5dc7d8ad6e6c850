//! What the simulator found, each reduced to the few steps that show it.

use crate::common;
use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Calls, One, World, roll_back};
use seawall_core::destage::count_free;
use seawall_core::file::Begins;
use seawall_core::format::{Layout, RootDescriptor, RootSlot};
use seawall_core::reap::{self, Writable};
use seawall_core::recover::{Damage, Mode, Options, RecoverError, recover};
use seawall_core::{At, Errno, Owner, pool};
use seawall_media::{Region, sim};

struct Again<'a>(&'a common::Managed);

impl Writable for Again<'_> {
    fn writable(&mut self, _slot: u32) -> std::io::Result<std::fs::File> {
        self.0.file.try_clone()
    }
}

/// A root whose registration was cut by the crash is not there; it used to be damage, and nothing could be
/// recovered any more.
#[test]
fn regression_a_root_that_was_cut_is_unused() {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    file.set_len(16 << 20).expect("room");
    let region = Region::map(&file, 16 << 20, false).expect("a mapping");
    let mut root = RootDescriptor::new(1, 0, [7; 16], (1, &[9; 8]), b"/a", b"/b").expect("a root");
    root.write(&region, 3);
    assert!(matches!(RootDescriptor::read(&region, 3), RootSlot::Used(_)));
    region.set_u64(Layout::root(3), 0);
    assert!(matches!(RootDescriptor::read(&region, 3), RootSlot::Unused));
}

/// A directory's entry can be used again, and a crash between the two leaves it unused.
#[test]
fn an_erased_root_is_unused_and_can_be_written_again() {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    file.set_len(16 << 20).expect("room");
    let region = Region::map(&file, 16 << 20, false).expect("a mapping");
    for path in [&b"/a"[..], b"/b"] {
        let mut root = RootDescriptor::new(1, 0, [7; 16], (1, &[9; 8]), path, path).expect("a root");
        root.write(&region, 3);
        assert!(matches!(RootDescriptor::read(&region, 3), RootSlot::Used(found) if found.path() == path));
        RootDescriptor::erase(&region, 3);
        assert!(matches!(RootDescriptor::read(&region, 3), RootSlot::Unused));
    }
}

/// A segment whose header was damaged is missed by the next one of its lane. All its records used to vanish
/// without a word.
#[test]
fn regression_a_lost_segment_header_is_damage() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    for i in 0..80u64 {
        world.pwrite(&m, 0, &[7; 1000], i * 1000);
    }
    let first = world.pool.layout().segment(0);
    world.pool.region.store(first, &[0; 64]);
    roll_back(&m, &[]);
    let (recovered, _dir, _memory) = world.recover();
    let Err(RecoverError::Damaged(all)) = recovered else { panic!("{recovered:?}") };
    assert!(matches!(all[0], Damage::Record { segment: 0, offset: 0, .. }), "{all:?}");
    assert_eq!(m.file.metadata().expect("a size").len(), 0, "nothing was written");
}

/// A write that meets a full log takes its file out of it. If a sync failed before, the kernel has dropped
/// the pages and says yes now: the records must stay all the same.
#[test]
fn regression_leaving_the_log_does_not_retire_what_a_sync_failed_on() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, b"acknowledged", 0);
    world.engine.disturb(m.name);
    let failed = world.engine.fsync(world.who(0), m.name, || Err(Errno::IO));
    assert_eq!(failed, Err(Errno::IO));
    world.engine.pass(world.who(0), m.name, || Ok(()), || ());
    roll_back(&m, b"older");
    let path = m.path.clone();
    let (recovered, _dir, _memory) = world.recover();
    assert_eq!(recovered.expect("a recovery").live, 1);
    assert_eq!(std::fs::read(path).expect("read"), b"acknowledged");
}

/// The segments of the dead are free after the next destage; it used to take another write.
#[test]
fn regression_the_segments_of_the_dead_are_freed() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let dead = world.engine.claim_client(999_999, 0).expect("a client");
    let who = Owner::new(dead, 1 << 4);
    let torn_out = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let publish = || -> Result<usize, Errno> { std::panic::resume_unwind(Box::new(())) };
        let data = [&[5; 100][..]];
        world.engine.write(who, m.name, m.file.as_fd(), At::Offset(0), data.into_iter(), publish)
    }));
    assert!(torn_out.is_err());
    // Unwinding tidied up; the dead do not.
    let lane = world.engine.shm().lanes().position(|l| l.segment().load(SeqCst) != 0).expect("a lane");
    let lane = world.engine.shm().lane(lane as u32).expect("the lane");
    lane.owner().store(who.word(), SeqCst);
    let reaped = reap::dead(&world.engine, world.who(1), &|client| client == dead, &mut Again(&m));
    assert_eq!(reaped.lanes, 1);
    let round = seawall_core::destage::Destager::new(&world.engine, world.who(1)).round(&mut One(&m));
    assert!(round.failed.is_empty());
    assert_eq!(count_free(&world.engine), world.engine.layout().segments);
}

/// A process that is killed right after it took a segment has not told its lane yet. The segment was lost until
/// the next start.
#[test]
fn regression_a_segment_taken_by_the_dead_is_freed() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    let dead = world.engine.claim_client(999_999, 0).expect("a client");
    let shm = world.engine.shm();
    shm.lane(7).expect("a lane").owner().store(Owner::new(dead, 1 << 4).word(), SeqCst);
    assert!(shm.segment(5).expect("a segment").claim(7));
    reap::dead(&world.engine, world.who(1), &|client| client == dead, &mut Again(&m));
    seawall_core::destage::Destager::new(&world.engine, world.who(1)).round(&mut One(&m));
    assert_eq!(count_free(&world.engine), world.engine.layout().segments);
}

/// A daemon is killed after it took a segment from its idle lane and before it freed it. The next one found an open
/// segment that no lane knew of, and left it so until the pool was started anew.
#[test]
fn regression_a_segment_between_lane_and_free_is_freed() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    assert!(world.engine.shm().segment(5).expect("a segment").claim(7));
    world.destage(&m);
    assert_eq!(count_free(&world.engine), world.engine.layout().segments);
}

/// A process dies inside a file while another one syncs it. That one finds the lock lost when it comes back, and
/// cannot tell whether its sync covered the dead one's record: the next one must deal with it.
#[test]
fn regression_a_lock_found_lost_after_a_sync_stays_lost() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    let dead = world.dead();
    let dies_meanwhile = || {
        world.dies_inside(&m, dead);
        Ok(())
    };
    world.engine.fsync(world.who(0), m.name, dies_meanwhile).expect("a sync");
    assert_eq!(world.slot(&m).holder(), dead.word());
    world.pwrite(&m, 0, b"more", 0);
    assert_eq!(world.slot(&m).holder(), 0);
    assert!(!world.is_tracked(&m), "the file left the log first");
}

/// The process inside is stopped. Another one, which comes back from its sync, takes the lock and cannot deal with what
/// it finds; meanwhile the first one goes on. The lock used to be given back to it, after it had left: from there on it took
/// itself for a signal handler of its own, retired nothing, and old records came back over what its syncs had acknowledged.
#[test]
fn regression_who_lost_its_lock_alive_is_not_inside_when_it_comes_again() {
    struct Stopped;
    impl sim::Observer for Stopped {
        fn waits(&self) -> bool {
            true
        }
        fn halts(&self) -> Option<bool> {
            Some(true)
        }
    }
    for goes_on_first in [true, false] {
        let world = World::new(16 << 20);
        let m = world.manage("wal");
        assert!(world.fsync(&m), "now it is in the log");
        world.pwrite(&m, 0, b"old", 0);
        let enter = |thread| {
            let entered = world.slot(&m).enter(world.engine.shm(), world.who(thread));
            entered.alone().expect("this thread is not inside")
        };
        let stopped = enter(0);
        let before = sim::install(Some(Rc::new(Stopped)));
        let finds_it = enter(1);
        sim::install(before);
        assert!(finds_it.inherited());
        let (first, second) = if goes_on_first { (stopped, finds_it) } else { (finds_it, stopped) };
        drop(first);
        drop(second);
        world.pwrite(&m, 0, b"new", 0);
        assert!(world.fsync(&m), "it never returns to the log");
        let file = m.file.try_clone().expect("a descriptor");
        let (report, _dir, _memory) = world.recover();
        assert_eq!(report.expect("recovered").live, 0);
        let mut content = [0; 3];
        file.read_exact_at(&mut content, 0).expect("read");
        assert_eq!(&content, b"new");
    }
}

/// A mapping goes while the file is being synced: what was stored through it last may have come after the sync had
/// written its page.
#[test]
fn a_sync_does_not_cover_a_hold_that_ends_meanwhile() {
    let world = World::new(16 << 20);
    let m = world.manage("db");
    world.fsync(&m);
    world.engine.hold(world.who(0), m.name, || Ok(()));
    let ends_meanwhile = || {
        world.engine.release(world.who(0), m.name);
        Ok(())
    };
    world.engine.fsync(world.who(1), m.name, ends_meanwhile).expect("a sync");
    assert!(!world.is_tracked(&m), "nobody has synced what it stored");
    assert!(world.fsync(&m) && world.is_tracked(&m), "the next one is real, and covers it");
}

/// A process died inside the file, and an fsync that has to be real finds its lock: what the dead one wrote may
/// be in the page cache alone.
#[test]
fn a_real_sync_that_inherits_a_lock_is_still_real() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, b"data", 0);
    world.engine.disturb(m.name);
    world.dies_inside(&m, world.dead());
    assert!(world.fsync(&m));
    assert!(!world.is_tracked(&m), "the file left the log");
}

/// Two processes: one removes the file's last name while the other syncs it. The file must not come back to
/// the log, or a power cut would leave records of a file that is gone.
#[test]
fn regression_an_unlinked_file_does_not_come_back_to_the_log() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let remove = || std::fs::remove_file(&m.path).map_err(|_| Errno::IO);
    world.engine.unlink(world.who(0), m.name, || Ok(()), remove).expect("an unlink");
    assert!(world.fsync(&m));
    assert!(!world.is_tracked(&m));
    let m_path: &PathBuf = &m.path;
    assert!(!m_path.exists());
    world.pwrite(&m, 0, b"into the void", 0);
    let path = world.pool.path.clone();
    let World { dir: _dir, memory: _memory, pool: old, engine, .. } = world;
    drop((old, engine));
    let pool = pool::open(&path).expect("open");
    let options = Options { mode: Mode::Replay, accept_loss: false };
    assert_eq!(recover(&pool, options).expect("a recovery").live, 0);
}

/// A file that was given to another user could have records, and recovery, which leaves files of others alone,
/// refused the whole log because of it.
#[test]
fn regression_a_file_given_to_another_user_has_no_records() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, b"acknowledged", 0);
    let retire = || m.file.sync_data().map_err(|_| Errno::IO);
    let refused = world.engine.give_away(world.who(0), m.name, retire, || Err(Errno::PERM));
    assert_eq!(refused, Err(Errno::PERM));
    world.fsync(&m);
    assert!(world.is_tracked(&m), "nothing happened");
    world.pwrite(&m, 0, b"and again...", 0);
    let given = world.engine.give_away(world.who(0), m.name, retire, || {
        assert!(!world.engine.is_dirty(m.name), "retired before it is another's");
        Ok::<_, Errno>(())
    });
    assert_eq!(given, Ok(()));
    assert!(world.fsync(&m), "real from now on");
    assert!(!world.is_tracked(&m));
}

/// A signal handler writes to the bytes that its thread is writing, and the process dies in it. The interrupted write
/// had not returned: the daemon makes it again, and it is then the later of two that were under way at once. Either
/// order is right, a mixture is not; and the next sync is real, because the handler's write is not in the log.
// Holds: L18
#[test]
fn a_write_that_a_handler_interrupted_is_whole() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let dead = world.engine.claim_client(0x3fff_fff0, 0).expect("a client");
    let who = Owner::new(dead, 1 << 4);
    let write = |data: &[u8], dies: &dyn Fn()| {
        let publish = || {
            m.file.write_all_at(data, 0).expect("a write");
            dies();
            Ok(data.len())
        };
        world.engine.write(who, m.name, m.file.as_fd(), At::Offset(0), [data].into_iter(), publish)
    };
    // What a kill leaves: unwinding would tidy up.
    let shm = world.engine.shm();
    let left = Cell::new(None);
    let handler = || {
        write(b"inner", &|| ()).expect("the kernel's own");
        let lane = shm.lanes().find(|lane| lane.owner().load(SeqCst) == who.word()).expect("its lane");
        let words = [lane.record(), lane.inflight(), lane.lsn()].map(|word| word.load(SeqCst));
        left.set(Some((lane.slot().load(SeqCst), words)));
    };
    write(b"the outer one", &handler).expect("a write");
    let (slot, [record, inflight, lsn]) = left.take().expect("the handler ran");
    assert_ne!(record, 0, "its publish had begun");
    m.file.write_all_at(b"inner", 0).expect("a write");
    let lane = shm.lane(0).expect("a lane");
    lane.slot().store(slot, SeqCst);
    lane.record().store(record, SeqCst);
    lane.inflight().store(inflight, SeqCst);
    lane.lsn().store(lsn, SeqCst);
    lane.owner().store(who.word(), SeqCst);
    world.dies_inside(&m, who);
    let reaped = reap::dead(&world.engine, world.who(1), &|client| client == dead, &mut Again(&m));
    assert_eq!((reaped.finished, reaped.lanes), (1, 1));
    assert_eq!(std::fs::read(&m.path).expect("read"), b"the outer one");
    assert!(world.fsync(&m), "the next sync is real");
}

/// Policy `atomic`: a process dies while it has a file out of the log, for a sendfile(2) say. The reaper takes the file back
/// at once: what others wrote until the destager's next round would go around the log, and could tear.
#[test]
fn a_file_that_the_dead_took_out_is_back_in_the_log_before_anybody_writes_it() {
    let world = World::new(16 << 20);
    let m = world.manage_as("data", Begins::InLog, false);
    assert!(world.is_tracked(&m));
    let dead = world.dead();
    std::mem::forget(world.engine.take_out(dead, m.name, || Ok(())));
    assert!(!world.is_tracked(&m));
    let reaped = reap::dead(&world.engine, world.who(1), &|client| client == dead.client(), &mut Again(&m));
    assert_eq!(reaped.locks, 1);
    assert!(world.is_tracked(&m));
}

/// A process that is killed between a hold's entry and the file's own count of its holds. Both ways round the reaper took
/// away what was not there: the file stayed out for good, or came back while another process had it mapped.
#[test]
fn regression_holds_of_the_dead_are_counted_and_not_subtracted() {
    for (entry_says, file_says) in [(2, 1), (1, 2)] {
        let world = World::new(16 << 20);
        let m = world.manage("wal");
        world.fsync(&m);
        let client = world.engine.claim_client(999_999, 0).expect("a client");
        let (dead, other) = (Owner::new(client, 1 << 4), world.who(3));
        for who in [other, dead] {
            world.engine.hold(who, m.name, || Ok(()));
        }
        let holds = || world.engine.shm().holds().filter(|hold| hold.client().load(SeqCst) == client + 1);
        let hold = holds().next().expect("its entry");
        hold.count().store(entry_says, SeqCst);
        if file_says > 1 {
            world.engine.hold(dead, m.name, || Ok(()));
            hold.count().store(entry_says, SeqCst);
        }
        let reaped = reap::dead(&world.engine, world.who(1), &|of| of == client, &mut Again(&m));
        assert_eq!((reaped.holds, holds().count()), (1, 0));
        assert!(world.fsync(&m) && world.fsync(&m), "the other one has it mapped");
        assert!(!world.is_tracked(&m), "entry {entry_says}, file {file_says}");
        world.engine.release(other, m.name);
        world.fsync(&m);
        assert!(world.is_tracked(&m), "nobody has it mapped");
    }
}
