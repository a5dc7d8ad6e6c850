//! Changes of a file's content, logged: from a call's begin to its return, in a signal handler, or refused by the kernel.

use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::fs::SeekFrom;
use seawall_core::file::{Flag, Slot};
use seawall_core::{At, Begun, Change as Logged, Errno};

use super::descriptor::Partly;
use super::{Client, Open, bytes};
use crate::Change;

impl Client {
    /// About the first half of a change, for a kernel that does no more of it.
    fn half<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        let unit = self.world.unit() as usize;
        &data[..data.len() / 2 / unit * unit]
    }

    fn slices(data: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
        let (head, tail) = data.split_at(data.len() / 3);
        [head, tail].into_iter()
    }

    pub(super) fn write(&self, open: &Open, len: u64, at: At) {
        let data = bytes(&self.world, len);
        let change = match at {
            At::Offset(offset) => Change::Write(offset as usize, Rc::clone(&data)),
            At::End => Change::Append(Rc::clone(&data)),
            At::Cursor | At::CursorAtEnd => return,
        };
        self.logged(open, &change, at, &data);
    }

    /// write(2): the position is the kernel's, asked and advanced under the file's lock. Only the model needs
    /// to know it before, so it is set by the thread itself.
    pub(super) fn write_at_cursor(&self, open: &Open) {
        let at = self.place();
        let data = bytes(&self.world, 300);
        let Ok(own) = self.world.reopened(open.index) else { return };
        if rustix::fs::seek(&own, SeekFrom::Start(at)).is_err() {
            return;
        }
        let open = Open { cache: Rc::new(own), ..open.clone() };
        self.logged(&open, &Change::Write(at as usize, Rc::clone(&data)), At::Cursor, &data);
    }

    fn logged(&self, open: &Open, change: &Change, at: At, data: &[u8]) {
        self.change(
            open,
            change,
            |begun| begun.log_write(at, Self::slices(data)),
            || self.publish(open, change),
        );
    }

    pub(super) fn truncate(&self, open: &Open, len: u64) {
        let change = Change::Truncate(len as usize);
        self.change(open, &change, |begun| begun.log_truncate(len), || self.publish(open, &change));
    }

    /// fallocate, which may make the file longer.
    pub(super) fn allocate(&self, open: &Open, end: u64) {
        let change = Change::Grow(end as usize);
        self.change(open, &change, |begun| begun.log_allocate(end), || self.publish(open, &change));
    }

    /// A change, from its call to its return: `log` makes its record, `publish` is the kernel's part of it.
    fn change<'s>(
        &'s self,
        open: &'s Open,
        change: &Change,
        log: impl FnOnce(Begun<'s>) -> Result<Logged<'s>, Errno>,
        publish: impl FnOnce() -> u64,
    ) {
        let mut seq = None;
        self.begin(open, change.clone());
        let begun = self.engine.begin(self.who(), open.name, open.cache.as_fd());
        let tracked = begun.is_tracked();
        let done = log(begun).map(|logged| {
            seq = Some(publish());
            logged.finish(true);
        });
        self.answered(open, change, (done, tracked), seq);
    }

    /// A change is over: all of it happened, or it was refused for a file that failed a sync outside the log, or whose
    /// log did. `tracked`: a record of it was made.
    fn answered(
        &self,
        open: &Open,
        change: &Change,
        (done, tracked): (Result<(), Errno>, bool),
        seq: Option<u64>,
    ) {
        match done {
            Ok(()) => self.returned(open, seq),
            Err(Errno::IO) if seq.is_none() && self.world.is_barred(open.index) => {
                self.refused(open, tracked)
            }
            _ => self.world.violate(format!("{} answered {done:?}", change.brief())),
        }
    }

    /// The kernel never heard of the change. Its record, if there is one, may be on a device that failed to confirm it, and
    /// a power cut brings it back: whoever gets EIO knows of neither.
    fn refused(&self, open: &Open, tracked: bool) {
        self.world.tell(|| format!("file {}: refused", open.index));
        self.world.count(|c| c.barred += 1);
        let model = &mut self.world.files.borrow_mut()[open.index].model;
        if tracked { model.perhaps(self.thread) } else { model.end(self.thread) }
    }

    pub(super) fn begin(&self, open: &Open, change: Change) {
        self.world.tell(|| format!("file {}: {} ...", open.index, change.brief()));
        self.world.files.borrow_mut()[open.index].model.begin(self.thread, change);
    }

    /// Whoever has the file's lock has dealt with what the dead left there. A process that lost it alive and goes on
    /// has not: what the dead left is still to be made again, or retired.
    fn settle(&self, open: &Open) {
        let holder = self.world.peek(|| self.engine.file(open.name).map_or(0, Slot::holder));
        if holder == 0 || holder == self.who().word() {
            self.world.settle(open.index);
        }
    }

    /// The kernel's part of a change. A process that is about to die may do half of it.
    fn publish(&self, open: &Open, change: &Change) -> u64 {
        self.world.step();
        self.settle(open);
        if let Change::Write(at, data) = change
            && self.world.is_doomed()
            && data.len() > 600
        {
            let half = Change::Write(*at, Rc::new(self.half(data).to_vec()));
            self.world.change(open.index, &half);
            if !self.world.is_tracked(open.index) {
                self.world.files.borrow_mut()[open.index].model.push(half, false);
            }
            self.world.count(|c| c.halved += 1);
            self.world.doom();
            self.world.step();
        }
        let logged = self.world.is_tracked(open.index);
        self.world.must_be_logged(open.index, logged);
        self.world.tell(|| format!("file {}: published, tracked {logged}", open.index));
        let actual = change.at(self.world.files.borrow()[open.index].disk.cache().len());
        self.world.change(open.index, change);
        let seq = self.world.files.borrow_mut()[open.index].model.publish(self.thread, actual, logged);
        self.world.point();
        seq
    }

    /// A change returned: if its file is still tracked, it is durable.
    fn returned(&self, open: &Open, seq: Option<u64>) {
        self.world
            .tell(|| format!("file {}: returned, tracked {}", open.index, self.world.is_tracked(open.index)));
        self.count_full(open);
        match seq {
            None => self.world.violate("a change was not published".into()),
            Some(seq) if self.world.is_tracked(open.index) => {
                let mut files = self.world.files.borrow_mut();
                if files[open.index].name == Some(open.name) {
                    files[open.index].model.returned(seq);
                }
            }
            Some(_) => {}
        }
    }

    /// Counts a file that just left because the log was full.
    fn count_full(&self, open: &Open) {
        let is_full = self.world.peek(|| self.engine.state(open.name)).has(Flag::LOG_FULL);
        self.world.files.borrow_mut()[open.index].excused |= is_full;
        let was_full = std::mem::replace(&mut self.world.files.borrow_mut()[open.index].left_full, is_full);
        self.world.count(|c| c.full += u64::from(is_full && !was_full));
    }

    /// A signal handler writes to the file its own thread is writing.
    pub(super) fn nested(&self, open: &Open) {
        let rng = &self.world.rng;
        let (outer, inner) = (bytes(&self.world, 600), bytes(&self.world, 200));
        let at = self.place();
        let change = Change::Write(at as usize, Rc::clone(&outer));
        let unit = self.world.unit();
        let within = Change::Write((at + rng.below(400) / unit * unit) as usize, Rc::clone(&inner));
        let first = rng.one_in(2);
        let handler = || {
            self.begin(open, within.clone());
            let begun = self.engine.begin(self.who(), open.name, open.cache.as_fd());
            if let Ok(logged) = begun.log_write(At::Offset(0), Self::slices(&inner)) {
                self.publish_unlogged(open, &within);
                logged.finish(true);
            }
        };
        let publish = || {
            if first {
                handler();
            }
            let seq = self.publish(open, &change);
            if !first {
                // The write lasts until it returns: if its process dies in the handler, the daemon makes it again.
                // Then it is the later of two that were under way at once, and either order is right.
                self.world.files.borrow_mut()[open.index].model.begin(self.thread, change.clone());
                handler();
                self.world.files.borrow_mut()[open.index].model.end(self.thread);
            }
            seq
        };
        self.change(open, &change, |begun| begun.log_write(At::Offset(at), Self::slices(&outer)), publish);
    }

    pub(super) fn publish_unlogged(&self, open: &Open, change: &Change) {
        self.settle(open);
        self.world.change(open.index, change);
        self.world.files.borrow_mut()[open.index].model.publish(self.thread, change.clone(), false);
        self.world.point();
    }

    /// The kernel refuses a write, or does a part of it.
    pub(super) fn fail(&self, open: &Open) {
        let data = bytes(&self.world, 900);
        let at = self.place() as usize;
        let short = self.world.rng.one_in(2);
        let change = Change::Write(at, Rc::clone(&data));
        self.begin(open, change.clone());
        let mut partly = None;
        let begun = self.engine.begin(self.who(), open.name, open.cache.as_fd());
        let tracked = begun.is_tracked();
        let done = begun.log_write(At::Offset(at as u64), Self::slices(&data)).map(|logged| {
            self.world.step();
            self.settle(open);
            partly = Some(Partly::begin(&self.world, open.index));
            let done = if short { self.half(&data).len() } else { 0 };
            let part = Change::Write(at, Rc::new(data[..done].to_vec()));
            self.world.change(open.index, &part);
            {
                let file = &mut self.world.files.borrow_mut()[open.index];
                file.model.publish_partly(self.thread, change.clone(), file.disk.cache());
            }
            self.world.point();
            logged.finish(false);
        });
        if partly.is_none() {
            return self.answered(open, &change, (done, tracked), None);
        }
        drop(partly);
        self.world.look(open.index);
        let file = &mut self.world.files.borrow_mut()[open.index];
        // Others may have been inside since, and died there or be there still: what they had begun is open.
        file.model.found(file.disk.cache(), !file.wounded && file.partly == 0 && file.errors == 0, true);
    }
}
