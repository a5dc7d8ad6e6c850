//! Room in a journal: for tables and for cleaning there is some whatever happens, also while it is cleaned and after
//! that was given up.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::steps::Steps;
use crate::common::{Managed, World};
use seawall_core::destage::{Destager, Files, Round};
use seawall_core::file::Flag;
use seawall_media::sim;
use seawall_wire::desk::Desk;

const IMAGE: u64 = 16 << 20;
const JOURNAL: u64 = 3 << 20;
/// Steps that are left out between two that are tried.
const STRIDE: usize = 61;

/// A log of which two fifths are live, so that cleaning fills four fifths of the journal.
struct Scene {
    world: Rc<World>,
    /// Its records are live: nothing retires them yet.
    live: Managed,
    /// A file that can be destaged.
    other: Managed,
    steps: Rc<Steps>,
}

impl Scene {
    fn new() -> Self {
        let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
        let [live, other] = ["live", "other"].map(|name| {
            let m = world.manage(name);
            m.file.write_all_at(&[1; 100_000], 0).expect("room");
            assert!(world.fsync(&m), "the first sync is real");
            m
        });
        let steps = Steps::install(&world);
        let scene = Self { world, live, other, steps };
        scene.fill();
        scene.world.pwrite(&scene.other, 0, &[3; 100], 0);
        assert!(!scene.world.fsync(&scene.other));
        scene
    }

    fn fill(&self) {
        for _ in 0..12 {
            self.world.pwrite(&self.live, 0, &[2; 100_000], 0);
            assert!(!self.world.fsync(&self.live), "the log has room");
        }
    }

    /// A round of the destager in which only the other file is due: then the journal is cleaned.
    fn round(&self) -> Round {
        Destager::new(&self.world.engine, self.world.who(7)).round(&mut Only(&self.other))
    }

    fn desk(&self) -> Desk<'_> {
        Desk::new(&self.world.pool.region, IMAGE as usize)
    }

    /// Everything can be retired, and the log is as roomy as a new one.
    fn is_usable(&self, when: &str) {
        let round = self.world.destage(&self.live);
        assert!(round.failed.is_empty(), "{when}: {:?}", round.failed);
        self.fill();
        let state = self.world.engine.state(self.live.name);
        assert!(!state.has(Flag::FAILED), "{when}: a sync failed");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        sim::install(None);
    }
}

struct Only<'a>(&'a Managed);

impl Files for Only<'_> {
    fn descriptor(&mut self, _slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        Ok(self.0.file.as_fd())
    }
    fn is_due(&mut self, slot: u32, _watermark: u64) -> bool {
        slot == self.0.name.slot
    }
}

/// A table is changed at each step at which nobody leads.
#[test]
fn tables_change_while_the_journal_is_cleaned() {
    let changed = Rc::new(Cell::new(0));
    for step in (1_u64..).step_by(STRIDE) {
        let scene = Scene::new();
        let (world, count) = (Rc::clone(&scene.world), Rc::clone(&changed));
        let change = move || {
            let desk = Desk::new(&world.pool.region, IMAGE as usize);
            if desk.lock().load(SeqCst) == 0 && desk.cleaned().load(SeqCst) > 0 {
                world.pool.region.change(&[(0, 64)], |_| ()).expect("room for a table");
                count.set(count.get() + 1);
            }
        };
        let (_, acted) = scene.steps.during(step, Box::new(change), || drop(scene.round()));
        assert_eq!(scene.desk().cleaned().load(SeqCst), 0, "cleaned to the end at step {step}");
        scene.is_usable(&format!("changed at step {step}"));
        if !acted {
            break;
        }
    }
    assert!(changed.get() > 10, "{} changes while it was cleaned", changed.get());
}

/// The daemon dies while it cleans, and its successors too.
#[test]
fn cleaning_that_was_given_up_leaves_room_for_tables_and_for_cleaning() {
    let mut deaths = 0;
    for step in (1_u64..).step_by(STRIDE) {
        let scene = Scene::new();
        let is_cleaning = |desk: Desk<'_>| desk.cleaned().load(SeqCst) > 0;
        let mut acted = false;
        for _ in 0..4 {
            let (died, passed) = scene.steps.die(&scene.world, step, is_cleaning, || drop(scene.round()));
            deaths += u32::from(died);
            acted |= passed;
            scene.world.pool.region.change(&[(0, 64)], |_| ()).expect("room for a table");
        }
        scene.is_usable(&format!("died at step {step}"));
        if !acted {
            break;
        }
    }
    assert!(deaths > 10, "{deaths} died while they cleaned");
}

/// No table is changed and nothing is cleaned: there is no room for the batch that a sync needs.
#[test]
fn who_finds_the_journal_full_leaves_the_log_by_a_real_sync() {
    let world = World::with_journal(IMAGE, JOURNAL);
    let m = world.manage("live");
    assert!(world.fsync(&m), "the first sync is real");
    let is_real = || {
        world.pwrite(&m, 0, &[2; 100_000], 0);
        assert!(world.is_tracked(&m), "the memory has room");
        world.fsync(&m)
    };
    let syncs = (1..100).find(|_| is_real()).expect("it is full at last");
    assert!(syncs > 10, "{syncs}");
    assert!(!world.is_tracked(&m));
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("recovered").live, 0, "that sync retired them");
}
