//! The logical threads of one life: processes with their threads, daemons, and their deaths.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::Engine;

use crate::client::Client;
use crate::daemon::{self, DEAD, Daemon};
use crate::fiber::{Fiber, State};
use crate::guest::{Guest, Server};
use crate::namer::Namer;
use crate::pending::THREADS;
use crate::rebuild;
use crate::restart::{Scene, start};
use crate::world::World;

/// How often a daemon goes on until it has the directories. It may never have them: those of a log whose device has failed.
const ENTERING: u32 = 100_000;

/// Logical threads of one life.
pub struct Threads {
    /// All of them, in no order.
    pub all: Vec<Thread>,
    /// Segments the log may use.
    pub room: u32,
    /// Virtual machines, each with the client slot of the process that serves its disk, or that did.
    pub guests: Vec<(Rc<Guest>, Option<u32>)>,
}

/// A logical thread.
pub struct Thread {
    number: usize,
    client: u32,
    fiber: Fiber,
    /// It is a daemon's only one.
    pub daemon: bool,
    /// It returned, or was killed.
    pub ended: bool,
}

impl Thread {
    /// It goes no further: what it has on its stack is dropped.
    fn unwind(&mut self, world: &World) {
        if !self.ended && self.fiber.state() == State::Ready {
            world.fuses.borrow_mut()[self.number] = Some(0);
            world.thread.set(self.number);
            world.unwinding(|| self.fiber.resume());
        }
    }
}

impl Threads {
    fn number(&self) -> usize {
        let taken = |n: &usize| self.all.iter().any(|t| t.number == *n && !t.ended);
        (0..THREADS - 4).find(|n| !taken(n)).unwrap_or(0)
    }

    fn add(&mut self, world: &World, client: u32, number: usize, daemon: bool, fiber: Fiber) {
        world.born(number, daemon);
        self.all.push(Thread { number, client, fiber, daemon, ended: false });
    }

