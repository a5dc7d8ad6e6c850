//! The recovery of a log after a power cut, into simulated files and directories.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use seawall_core::recover::{Locate, RecoverError, Sink, Target, Unwritable, recover_into};
use seawall_core::table::{FileEntry, RootEntry};

use crate::Change;
use crate::explore::REPLAY;
use crate::names::{identified, identified_folder};
use crate::restored::{Restored, Way};
use crate::world::World;

struct Disks<'a>(&'a Rc<World>);

struct OnDisk {
    world: Rc<World>,
    index: usize,
    fails: Cell<bool>,
}

impl<'a> Locate for Disks<'a> {
    type File = OnDisk;
    type Names = Restored<'a>;

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        _power_lost: bool,
    ) -> Result<Target<OnDisk>, Unwritable> {
        let index = identified(root, entry)?;
        let fails = Cell::new(self.0.failures.get() > 0 && self.0.rng.one_in(8));
        let path = PathBuf::from(&entry.path);
        Ok(Target { file: OnDisk { world: Rc::clone(self.0), index, fails }, path })
    }

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<Restored<'a>, Unwritable> {
        let folder = identified_folder(root, entry, &self.0.shelf().tree.borrow())?;
        Ok(Restored::new(self.0, &self.0.shelf().tree, folder, Way::Live))
    }
}

impl Sink for OnDisk {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.world.change(self.index, &Change::Write(offset as usize, Rc::new(bytes.to_vec())));
        self.world.point();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.world.change(self.index, &Change::Truncate(len as usize));
        self.world.point();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        if self.fails.take() {
            self.world.files.borrow_mut()[self.index].disk.fail();
            self.world.count(|c| c.failed += 1);
            return Err(io::Error::other("the disk fails"));
        }
        self.world.files.borrow_mut()[self.index].disk.sync();
        self.world.point();
        Ok(())
    }
}

/// Recovers the log. False: a file could not be synced, and the log must be as it was.
pub fn recover(world: &Rc<World>) -> bool {
    match recover_into(&world.pool.borrow(), REPLAY, &Disks(world)) {
        Ok(_) => {}
        Err(RecoverError::Io { .. }) => return false,
        Err(RecoverError::Unresolved(_)) if world.may_refuse() => {
            world.leave();
            return false;
        }
        Err(e) => {
            world.violate(format!("recovery after a power cut: {e}"));
            return false;
        }
    }
    // A journal forgets the records of a log that was closed; memory need not.
    let pool = world.pool.borrow();
    let end = if world.block.is_some() { pool.layout().segments_at() } else { pool.superblock.size as usize };
    if let Some(line) = world.image.differs(&pool.region, end) {
        world.violate(format!("recovery left line {line} of the pool unfenced"));
    }
    drop(pool);
    for index in 0..world.file_count() {
        world.recovered(index);
    }
    world.recovered_names();
    true
}
