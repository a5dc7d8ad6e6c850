//! What a database's thread does: writes of every shape, syncs, holds, and everything that leaves the log.

use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::fs::SeekFrom;
use seawall_core::file::{Flag, Slot};
use seawall_core::{At, Begun, Change as Logged, Engine, Errno, FileRef, Owner, Scope, Syncing, certain};

use crate::metadata::Metadata;
use crate::plan::CROWD;
use crate::world::{SimFile, World};
use crate::{Change, names};

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

/// A file is open for writing; the kernel closes the files of the dead.
pub struct Descriptor<'a> {
    world: &'a World,
    index: usize,
}

impl<'a> Descriptor<'a> {
    /// Opens it.
    pub fn open(world: &'a World, index: usize) -> Self {
        world.files.borrow_mut()[index].open += 1;
        Self { world, index }
    }
}

impl Drop for Descriptor<'_> {
    fn drop(&mut self) {
        self.world.files.borrow_mut()[self.index].open -= 1;
    }
}

/// A change of which the kernel did a part, and whose file has not left the log yet: what the log says of it and what
/// the file holds differ.
struct Partly<'a>(Descriptor<'a>);

impl<'a> Partly<'a> {
    fn begin(world: &'a World, index: usize) -> Self {
        world.files.borrow_mut()[index].partly += 1;
        Self(Descriptor::open(world, index))
    }
}

impl Drop for Partly<'_> {
    fn drop(&mut self) {
        self.0.world.files.borrow_mut()[self.0.index].partly -= 1;
    }
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

    /// About the first half of a change, for a kernel that does no more of it.
    fn half<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        let unit = self.world.unit() as usize;
        &data[..data.len() / 2 / unit * unit]
    }

    fn slices(data: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
        let (head, tail) = data.split_at(data.len() / 3);
        [head, tail].into_iter()
    }

    fn write(&self, open: &Open, len: u64, at: At) {
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
    fn write_at_cursor(&self, open: &Open) {
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

    fn truncate(&self, open: &Open, len: u64) {
        let change = Change::Truncate(len as usize);
        self.change(open, &change, |begun| begun.log_truncate(len), || self.publish(open, &change));
    }

    /// fallocate, which may make the file longer.
    fn allocate(&self, open: &Open, end: u64) {
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
    /// a power cut brings it back: whoever is told EIO knows of neither.
    fn refused(&self, open: &Open, tracked: bool) {
        self.world.tell(|| format!("file {}: refused", open.index));
        self.world.count(|c| c.barred += 1);
        let model = &mut self.world.files.borrow_mut()[open.index].model;
        if tracked { model.perhaps(self.thread) } else { model.end(self.thread) }
    }

    fn begin(&self, open: &Open, change: Change) {
        self.world.tell(|| format!("file {}: {} ...", open.index, change.brief()));
        self.world.files.borrow_mut()[open.index].model.begin(self.thread, change);
    }

    /// Whoever has the file's lock has dealt with what the dead left there. Not so whoever lost it alive and goes on: what
    /// the dead left is still to be made again, or retired.
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

    fn sync(&self, open: &Open, scope: Scope) {
        let (begun, due) = {
            let file = &self.world.files.borrow()[open.index];
            (file.model.now(), (file.renamed.due(), file.touched.due()))
        };
        let mut real = false;
        let sync = |scope| {
            real = true;
            self.real(open, scope)?;
            certain::check(open.cache.as_fd())
        };
        let mut syncing = self.engine.sync(self.who(), open.name, scope);
        if let Syncing::Name(due) = syncing {
            syncing = due.synced(self.name(open));
        }
        let done = syncing.by(sync);
        self.world.count(|c| if real { c.real += 1 } else { c.absorbed += 1 });
        self.world.tell(|| format!("file {}: sync of {scope:?} {done:?}, real {real}", open.index));
        if done.is_ok() {
            let file = &mut self.world.files.borrow_mut()[open.index];
            file.model.acknowledge(begun);
            let covered = file.renamed.covers(due.0) && file.touched.covers(due.1);
            if scope == Scope::Whole && !covered {
                self.world.violate(format!("file {}: an fsync left a name or attributes out", open.index));
            }
        }
    }

    fn real(&self, open: &Open, scope: Scope) -> Result<(), Errno> {
        self.world.real_sync(open.index, scope).map_err(Errno::from_raw_os_error)
    }

    /// The name alone, if this descriptor can.
    fn name(&self, open: &Open) -> Result<bool, Errno> {
        if self.world.rng.one_in(8) {
            return Ok(false);
        }
        self.world.directory_sync(open.index).map_err(Errno::from_raw_os_error)?;
        certain::check(open.cache.as_fd()).map(|()| true)
    }

    fn rename(&self, open: &Open) {
        let make = || self.make(open, "renamed", |file| &mut file.renamed);
        let which = self.engine.renaming(open.name, make);
        self.world.files.borrow_mut()[open.index].renamed.return_from(which);
    }

    fn touch(&self, open: &Open) {
        let make = || self.make(open, "other attributes", |file| &mut file.touched);
        let which = self.engine.touching(open.name, make);
        self.world.files.borrow_mut()[open.index].touched.return_from(which);
    }

    /// The kernel's part of a change of a file's name or attributes.
    fn make(&self, open: &Open, what: &str, of: fn(&mut SimFile) -> &mut Metadata) -> u64 {
        self.world.step();
        let which = of(&mut self.world.files.borrow_mut()[open.index]).make();
        self.world.tell(|| format!("file {}: {what}", open.index));
        self.world.step();
        which
    }

    /// A signal handler writes to the file its own thread is writing.
    fn nested(&self, open: &Open) {
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

    fn publish_unlogged(&self, open: &Open, change: &Change) {
        self.settle(open);
        self.world.change(open.index, change);
        self.world.files.borrow_mut()[open.index].model.publish(self.thread, change.clone(), false);
        self.world.point();
    }

    /// The kernel refuses a write, or does a part of it.
    fn fail(&self, open: &Open) {
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

    /// A writable mapping for a while: stores nobody sees.
    fn hold(&self, open: &Open) {
        self.world.files.borrow_mut()[open.index].holders.insert(self.thread);
        self.engine.hold(self.who(), open.name, || certain::fdatasync(open.cache.as_fd()));
        self.world.files.borrow_mut()[open.index].excused = true;
        for _ in 0..self.world.rng.below(4) {
            let at = self.place() as usize;
            self.world.step();
            self.publish_unlogged(open, &Change::Write(at, bytes(&self.world, 64)));
            if self.world.rng.one_in(2) {
                self.sync(open, Scope::Whole);
            }
        }
        self.engine.release(self.who(), open.name);
        self.world.files.borrow_mut()[open.index].holders.remove(&self.thread);
    }

    /// fallocate, splice and their like.
    fn pass(&self, open: &Open) {
        let at = self.place() as usize;
        let change = Change::Write(at, bytes(&self.world, 800));
        self.begin(open, change.clone());
        let sync = || certain::fdatasync(open.cache.as_fd());
        let out = self.engine.take_out(self.who(), open.name, sync);
        self.world.step();
        self.publish_unlogged(open, &change);
        out.finish(sync);
    }

    fn unlink(&self, open: &Open) {
        let sync = || certain::fdatasync(open.cache.as_fd());
        let out = self.engine.take_out(self.who(), open.name, sync);
        self.world.files.borrow_mut()[open.index].unlinked = true;
        self.world.point();
        out.unlinked();
    }
}
