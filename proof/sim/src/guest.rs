//! A virtual machine, its disk, and the process of `seawall disk` that serves it.
//!
//! The guest lays its requests out in its own memory, as a driver does, and keeps what has no answer, as QEMU does. Each queue of
//! the process is a logical thread in which the disk carries them out: parsed, checked, copied, logged, published. When the process is
//! killed the next one begins with what was left. Not simulated: the rings' ends, the connection (`seawall`'s tests have a guest of
//! their own for these), and the block cache.

mod through;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use seawall_core::Engine;
use seawall_disk::{Disk, Limits, Memory, Options};
use seawall_guest::{Op, QUEUE, RING_BYTES, Ring, SLOT_BYTES};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};

use crate::client::{Descriptor, bytes};
use crate::image::memory_file;
use crate::world::World;
use through::Through;

/// A virtual machine, as long as the power stays.
pub struct Guest {
    world: Rc<World>,
    /// Its image.
    index: usize,
    memory: Memory,
    ring: RefCell<Ring>,
    /// What has no answer, by its place in the ring.
    asked: RefCell<BTreeMap<u16, Asked>>,
    /// Requests that it will still make.
    left: Cell<u64>,
    /// Its driver flushes.
    flushes: bool,
}

/// A request without an answer.
struct Asked {
    from: usize,
    len: usize,
    what: What,
}

enum What {
    Read,
    /// By its name on the platter.
    Change(u64),
    /// When it was asked for.
    Flush(u64),
}

impl Guest {
    /// One that will make so many requests of its disk.
    pub fn new(world: &Rc<World>, index: usize, requests: u64) -> Self {
        // The guest has it mapped, and whoever serves its disk.
        let shared = memory_file("guest", &[]);
        shared.set_len(RING_BYTES).expect("memory");
        let place = || FileOffset::new(shared.try_clone().expect("memory"), 0);
        let range = || [(GuestAddress(0), RING_BYTES as usize, Some(place()))];
        let own = GuestMemoryMmap::from_ranges_with_files(range()).expect("memory");
        let memory = Memory::from_ranges_with_files(range()).expect("memory");
        Self {
            world: Rc::clone(world),
            index,
            ring: RefCell::new(Ring::new(own, 0)),
            memory,
            asked: RefCell::default(),
            left: Cell::new(requests),
            flushes: !world.rng.one_in(4),
        }
    }

    /// True if it wants nothing more.
    pub fn is_done(&self) -> bool {
        self.left.get() == 0 && self.asked.borrow().is_empty()
    }

    /// Asks for something. `None`: for nothing now.
    fn ask(&self) -> Option<u16> {
        if self.left.get() == 0 {
            return None;
        }
        let slot = self.ring.borrow().free()?;
        let rng = &self.world.rng;
        let (op, from, len) = match rng.below(100) {
            0..22 => (Op::Flush, 0, 0),
            kind => {
                let (from, len) = self.place()?;
                let op = match kind {
                    22..66 => Op::Write(from as u64, bytes(&self.world, len as u64).to_vec()),
                    66..82 => Op::Read(from as u64, len),
                    82..91 => Op::Discard(from as u64, len as u32),
                    _ => Op::Zeros(from as u64, len as u32),
                };
                (op, from, len)
            }
        };
        self.left.set(self.left.get() - 1);
        let what = self.world.platter(self.index, |platter| match &op {
            Op::Flush => What::Flush(platter.now()),
            Op::Write(_, data) => What::Change(platter.ask(from, data.clone())),
            Op::Discard(..) | Op::Zeros(..) => What::Change(platter.ask(from, vec![0; len])),
            Op::Read(..) | Op::Id => What::Read,
        });
        self.world.tell(|| format!("guest of image {}: {} {from}+{len} in {slot}", self.index, kind_of(&op)));
        self.ring.borrow_mut().put(slot, op);
        self.asked.borrow_mut().insert(slot, Asked { from, len, what });
        Some(slot)
    }

    /// Where nothing is asked for yet: most are short, and some as long as a request may be here.
    fn place(&self) -> Option<(usize, usize)> {
        let rng = &self.world.rng;
        let unit = self.world.unit().max(512) as usize;
        let size = self.world.platter(self.index, |platter| platter.size());
        let longest = if rng.one_in(8) { SLOT_BYTES } else { 8192.max(unit) };
        let len = (1 + rng.below((longest / unit) as u64) as usize) * unit;
        let from = rng.below(((size - len) / unit + 1) as u64) as usize * unit;
        let is_taken = |asked: &Asked| from < asked.from + asked.len && asked.from < from + len;
        (!self.asked.borrow().values().any(is_taken)).then_some((from, len))
    }

