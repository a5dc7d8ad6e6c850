//! What the daemon does for directories whose names are in the log; see `seawall-daemon`, `directories`, `unborn` and `forget`.

use seawall_core::file::{Begins, Flag, KeptOut, Newcomer, Slot};
use seawall_core::naming::{self, Directory, Entry, Kind, New};
use seawall_core::{FileRef, Place, Registered, Turn, table};
use seawall_stats::Class;

use crate::Planted;
use crate::daemon::Daemon;
use crate::folder::Folder;
use crate::held::Opened;
use crate::names::{self, folder_identity, folder_inode, folder_with};

impl Daemon {
    /// Goes on with the directories that an earlier daemon registered. What is gone and has nothing live is forgotten.
    pub fn find_folders(&self) {
        let Some(shelf) = &self.world.shelf else { return };
        // Whoever asked an earlier daemon hears nothing.
        shelf.asked.borrow_mut().clear();
        shelf.slots.borrow_mut().clear();
        for entry in table::files(&self.world.pool.borrow()).unwrap_or_default() {
            let reference = FileRef { slot: entry.slot, generation: entry.generation };
            let found = folder_with(&shelf.tree.borrow(), &entry.identity);
            match found {
                Some(folder) => self.knows(folder, reference),
                None if self.engine.slot(entry.slot).is_some_and(Slot::is_dirty) => {}
                None => self.engine.forget(self.who(), entry.slot),
            }
        }
    }

    fn knows(&self, folder: usize, reference: FileRef) {
        self.world.shelf().slots.borrow_mut().insert(folder, reference);
        self.held.borrow_mut().extend(Opened::of(&self.world, folder).map(|opened| (folder, opened)));
    }

    fn strike_out(&self, folder: usize) {
        self.world.shelf().slots.borrow_mut().remove(&folder);
        self.held.borrow_mut().remove(&folder);
    }

    fn slot_of(&self, folder: usize) -> Option<FileRef> {
        self.world.shelf().slots.borrow().get(&folder).copied()
    }

    fn known(&self) -> Vec<(usize, FileRef)> {
        self.world.shelf().slots.borrow().iter().map(|(folder, name)| (*folder, *name)).collect()
    }

    /// Registers the directories from the beginning that have no slot.
    pub fn register_folders(&self) {
        let Some(shelf) = &self.world.shelf else { return };
        let tops = shelf.tree.borrow().tops();
        tops.for_each(|folder| self.register_folder(folder));
    }

    /// Answers whoever asks for a directory.
    pub fn answer(&self) {
        let Some(shelf) = &self.world.shelf else { return };
        loop {
            let Some(asked) = shelf.asked.borrow_mut().pop_front() else { return };
            if asked.is_new {
                self.register_new(asked.folder);
            } else {
                self.register_folder(asked.folder);
            }
            asked.is_answered.set(true);
        }
    }

    fn register_folder(&self, folder: usize) {
        let is_there = self.world.shelf().tree.borrow().is_there(folder);
        if self.slot_of(folder).is_some() || !is_there {
            return;
        }
        let Some(registered) = self.registered(folder, Begins::Outside) else { return };
        let admitted = registered.admit(self.who(), || Ok(()));
        self.admitted(folder, admitted);
    }

