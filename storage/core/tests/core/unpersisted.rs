//! A record that is whole and cannot be persisted, of a file whose every write is to be logged: nobody loses sight of it.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use crate::common::{Calls, Managed, World};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::{Begins, Flag};
use seawall_core::{At, Errno};
use seawall_media::sim::{self, Observer};

const IMAGE: u64 = 16 << 20;
const JOURNAL: u64 = 3 << 20;
const PAGE: [u8; 8192] = [7; 8192];

/// Nothing is due: a round makes room in the journal, and enters no file.
struct Nothing<'a>(&'a Managed);

impl Files for Nothing<'_> {
    fn descriptor(&mut self, _slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        Ok(self.0.file.as_fd())
    }
    fn is_due(&mut self, _slot: u32, _watermark: u64) -> bool {
        false
    }
}

/// Looks on whenever somebody waits, and is the daemon the twentieth time.
struct Looker {
    world: Rc<World>,
    managed: Rc<Managed>,
    durable: Cell<u64>,
    waits: Cell<u32>,
}

impl Observer for Looker {
    fn waits(&self) -> bool {
        let slot = self.world.slot(&self.managed);
        let unpublished = slot.last_lsn() > self.durable.get().max(slot.watermark());
        assert!(!unpublished || slot.holder() != 0, "who dies now leaves a record, and no lock that says so");
        self.waits.set(self.waits.get() + 1);
        if self.waits.get() == 20 {
            Destager::new(&self.world.engine, self.world.who(7)).round(&mut Nothing(&self.managed));
        }
        true
    }
}

#[test]
fn regression_who_waits_for_room_in_the_journal_keeps_the_file() {
    let world = Rc::new(World::with_journal(IMAGE, JOURNAL));
    let managed = Rc::new(world.manage_as("16384", Begins::InLog, false));
    let looker = Rc::new(Looker {
        world: Rc::clone(&world),
        managed: Rc::clone(&managed),
        durable: Cell::default(),
        waits: Cell::default(),
    });
    sim::install(Some(Rc::clone(&looker) as Rc<dyn Observer>));
    for i in 0..2 * JOURNAL / PAGE.len() as u64 {
        if looker.waits.get() > 0 {
            break;
        }
        world.pwrite(&managed, 0, &PAGE, i % 16 * PAGE.len() as u64);
        looker.durable.set(world.slot(&managed).last_lsn());
    }
    sim::install(None);
    assert!(looker.waits.get() >= 20, "the journal was full, and was given room");
    assert!(world.is_tracked(&managed), "it went on in the log");
    assert_eq!(world.slot(&managed).counters().left, 0);
}

#[test]
fn regression_a_device_that_failed_is_not_waited_for() {
    let world = World::on_block(IMAGE);
    let m = world.manage_as("16384", Begins::InLog, false);
    world.pwrite(&m, 0, &PAGE, 0);
    let journal = world.engine.pool().journal().expect("a journal");
    let desk = journal.desk(world.engine.pool());
    desk.failed().store(Errno::IO.raw_os_error() as u32, std::sync::atomic::Ordering::SeqCst);
    let publish = || -> Result<usize, Errno> { panic!("a page that nothing stands for") };
    let who = world.who(0);
    let data = [&PAGE[..]];
    let done = world.engine.write(who, m.name, m.file.as_fd(), At::Offset(0), data.into_iter(), publish);
    assert_eq!(done, Err(Errno::IO));
    assert!(world.engine.state(m.name).has(Flag::FAILED));
    assert!(!world.engine.is_exhausted() && !world.engine.gave_up(), "nobody waited for space");
    assert_eq!(world.engine.fsync(who, m.name, || panic!("a real sync")), Err(Errno::IO));
}
