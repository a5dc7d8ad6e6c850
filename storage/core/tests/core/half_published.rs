//! A process is killed while the kernel copies what it writes, and half of a page is in the file. Nobody makes that durable: whoever
//! comes next waits until the daemon has made the page whole from its record. Nor does anybody open the file and see half of it: without
//! Seawall the dead write no more.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use crate::common::{Managed, World};
use rustix::io::Errno;
use seawall_core::file::Begins;
use seawall_core::reap::{self, Writable};
use seawall_core::{At, Engine, FileRef, Owner, Scope};

const PAGE: usize = 8192;

/// The daemon's way to the file.
struct Reopened<'a>(&'a Managed);

impl Writable for Reopened<'_> {
    fn writable(&mut self, _slot: u32) -> std::io::Result<File> {
        self.0.file.try_clone()
    }
}

/// A file under policy `atomic` with a page of `o`, half of which is `n` since a process was killed.
fn torn(world: &World) -> (Managed, Owner) {
    let m = world.manage_as("data", Begins::InLog, false);
    world.pwrite(&m, 0, &[b'o'; PAGE], 0);
    world.destage(&m);
    let dead = world.dead();
    dies_writing(world, &m, dead);
    (m, dead)
}

fn dies_writing(world: &World, m: &Managed, dead: Owner) {
    let page = [b'n'; PAGE];
    let begun = world.engine.begin(dead, m.name, m.file.as_fd());
    let change = begun.log_write(At::Offset(0), [&page[..]].into_iter()).expect("logged");
    assert!(change.is_logged());
    m.file.write_all_at(&page[..PAGE / 2], 0).expect("half of it");
    // Dropped it would tidy up.
    std::mem::forget(change);
}

fn is_whole(file: &File) -> bool {
    let mut page = [0; PAGE];
    file.read_exact_at(&mut page, 0).expect("read");
    page == [b'n'; PAGE]
}

/// What somebody else does with the file.
type Use = fn(&Engine, Owner, FileRef, &File, &dyn Fn() -> Result<(), Errno>);

const USES: [(&str, Use); 5] = [
    ("a write", |engine, who, name, file, _| {
        let begun = engine.begin(who, name, file.as_fd());
        let change = begun.log_write(At::Offset(PAGE as u64), [&b"behind it"[..]].into_iter());
        file.write_all_at(b"behind it", PAGE as u64).expect("written");
        change.expect("logged").finish(true);
    }),
    ("a real sync", |engine, who, name, _, sync| {
        engine.disturb(name);
        engine.sync(who, name, Scope::Data).by(|_| sync()).expect("synced");
    }),
    ("a change that no record says", |engine, who, name, _, sync| {
        engine.take_out(who, name, sync).finish(sync);
    }),
    ("a mapping", |engine, who, name, _, sync| engine.hold(who, name, sync)),
    ("an open, to look", |engine, who, name, file, _| {
        engine.opens(name, || Some(who));
        assert!(is_whole(file), "what it finds is what stays");
    }),
];

// Holds: P2
#[test]
fn half_a_page_of_a_dead_process_is_whole_before_anybody_makes_it_durable() {
    for (what, uses) in USES {
        let world = World::new(16 << 20);
        let (m, dead) = torn(&world);
        let (engine, who, is_through) = (&world.engine, world.who(2), AtomicBool::new(false));
        let is_first_sync_whole = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sync = || {
                    is_first_sync_whole.fetch_and(is_whole(&m.file), SeqCst);
                    Ok(())
                };
                uses(engine, who, m.name, &m.file, &sync);
                is_through.store(true, SeqCst);
            });
            std::thread::sleep(Duration::from_millis(60));
            assert!(!is_through.load(SeqCst), "{what} waits for the daemon");
            let is_dead = |client| client == dead.client();
            let reaped = reap::dead(engine, world.who(1), &is_dead, &mut Reopened(&m));
            assert_eq!((reaped.finished, reaped.lanes), (1, 1), "{what}");
        });
        assert!(is_first_sync_whole.load(SeqCst) && is_whole(&m.file), "{what}");
    }
}

/// Its threads cannot wait for each other: the one that buries the dead may need what the waiting one has.
#[test]
fn a_thread_of_the_daemon_s_makes_it_whole_itself() {
    let world = Box::leak(Box::new(World::new(16 << 20)));
    let (m, _) = torn(world);
    let m: &'static Managed = Box::leak(Box::new(m));
    let world: &'static World = world;
    world.engine.finishes_by(|slot| {
        assert!(reap::finish_in(&world.engine, world.who(7), slot, &mut Reopened(m)));
    });
    assert!(world.destage(m).failed.is_empty());
    assert!(is_whole(&m.file) && world.is_tracked(m));
    assert!(!reap::finish_in(&world.engine, world.who(7), m.name.slot, &mut Reopened(m)), "it is done");
}

/// What was published again once is not published over what others have written since, also if the lane is still the dead one's
/// and the next process dies in the same file.
#[test]
fn it_is_made_whole_once() {
    let world = World::new(16 << 20);
    let (m, dead) = torn(&world);
    assert!(reap::finish_in(&world.engine, world.who(1), m.name.slot, &mut Reopened(&m)));
    world.pwrite(&m, 0, &[b'x'; PAGE], 0);
    let next = world.dead();
    world.dies_inside(&m, next);
    let gone = [dead.client(), next.client()];
    reap::dead(&world.engine, world.who(1), &|client| gone.contains(&client), &mut Reopened(&m));
    assert_eq!(std::fs::read(&m.path).expect("read"), [b'x'; PAGE]);
}

#[test]
fn a_write_beyond_the_end_that_has_not_begun_is_not_made() {
    let world = World::new(16 << 20);
    let m = world.manage_as("data", Begins::InLog, false);
    world.pwrite(&m, 0, &[b'o'; PAGE], 0);
    let dead = world.dead();
    let begun = world.engine.begin(dead, m.name, m.file.as_fd());
    // The kernel refuses it beyond RLIMIT_FSIZE, and kills the process.
    let change =
        begun.log_write(At::Offset(2 * PAGE as u64), [&[b'n'; PAGE][..]].into_iter()).expect("logged");
    std::mem::forget(change);
    let reaped =
        reap::dead(&world.engine, world.who(1), &|client| client == dead.client(), &mut Reopened(&m));
    assert_eq!((reaped.finished, reaped.locks), (0, 0), "{reaped:?}");
    assert_eq!(m.file.metadata().expect("looked at").len(), PAGE as u64);
}