    fn registered(&self, folder: usize, begins: Begins) -> Option<Registered<'_>> {
        let (identity, inode) = {
            let tree = self.world.shelf().tree.borrow();
            (folder_identity(&tree, folder), folder_inode(&tree, folder))
        };
        let registered = self.engine.register(&Newcomer {
            root: 0,
            identity: &identity,
            hint: &names::folder_hint(folder),
            inode,
            class: Class::Other,
            begins,
            is_named_by_directory: true,
            is_directory: true,
        });
        let registered = registered.ok()?;
        self.knows(folder, registered.file());
        Some(registered)
    }

    fn admitted(&self, folder: usize, admitted: Option<FileRef>) {
        self.world.tell(|| format!("directory {folder} registered: {admitted:?}"));
        if admitted.is_none() {
            self.strike_out(folder);
        }
    }

    /// A directory that was made lately enters the log before the disk has it, and so do those above it. False: it does not.
    fn register_new(&self, folder: usize) -> bool {
        if self.slot_of(folder).is_some() {
            return true;
        }
        let Some((above, name)) = self.world.shelf().tree.borrow().place_of(folder) else { return false };
        if self.slot_of(above).is_none() && !self.register_new(above) {
            return false;
        }
        let Some(here) = self.here(above) else { return false };
        // Nobody is waited for: whoever changes names there may wait for this. And nobody moves it meanwhile.
        let turn = self.engine.try_enter_directory(self.who(), here.reference(), &here);
        let Some(turn) = turn.filter(Turn::is_in_log) else { return false };
        let inode = folder_inode(&self.world.shelf().tree.borrow(), folder);
        self.world.step();
        let known = self.world.known(above, &name).filter(|known| known.inode == inode);
        let entered = known.and_then(|known| {
            let new = New { file: known.handle?, attributes: known.attributes, inode };
            turn.takes_in(&new, &|| self.entries(folder), |record| self.enter_new(folder, record))
        });
        turn.finish();
        entered == Some(true)
    }

    fn enter_new<'d>(&'d self, folder: usize, record: &dyn Fn(&Turn<'_, Folder<'d>>) -> bool) -> bool {
        let Some(registered) = self.registered(folder, Begins::Unborn) else { return false };
        let place = Folder::new(&self.world, &self.engine, self.who(), folder, registered.file()).unread();
        self.world.shelf().ledger.borrow_mut().enters(folder, true);
        let all = |turn: &Turn<'_, Folder<'d>>| self.world.has(Planted::NewWithoutNames) || record(turn);
        let admitted = registered.admit_with_names(self.who(), &place, all);
        self.world.shelf().ledger.borrow_mut().enters(folder, false);
        self.admitted(folder, admitted);
        self.world.count(|c| c.unborn += u64::from(admitted.is_some()));
        admitted.is_some()
    }

    /// Everything in it. `None`: something has gone meanwhile, or has a second name.
    fn entries(&self, folder: usize) -> Option<Vec<Entry>> {
        let names: Vec<_> = self.world.shelf().tree.borrow().names(folder).keys().cloned().collect();
        let entry = |name: Vec<u8>| {
            self.world.step();
            let known = self.world.known(folder, &name)?;
            let is_directory = known.kind == Kind::Directory;
            let attributes = if is_directory { known.attributes.as_directory() } else { known.attributes };
            let tree = self.world.shelf().tree.borrow();
            let target = tree.inode(tree.find(folder, &name)?)?.target.clone();
            let is_single = known.kind != Kind::File || known.links == 1;
            is_single.then_some(Entry { file: known.handle?, name, attributes, target })
        };
        names.into_iter().map(entry).collect()
    }

    fn here(&self, folder: usize) -> Option<Folder<'_>> {
        Some(Folder::find(&self.world, &self.engine, self.who(), folder)?.unread())
    }

    /// Takes those out of the log in which something happened unseen.
    pub fn review(&self) {
        for (folder, _) in self.known() {
            let Some(here) = self.here(folder) else { continue };
            let slot = self.engine.file(here.reference());
            if slot.is_some_and(|slot| slot.is_dirty() && slot.state().has(Flag::TRACKED)) {
                naming::enter(&here).finish();
            }
        }
    }

    /// Takes a directory out of the log, as for a file whose directory its process does not know; or gives up its entry.
    pub fn leave_folder(&self) {
        let known = self.known();
        if known.is_empty() || !self.world.rng.one_in(16) {
            return;
        }
        let (folder, name) = known[self.world.rng.below(known.len() as u64) as usize];
        if self.world.rng.one_in(2) {
            self.here(folder).iter().for_each(naming::leaving);
        } else if self.engine.evict(self.who(), name, || {
            Folder::new(&self.world, &self.engine, self.who(), folder, name).sync(true)
        }) {
            self.world.tell(|| format!("directory {folder} evicted from slot {}", name.slot));
            self.strike_out(folder);
            self.world.count(|c| c.evicted += 1);
        }
    }

    /// Forgets the directories that were removed.
    pub fn forget_folders(&self) {
        let is_there = |folder: usize| self.world.shelf().tree.borrow().is_there(folder);
        for (folder, name) in self.known() {
            let has = |flag: Flag| self.engine.state(name).has(flag);
            if is_there(folder) || has(Flag::UNLINKED | Flag::FAILED) {
                continue;
            }
            let place = Folder::new(&self.world, &self.engine, self.who(), folder, name);
            let out = self.engine.take_out(self.who(), name, || place.sync(true));
            match has(Flag::FAILED) {
                false => out.unlinked(),
                true => out.finish(|| place.sync(true)),
            }
        }
        for (folder, name) in self.known() {
            if !self.engine.state(name).has(Flag::UNLINKED) {
                continue;
            }
            if is_there(folder) {
                self.engine.let_back(name, KeptOut::Unlinked);
            } else {
                self.engine.forget(self.who(), name.slot);
                self.strike_out(folder);
                self.world.tell(|| format!("directory {folder} forgotten"));
            }
        }
    }
}