    /// A request was carried out: what the guest makes of its answer.
    fn answered(&self, slot: u16) {
        let Some(asked) = self.asked.borrow_mut().remove(&slot) else { return };
        let done = self.ring.borrow_mut().answer(slot);
        let (from, is_done) = (asked.from, done.status == 0);
        self.world.tell(|| format!("guest of image {}: status {} in {slot}", self.index, done.status));
        self.world.count(|c| {
            c.answered += 1;
            c.flushes += u64::from(matches!(asked.what, What::Flush(_)));
        });
        // Pages whose write-back failed may have been dropped, and read as they were before.
        let is_excused = self.world.may_fail(self.index);
        let verdict = self.world.platter(self.index, |platter| match asked.what {
            What::Read if is_done && !is_excused => {
                self.world.count(|c| c.compared += 1);
                platter.check_read(from, &done.data)
            }
            What::Read if is_done => Ok(()),
            What::Change(name) if is_done => {
                platter.answer(name);
                // Whoever cannot flush finds each change durable.
                if !self.flushes {
                    platter.flushed(platter.now());
                }
                Ok(())
            }
            What::Flush(since) if is_done => {
                platter.flushed(since);
                Ok(())
            }
            What::Change(name) if platter.fail(name) || is_excused => Ok(()),
            What::Flush(_) if is_excused => Ok(()),
            _ => Err(format!("status {} for no reason", done.status)),
        });
        if let Err(why) = verdict {
            self.world.violate(format!("image {}: {why}", self.index));
        }
    }
}

fn kind_of(op: &Op) -> &'static str {
    match op {
        Op::Read(..) => "read",
        Op::Write(..) => "write",
        Op::Flush => "flush",
        Op::Discard(..) => "discard",
        Op::Zeros(..) => "zeros",
        Op::Id => "id",
    }
}

/// A process of `seawall disk`.
pub struct Server {
    guest: Rc<Guest>,
    engine: Rc<Engine>,
    /// Its client slot.
    client: u32,
    disk: OnceCell<Disk<Through>>,
    /// What its queues are carrying out.
    taken: RefCell<BTreeSet<u16>>,
}

impl Server {
    /// One that has not opened the image yet.
    pub fn new(guest: &Rc<Guest>, engine: Rc<Engine>, client: u32) -> Self {
        Self { guest: Rc::clone(guest), engine, client, disk: OnceCell::new(), taken: RefCell::default() }
    }

    /// Serves the guest until it wants nothing more.
    pub fn run(&self, opens: bool) {
        let world = &self.guest.world;
        // A process that is killed before it has begun opens nothing.
        world.step();
        let _open = Descriptor::open(world, self.guest.index);
        if opens {
            self.open();
        }
        while !self.guest.is_done() && !world.is_over() {
            let begun = self.disk.get().and_then(|disk| Some((disk, self.take()?)));
            match begun {
                Some((disk, slot)) => self.carry_out(disk, slot),
                None => world.give_way(),
            }
        }
    }

    fn open(&self) {
        let world = &self.guest.world;
        let log = Through { world: Rc::clone(world), engine: Rc::clone(&self.engine), client: self.client };
        let options = Options {
            image: "vm.img".into(),
            is_read_only: false,
            is_atomic: world.atomic,
            serial: String::new(),
            queues: 1,
            limits: Limits::default(),
            is_incoming: false,
        };
        let file = world.reopened(self.guest.index).expect("opened");
        match Disk::of(options, file, log) {
            Ok(disk) => {
                disk.has_cache.store(self.guest.flushes, Relaxed);
                let _ = self.disk.set(disk);
            }
            Err(_) if world.is_over() => {}
            Err(why) => world.violate(format!("the image cannot be opened: {why}")),
        }
    }

    /// What a former process left, or something new.
    fn take(&self) -> Option<u16> {
        let mut taken = self.taken.borrow_mut();
        let left = self.guest.asked.borrow().keys().find(|slot| !taken.contains(slot)).copied();
        self.guest.world.count(|c| c.again += u64::from(left.is_some()));
        let slot = left.or_else(|| self.guest.ask())?;
        taken.insert(slot);
        Some(slot)
    }

    fn carry_out(&self, disk: &Disk<Through>, slot: u16) {
        let (guest, world) = (&self.guest, &self.guest.world);
        world.count(|c| c.operations += 1);
        world.may_stall(64);
        let table = guest.ring.borrow().places()[0];
        if let Err(why) = disk.carry_out(Ring::head(slot), (table, QUEUE), &guest.memory) {
            world.violate(format!("a request without an answer: {why}"));
        }
        // Here a kill leaves a request that is done and has no answer.
        world.step();
        guest.answered(slot);
        self.taken.borrow_mut().remove(&slot);
    }
}
