//! Something happens at each step of an operation on a journal. A step is an access to a shared word, or a device write.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use seawall_media::{Region, sim};
use seawall_wire::desk::Desk;

use super::World;

/// The words that the death of a leader must not tidy up.
const WORDS: usize = 4096;

struct Died;

pub type Action = Box<dyn FnOnce()>;

/// Counts steps, and acts at one of them.
pub struct Steps {
    journal: File,
    passed: Cell<u64>,
    at: Cell<Option<u64>>,
    action: RefCell<Option<Action>>,
    /// The process that runs; all before it are dead.
    process: Cell<u32>,
    /// The one before it lives, and is stopped.
    is_stopped: Cell<bool>,
}

impl Steps {
    pub fn install(world: &World) -> Rc<Self> {
        let journal = File::options().write(true).open(&world.pool.path).expect("the journal");
        let steps = Rc::new(Self {
            journal,
            passed: Cell::new(0),
            at: Cell::new(None),
            action: RefCell::default(),
            process: Cell::new(1),
            is_stopped: Cell::new(false),
        });
        sim::install(Some(Rc::clone(&steps) as Rc<dyn sim::Observer>));
        steps
    }

    /// Runs `body` with an action at this step. Returns how many steps there were, and whether it was run.
    pub fn during(&self, at: u64, action: Action, body: impl FnOnce()) -> (u64, bool) {
        self.passed.set(0);
        self.at.set(Some(at));
        *self.action.borrow_mut() = Some(action);
        body();
        self.at.set(None);
        (self.passed.get(), self.action.take().is_none())
    }

    /// A process dies at this step of `body`, if `when` says so of its journal's desk then, and another one comes. Returns
    /// whether it died, and whether there was such a step.
    pub fn die(
        &self,
        world: &World,
        at: u64,
        when: impl Fn(Desk<'_>) -> bool + 'static,
        body: impl FnOnce(),
    ) -> (bool, bool) {
        let view = Region::map(&world.pool.file, world.pool.region.len() as u64, false).expect("a mapping");
        let desk_at = world.pool.region.journal().expect("a journal").desk_at();
        let left = Rc::new(RefCell::new(None));
        let seen = Rc::clone(&left);
        let die = move || {
            if !when(Desk::new(&view, desk_at)) {
                return;
            }
            let mut words = vec![0; WORDS];
            view.read(desk_at, &mut words);
            *seen.borrow_mut() = Some((view, words));
            resume_unwind(Box::new(Died))
        };
        let ended = catch_unwind(AssertUnwindSafe(|| self.during(at, Box::new(die), body)));
        self.at.set(None);
        self.process.set(self.process.get() + 1);
        match (ended, left.take()) {
            // Unwinding tidies up, a kill does not.
            (Err(why), Some((view, words))) if why.is::<Died>() => {
                view.copy_in(desk_at, &words);
                (true, true)
            }
            (Err(why), _) => resume_unwind(why),
            (Ok((_, acted)), _) => (false, acted),
        }
    }

    /// Another process acts while this one is stopped, and this one goes on.
    pub fn meanwhile(&self, act: impl FnOnce()) {
        self.process.set(self.process.get() + 1);
        self.is_stopped.set(true);
        act();
        self.is_stopped.set(false);
        self.process.set(self.process.get() - 1);
    }

    fn step(&self) {
        let Some(at) = self.at.get() else { return };
        self.passed.set(self.passed.get() + 1);
        if self.passed.get() == at {
            // What it does are no steps.
            self.at.set(None);
            if let Some(action) = self.action.take() {
                action();
            }
            self.at.set(Some(u64::MAX));
        }
    }
}

impl sim::Observer for Steps {
    fn touched(&self, _base: usize) {
        self.step();
    }
    fn writes_block(&self, _fd: i32, position: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        self.step();
        self.journal.write_all_at(bytes, position).expect("room");
        self.step();
        Some(Ok(()))
    }
    fn process(&self) -> Option<u32> {
        Some(self.process.get())
    }
    fn is_dead(&self, process: u32) -> Option<bool> {
        Some(process < self.process.get() && !self.is_stopped.get())
    }
    fn replaces(&self, _process: u32) -> Option<bool> {
        Some(self.is_stopped.get())
    }
}
