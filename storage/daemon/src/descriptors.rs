//! The table of managed files as the engine's background work wants it: for destaging, and for finishing dead writes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use seawall_cache::shared::OperationOwner;
use seawall_core::destage::Files;
use seawall_core::file::captured::Captured;
use seawall_core::reap::Writable;

use crate::ages::Ages;
use crate::cache::{Announced, Zone};
use crate::parts::files::{FileTable, Managed, real_sync, reopen, sync_directory};
use crate::write_out::write_out;

/// The table as the engine's background work wants it. Keeps the last descriptor it handed out alive.
pub(crate) struct Descriptors<'a> {
    table: &'a FileTable,
    last: Option<Arc<Managed>>,
    ages: Option<&'a mut Ages>,
    /// None is left out for its age.
    all: bool,
    /// What is written through them is announced in the block cache, as long as they live.
    cache: Option<(&'a Zone, OperationOwner)>,
    announced: Vec<Announced<'a>>,
}

impl<'a> Descriptors<'a> {
    pub fn new(table: &'a FileTable) -> Self {
        Self { table, last: None, ages: None, all: true, cache: None, announced: Vec::new() }
    }

    /// Announces in the block cache what is written.
    pub fn announced(self, cache: Option<(&'a Zone, OperationOwner)>) -> Self {
        Self { cache, ..self }
    }

    /// Lets a destage round leave out the files that are not old enough.
    pub fn when_old(self, ages: &'a mut Ages) -> Self {
        Self { ages: Some(ages), all: false, ..self }
    }

    /// Notes that a destage round takes all because the log needs the room.
    pub fn when_pressed(self, ages: &'a mut Ages) -> Self {
        Self { ages: Some(ages), ..self }
    }
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the daemon has no descriptor for it")
}

impl Files for Descriptors<'_> {
    fn descriptor(&mut self, slot: u32) -> io::Result<BorrowedFd<'_>> {
        self.last = self.table.get(slot);
        self.last.as_ref().map(|managed| managed.destaged.as_fd()).ok_or_else(unknown)
    }

    fn write_out(&mut self, slot: u32, bytes: Range<u64>, piece: u64) -> io::Result<()> {
        write_out(self.descriptor(slot)?, bytes, piece)
    }

    fn sync_directory(&mut self, slot: u32, files: &[Captured]) -> io::Result<()> {
        self.last = self.table.get(slot);
        sync_directory(self.last.as_ref().ok_or_else(unknown)?, files)
    }

    fn is_calm(&mut self, slot: u32) -> bool {
        self.ages.as_ref().is_none_or(|ages| ages.is_calm(slot, Instant::now()))
    }

    fn is_due(&mut self, slot: u32, watermark: u64) -> bool {
        let Some(ages) = &mut self.ages else { return true };
        let is_directory = self.table.get(slot).is_some_and(|managed| managed.is_directory);
        if self.all {
            ages.press(slot, Instant::now());
        }
        self.all || ages.is_due(slot, is_directory, watermark, Instant::now())
    }
}

impl Writable for Descriptors<'_> {
    fn writable(&mut self, slot: u32) -> io::Result<File> {
        let managed = self.table.get(slot).ok_or_else(unknown)?;
        if let Some((zone, me)) = self.cache {
            self.announced.push(Announced::new(zone, me, managed.dev, managed.ino));
        }
        reopen(&managed.file, true)
    }

    fn sync_directory(&mut self, slot: u32) -> io::Result<()> {
        Ok(real_sync(self.table.get(slot).ok_or_else(unknown)?.as_ref())?)
    }
}
