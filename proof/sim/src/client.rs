//! What a database's thread does: writes of every shape, syncs, holds, and everything that leaves the log.

mod changes;
mod descriptor;
mod leaving;
mod syncs;

use std::rc::Rc;

use seawall_core::{At, Engine, FileRef, Owner, Scope};

use crate::names;
use crate::plan::CROWD;
use crate::world::World;

pub use descriptor::Descriptor;

/// Longest offset a write begins at.
const SPAN: u64 = 12 << 10;

/// One logical thread of a process.
pub struct Client {
    /// The machine.
    pub world: Rc<World>,
    /// The process's engine.
    pub engine: Rc<Engine>,
    /// Its client slot.
    pub slot: u32,
    /// Its number.
    pub thread: usize,
}

/// A file as a thread uses it.
#[derive(Clone)]
struct Open {
    index: usize,
    name: FileRef,
    cache: Rc<std::fs::File>,
}

/// Bytes that nobody else writes, often with zeros behind them.
pub fn bytes(world: &World, len: u64) -> Rc<Vec<u8>> {
    let (rng, len) = (&world.rng, len.next_multiple_of(world.unit()));
    let seed = rng.next();
    let mut data: Vec<u8> = (0..len).map(|i| (seed >> (i % 7 * 8)) as u8 ^ (i / 7) as u8 | 1).collect();
    if rng.one_in(4) {
        let from = rng.below(len + 1) as usize;
        data[from..].fill(0);
    }
    Rc::new(data)
}

impl Client {
    /// Lives for so many operations, if it is left alive and finds a file to work on.
    pub fn run(&self, operations: u64) {
        let (mut left, mut patience) = (operations, 200);
        while left > 0 && patience > 0 && !self.world.is_over() {
            let Some(open) = self.choose() else {
                patience -= 1;
                self.world.give_way();
                continue;
            };
            left -= 1;
            self.world.count(|c| c.operations += 1);
            self.world.may_stall(64);
            let descriptor = Descriptor::open(&self.world, open.index);
            self.operation(&open);
            self.world.step();
            drop(descriptor);
        }
    }

    /// A log with a spill area is filled faster than it is destaged.
    fn fills(&self) -> bool {
        self.world.area.is_some() && self.world.rng.one_in(4)
    }

    /// A file with a slot. Whoever opens one whose slot was taken away waits for the daemon to give it another.
    fn choose(&self) -> Option<Open> {
        let files = self.world.files.borrow();
        let find = |index| {
            let (dev, ino) = names::inode(index);
            self.world.peek(|| self.engine.find(dev, ino))
        };
        let usable: Vec<Open> = files
            .iter()
            .enumerate()
            .filter(|(_, f)| !f.unlinked && !f.leased && f.platter.is_none())
            .filter_map(|(index, f)| Some(Open { index, name: find(index)?, cache: Rc::clone(&f.cache) }))
            .collect();
        // Those of a crowd do not wait for each other's files.
        let own =
            |open: &&Open| self.world.crowded && open.index as u64 % CROWD == self.thread as u64 % CROWD;
        let any = || usable.get(self.world.rng.below((usable.len() as u64).max(1)) as usize);
        usable.iter().find(own).or_else(any).cloned()
    }

    /// What a database does most of the time.
    fn commit(&self, open: &Open) {
        self.write(open, self.world.rng.range(1, 6000), self.somewhere());
        self.sync(open, Scope::Data);
    }

    fn who(&self) -> Owner {
        World::owner(self.slot, self.thread)
    }

    fn operation(&self, open: &Open) {
        let rng = &self.world.rng;
        let kind = rng.below(100);
        self.world.tell(|| format!("file {}: operation {kind}", open.index));
        match kind {
            _ if self.world.crowded && rng.below(8) > 0 => self.commit(open),
            _ if self.fills() => self.write(open, rng.range(20_000, 90_000), self.somewhere()),
            0..34 => self.write(open, rng.range(1, 700), self.somewhere()),
            34..46 => self.write(open, rng.range(512, 6000), At::Offset(self.place() / 512 * 512)),
            46..52 => self.write(open, rng.range(1, 900), At::End),
            52..55 => self.write_at_cursor(open),
            55..57 => self.write(open, rng.range(20_000, 90_000), self.somewhere()),
            57..60 => self.truncate(open, self.place()),
            60 => self.allocate(open, self.place()),
            61..74 => self.sync(open, Scope::Whole),
            74..80 => self.sync(open, Scope::Data),
            80..82 => {
                self.rename(open);
                self.sync(open, Scope::Whole);
            }
            82 => self.rename(open),
            83 => self.touch(open),
            84..87 => self.nested(open),
            87..90 => self.fail(open),
            90..93 => self.hold(open),
            93..96 => self.pass(open),
            96 => self.unlink(open),
            97..99 => self.world.background_write_back(open.index),
            _ => self.world.give_way(),
        }
    }

    /// An offset a change may begin at.
    fn place(&self) -> u64 {
        let unit = self.world.unit();
        self.world.rng.below(SPAN) / unit * unit
    }

    fn somewhere(&self) -> At {
        At::Offset(self.place())
    }
}