    /// A daemon.
    pub fn daemon(&mut self, world: &Rc<World>, engine: &Rc<Engine>, idle: &Rc<Cell<bool>>) {
        let number = self.number();
        let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return };
        engine.finishes_by(move |file| daemon::finish(slot, file));
        let (world_of, engine_of) = (Rc::clone(world), Rc::clone(engine));
        let daemon = Daemon {
            world: world_of,
            engine: engine_of,
            slot,
            thread: number,
            spiller: RefCell::default(),
            held: RefCell::default(),
        };
        let idle = Rc::clone(idle);
        if world.rng.one_in(2) {
            // To look through what was captured takes some thousand steps.
            let is_long = world.block.is_some() || world.shelf.is_some();
            world.light(number, if is_long { 20_000 } else { 6000 }, 40);
        }
        let body = move || {
            rebuild::inherit(&daemon);
            daemon.find_files();
            daemon.open_area();
            daemon.reap();
            daemon.register();
            daemon.register_folders();
            daemon.run(|| idle.get());
        };
        self.add(world, slot, number, true, Fiber::new(body));
    }

    /// The daemon goes on until it has registered the directories, if it can, so that most of what processes do is in the log.
    pub fn register(&mut self, world: &Rc<World>) {
        let tops = world.shelf().tree.borrow().tops();
        let is_done = || tops.clone().all(|folder| world.shelf().slots.borrow().contains_key(&folder));
        for _ in 0..ENTERING {
            if is_done() || world.is_over() {
                return;
            }
            let Some(daemon) = self.all.iter().position(|t| t.daemon && !t.ended) else { return };
            world.wake(self.all[daemon].number);
            self.resume(world, daemon);
        }
    }

    /// A process of one or two threads.
    pub fn process(&mut self, world: &Rc<World>, engine: &Rc<Engine>, operations: u64) {
        let Some(slot) = world.peek(|| engine.claim_client(std::process::id(), 0)) else { return };
        let dies = world.rng.one_in(if world.crowded { 12 } else { 3 });
        for _ in 0..world.rng.range(1, 3) {
            let thread = self.number();
            let (world_of, engine_of) = (Rc::clone(world), Rc::clone(engine));
            if world.shelf.is_some() {
                let namer = Namer { world: world_of, engine: engine_of, slot, thread };
                self.mortal(world, slot, thread, dies, move || namer.run(operations));
            } else {
                let client = Client { world: world_of, engine: engine_of, slot, thread };
                self.mortal(world, slot, thread, dies, move || client.run(operations));
            }
        }
    }

    /// A thread of a process that is killed some time, or is not.
    fn mortal(&mut self, world: &World, slot: u32, thread: usize, dies: bool, body: impl FnOnce() + 'static) {
        if dies {
            world.light(thread, if world.block.is_some() { 5000 } else { 1500 }, 20);
        }
        self.add(world, slot, thread, false, Fiber::new(body));
    }

    /// A virtual machine whose disk nobody serves gets a process that does, sooner or later.
    pub fn serve(&mut self, world: &Rc<World>) {
        for i in 0..self.guests.len() {
            let (guest, client) = &self.guests[i];
            let is_served = self.all.iter().any(|t| Some(t.client) == *client && !t.daemon && !t.ended);
            if is_served || guest.is_done() || !world.rng.one_in(20) {
                continue;
            }
            let guest = Rc::clone(guest);
            self.guests[i].1 = self.server(world, &guest);
        }
    }

    /// A process of one to three queues.
    fn server(&mut self, world: &Rc<World>, guest: &Rc<Guest>) -> Option<u32> {
        let engine = world.engine.borrow().clone()?;
        let slot = world.peek(|| engine.claim_client(std::process::id(), 0))?;
        let server = Rc::new(Server::new(guest, engine, slot));
        let dies = world.rng.one_in(3);
        for i in 0..world.rng.range(1, 4) {
            let (thread, server) = (self.number(), Rc::clone(&server));
            self.mortal(world, slot, thread, dies, move || server.run(i == 0));
        }
        Some(slot)
    }

    /// True while a client lives, or somebody's disk is to be served.
    pub fn has_clients(&self) -> bool {
        self.all.iter().any(|t| !t.daemon && !t.ended) || self.guests.iter().any(|(g, _)| !g.is_done())
    }

    /// True while a daemon lives.
    pub fn has_daemon(&self) -> bool {
        self.all.iter().any(|t| t.daemon && !t.ended)
    }

    /// Lets one of them go on, if there is one.
    pub fn resume(&mut self, world: &Rc<World>, i: usize) {
        let Some(thread) = self.all.get_mut(i) else { return };
        if thread.ended || world.is_asleep(thread.number) {
            return;
        }
        world.thread.set(thread.number);
        match thread.fiber.resume() {
            State::Ready => {}
            State::Ended => thread.ended = true,
            State::Panicked => {
                thread.ended = true;
                world.violate(format!("a panic: {}", thread.fiber.panic_text()));
            }
            State::Killed => self.killed(world, i),
        }
    }

    /// A thread was killed: so is all of its process, here and now.
    fn killed(&mut self, world: &Rc<World>, i: usize) {
        let client = self.all[i].client;
        for thread in self.all.iter_mut().filter(|t| t.client == client) {
            thread.unwind(world);
            thread.ended = true;
            world.put_out(thread.number);
            world.died(thread.number);
        }
        world.restore();
        let engine = world.engine.borrow().clone();
        world.peek(|| {
            if let Some(c) = engine.as_ref().and_then(|e| e.shm().client(client)) {
                c.pid().store(DEAD, SeqCst);
            }
        });
        world.count(|c| c.kills += 1);
        world.tell(|| format!("client {client} is dead"));
    }

    /// The daemon ends, in the middle of whatever it does, and another one takes over.
    pub fn hand_over(&mut self, scene: &Scene, idle: &Rc<Cell<bool>>) -> Result<(), String> {
        let world = &scene.world;
        while let Some(i) = self.all.iter().position(|t| t.daemon && !t.ended) {
            world.wake(self.all[i].number);
            world.fuses.borrow_mut()[self.all[i].number] = Some(0);
            self.resume(world, i);
            self.all[i].ended = true;
        }
        self.finish_leader(world);
        if world.is_over() {
            // A leader that broke a promise was not finished: whoever starts would wait for it for ever.
            return Ok(());
        }
        self.all.retain(|t| !t.ended);
        for _ in 0..world.rng.range(1, 3) {
            let engine = start(scene, self.room)?;
            world.count(|c| c.takeovers += 1);
            world.tell(|| "a daemon takes over".into());
            if !self.has_daemon() {
                self.daemon(world, &engine, idle);
            }
        }
        Ok(())
    }

    /// Lets whoever writes the journal finish: a daemon that starts waits for that, and here nobody else would run.
    fn finish_leader(&mut self, world: &Rc<World>) {
        while let Some(leader) = world.leader().filter(|_| !world.is_over()) {
            let Some(i) = self.all.iter().position(|t| t.number == leader && !t.ended) else { return };
            world.wake(leader);
            self.resume(world, i);
        }
    }

    /// Everybody is gone without a trace: the power is off.
    pub fn abandon(&mut self, world: &Rc<World>) {
        self.all.drain(..).for_each(|mut thread| thread.unwind(world));
        world.at_death.take();
        world.restore();
        (0..THREADS).for_each(|thread| world.put_out(thread));
    }
}
