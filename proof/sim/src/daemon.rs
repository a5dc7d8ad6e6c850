//! The daemon's background work on the simulated machine: destage rounds, reaping, registering, forgetting.
//!
//! Registering, evicting and forgetting are `seawall-core`'s; around them are the steps of `seawall-daemon`, in its order,
//! without its guards, watches and sockets.

mod descriptors;
mod registering;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::destage::{Destager, Round};
use seawall_core::reap;
use seawall_core::spill::Spiller;
use seawall_core::{Engine, Owner, table};

use crate::held::Held;
use crate::rebuild;
use crate::space::RESERVED;
use crate::world::{self, World};

use descriptors::Descriptors;

/// A process that does not exist.
pub const DEAD: u32 = 0x3fff_fff0;

/// One round of spilling in so many ends at one of the fences behind its entries.
const DIES_SPILLING: u64 = 6;

/// The daemon.
pub struct Daemon {
    /// The machine.
    pub world: Rc<World>,
    /// Its engine.
    pub engine: Rc<Engine>,
    /// Its client slot.
    pub slot: u32,
    /// Its number among logical threads.
    pub thread: usize,
    /// What copies segments to the spill area, if there is one.
    pub spiller: RefCell<Option<Spiller>>,
    /// Its descriptors of directories.
    pub held: Held,
}

/// Finishes what a process left half published that died inside the file in this slot: the daemon whose client slot this is
/// waits for the file. Anybody else waits for a daemon.
pub fn finish(client: u32, slot: u32) {
    let Some(world) = world::running().filter(|world| world.is_daemon(world.thread.get())) else { return };
    let (Some(engine), Some(index)) = (world.engine.borrow().clone(), world.file_in(slot)) else { return };
    let mut files = Descriptors::of(&world, false);
    if reap::finish_in(&engine, World::owner(client, world.thread.get()), slot, &mut files) {
        world.tell(|| format!("finished in file {index}"));
        world.count(|c| c.finished += 1);
        reaped_in(&world, &engine, index);
    }
}

/// What the dead left in a file may have been dealt with.
fn reaped_in(world: &World, engine: &Engine, index: usize) {
    world.look(index);
    world.files.borrow_mut()[index].watched = false;
    let name = world.files.borrow()[index].name;
    let slot = name.and_then(|name| engine.slot(name.slot));
    // Nobody, dead or alive, is inside.
    if world.peek(|| slot.is_none_or(|slot| slot.holder() == 0)) {
        world.settle(index);
    }
}

impl Daemon {
    /// Goes on where an earlier daemon was killed in the middle of forgetting a file.
    pub fn find_files(&self) {
        let files = table::files(&self.world.pool.borrow()).unwrap_or_default();
        for entry in files.iter().filter(|entry| self.engine.is_left_over(entry)) {
            self.engine.forget(self.who(), entry.slot);
        }
        for file in self.world.files.borrow_mut().iter_mut().filter(|file| !file.unlinked) {
            file.name = file.name.filter(|name| self.world.peek(|| self.engine.knows(*name)));
        }
        self.find_folders();
    }

    /// Works until the machine's clients are gone or it is killed.
    pub fn run(&self, idle: impl Fn() -> bool) {
        while !idle() && !self.world.is_over() {
            self.world.may_stall(500);
            rebuild::rebuild_if_lost(self);
            if self.world.area.is_some() && self.world.rng.below(8) != 0 {
                self.spill();
                self.world.give_way();
                continue;
            }
            if self.world.block.is_some() && self.world.rng.one_in(8) {
                self.back();
            }
            self.answer();
            match self.world.rng.below(8) {
                0..2 => drop(self.round()),
                2..4 => drop(self.lazy_round()),
                4 => self.reap(),
                5 if self.world.shelf.is_some() => self.register_folders(),
                5 => self.register(),
                6 if self.world.shelf.is_some() && self.world.rng.one_in(2) => self.review(),
                6 => self.forget_unlinked(),
                _ if self.world.shelf.is_some() => self.leave_folder(),
                _ => self.evict(),
            }
            self.world.give_way();
        }
    }

    /// Takes memory for one segment more, if it is in play and has none.
    fn back(&self) {
        let is_next =
            |i: u32| self.engine.shm().segment(i).is_some_and(|s| s.last_lsn().load(SeqCst) != RESERVED);
        if self.world.peek(|| is_next(self.engine.backed())) {
            let done = self.world.pool.borrow().back(&self.engine, 1);
            self.world.tell(|| format!("memory for {done:?} segments more"));
            self.world.count(|c| c.backed += u64::from(done.unwrap_or(0)));
        }
    }

    /// Gets ready to copy segments to the spill area.
    pub fn open_area(&self) {
        match Spiller::open(&self.world.pool.borrow()) {
            Ok(spiller) => *self.spiller.borrow_mut() = spiller,
            Err(e) => self.world.violate(format!("the spill area: {e}")),
        }
    }

    /// Copies what may be copied.
    fn spill(&self) {
        let spiller = &mut *self.spiller.borrow_mut();
        let Some(spiller) = spiller else { return };
        // Whoever comes next then sees an entry that a power cut may still take back.
        let dies = self.world.rng.one_in(DIES_SPILLING);
        if dies {
            self.world.light_fence(self.thread, 2);
        }
        let done = spiller.round(&self.engine);
        if dies {
            self.world.put_out(self.thread);
        }
        self.world.tell(|| format!("spilled {done:?}"));
        self.world.count(|c| c.spilled += u64::from(done.unwrap_or(0)));
    }

    /// Its identity in locks and lanes.
    pub fn who(&self) -> Owner {
        World::owner(self.slot, self.thread)
    }

    /// One destage round.
    pub fn round(&self) -> Round {
        self.make_round(false)
    }

    /// One destage round that may leave files out.
    fn lazy_round(&self) -> Round {
        self.make_round(true)
    }

    fn make_round(&self, lazy: bool) -> Round {
        let mut files = Descriptors::of(&self.world, lazy);
        let round = Destager::new(&self.engine, self.who()).round(&mut files);
        self.world.tell(|| format!("{round:?}"));
        round
    }

    /// Cleans up after the dead.
    pub fn reap(&self) {
        let shm = self.engine.shm();
        let is_dead = |client: u32| shm.client(client).is_some_and(|c| c.pid().load(SeqCst) == DEAD);
        let mut files = Descriptors::of(&self.world, false);
        let reaped = reap::dead(&self.engine, self.who(), &is_dead, &mut files);
        self.world.tell(|| format!("{reaped:?}"));
        self.world.count(|c| c.finished += u64::from(reaped.finished));
        (0..self.world.file_count()).for_each(|index| reaped_in(&self.world, &self.engine, index));
    }
}
