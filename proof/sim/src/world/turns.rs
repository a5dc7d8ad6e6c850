//! Whose turn it is: at every step a thread may lose the processor, stop for long, or die, and at every point the
//! power may be cut in a copy.

use super::World;
use crate::{explore, fiber};

impl World {
    /// True for a daemon's thread.
    pub fn is_daemon(&self, thread: usize) -> bool {
        self.daemons.borrow()[thread]
    }

    /// A thread of a new process opens everything anew.
    pub fn born(&self, thread: usize, daemon: bool) {
        self.daemons.borrow_mut()[thread] = daemon;
        self.wake(thread);
        for file in self.files.borrow_mut().iter_mut() {
            file.told.insert(thread, file.errors);
        }
    }

    /// A moment at which persistent state has changed.
    pub fn point(&self) {
        if self.quiet.get() || self.is_over() {
            return;
        }
        for index in 0..self.file_count() {
            self.look(index);
        }
        if self.rng.one_in(self.sparse.get()) {
            self.peek(|| explore::crash(self));
        }
        self.step();
    }

    /// A moment at which the thread may lose the processor, or its life.
    pub fn step(&self) {
        if self.quiet.get() || !fiber::inside() {
            return;
        }
        self.burn();
        if self.stalls_now() || self.rng.one_in(self.haste.get()) {
            self.give_way();
        }
    }

    /// This thread may stop at one of its next so many steps, long enough for others to do a lot: what
    /// two steps next to each other rely on shows only if somebody comes between them.
    pub fn may_stall(&self, steps: u64) {
        let when = self.rng.one_in(4).then(|| self.rng.below(steps) as u32);
        self.stalls.borrow_mut()[self.thread.get()] = when;
    }

    fn stalls_now(&self) -> bool {
        let thread = self.thread.get();
        let left = &mut self.stalls.borrow_mut()[thread];
        let now = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        if now {
            self.asleep.borrow_mut()[thread] = self.rng.below(60) as u32;
        }
        now
    }

    /// True if a thread is to be passed over this time.
    pub fn is_asleep(&self, thread: usize) -> bool {
        let left = &mut self.asleep.borrow_mut()[thread];
        *left = left.saturating_sub(1);
        *left > 0
    }

    /// A thread goes on at its next turn.
    pub fn wake(&self, thread: usize) {
        self.stalls.borrow_mut()[thread] = None;
        self.asleep.borrow_mut()[thread] = 0;
    }

    /// Lets others run.
    pub fn give_way(&self) {
        if self.quiet.get() || !fiber::inside() {
            return;
        }
        fiber::yield_now();
        self.burn();
    }

    /// This thread's process will be killed: within so many steps, or with stores under way to one of its next
    /// fences.
    pub fn light(&self, thread: usize, steps: u64, fences: u64) {
        self.put_out(thread);
        if self.rng.one_in(2) {
            self.fuses.borrow_mut()[thread] = Some(self.rng.below(steps) as u32);
        } else {
            self.light_fence(thread, fences);
        }
    }

    /// Its process will be killed with stores under way to one of its next so many fences.
    pub fn light_fence(&self, thread: usize, fences: u64) {
        self.put_out(thread);
        self.fences_left.borrow_mut()[thread] = Some(self.rng.below(fences) as u32);
    }

    /// It will not be killed.
    pub fn put_out(&self, thread: usize) {
        self.fuses.borrow_mut()[thread] = None;
        self.fences_left.borrow_mut()[thread] = None;
    }

    /// A fence is about to be passed.
    pub(super) fn burn_fence(&self) {
        if !fiber::inside() {
            return;
        }
        let left = &mut self.fences_left.borrow_mut()[self.thread.get()];
        match left {
            Some(0) => self.doom(),
            Some(left) => *left -= 1,
            None => {}
        }
    }

    /// One step closer to the end of this thread, if its process is to be killed.
    fn burn(&self) {
        let thread = self.thread.get();
        let mut fuses = self.fuses.borrow_mut();
        match &mut fuses[thread] {
            None => return,
            Some(0) => {}
            Some(left) => {
                *left -= 1;
                return;
            }
        }
        drop(fuses);
        self.quiet.set(true);
        self.tell(|| "killed".into());
        let memory = self.run_time_memory();
        self.at_death.borrow_mut().get_or_insert(memory);
        fiber::kill();
    }

    /// True if this thread's process is to be killed soon, and may be at its next step: for tearing a publish in the middle.
    pub fn is_doomed(&self) -> bool {
        let left = self.fuses.borrow()[self.thread.get()].filter(|_| fiber::inside());
        left.is_some_and(|left| left < 40 || left < 600 && self.rng.one_in(4))
    }

    /// Sets this thread's death to the next step.
    pub fn doom(&self) {
        self.fuses.borrow_mut()[self.thread.get()] = Some(0);
    }

    /// What clients and daemon share, up to the statistics.
    fn run_time_memory(&self) -> Vec<u8> {
        let region = self.shared.borrow();
        let mut bytes = Vec::new();
        if let Some(block) = self.block.as_ref().filter(|_| self.at_death.borrow().is_none()) {
            block.remember(&self.view.borrow());
        }
        if let Some(region) = region.as_ref() {
            bytes.resize(region.len().min(512 << 10), 0);
            region.read(0, &mut bytes);
        }
        bytes
    }

    /// After a kill was unwound: what the unwinding tidied up is untidy again. Hooks work again.
    pub fn restore(&self) {
        self.quiet.set(true);
        if let Some(memory) = self.at_death.borrow_mut().take() {
            if let Some(region) = self.shared.borrow().as_ref() {
                region.store(0, &memory);
            }
            if let Some(block) = &self.block {
                block.restore(&self.view.borrow());
            }
        }
        self.quiet.set(false);
    }

    /// Lets a thread be unwound without a trace in what others see.
    pub fn unwinding<R>(&self, f: impl FnOnce() -> R) -> R {
        self.quiet.set(false);
        let result = f();
        self.quiet.set(true);
        result
    }

    /// A logical thread is gone.
    pub fn died(&self, thread: usize) {
        self.pending.borrow_mut().died(thread);
        self.shelf.iter().for_each(|shelf| shelf.ledger.borrow_mut().died(thread));
        {
            let ids = &mut *self.ids.borrow_mut();
            ids[thread] = ids.iter().max().map_or(1, |newest| newest + 1);
        }
        for file in self.files.borrow_mut().iter_mut() {
            file.wounded |= file.model.died(thread);
            if file.told_last == Some(thread) && !self.is_failed(file.name) {
                file.model.unpromised = Some("a process died with the news of a failed write-back");
            }
        }
    }

    /// The thread that leads the journal, if one does and lives.
    pub fn leader(&self) -> Option<usize> {
        let block = self.block.as_ref()?;
        let holder = self.peek(|| block.holder(&self.view.borrow()));
        self.ids.borrow().iter().position(|id| *id == holder)
    }

    /// How many wait for what is being written to the journal.
    pub fn company(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| self.peek(|| block.company(&self.view.borrow())))
    }
}
