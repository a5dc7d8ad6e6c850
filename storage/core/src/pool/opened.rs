//! An open pool.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Acquire;

use seawall_media::{LINE, Medium};
use seawall_wire::desk::Desk;

use super::block::kinds::Image;
use super::block::mirror::Mirrored;
use super::machine::{boot, host};
use crate::format::{Cell, Layout, Superblock};
use crate::spill::Area;
use crate::store::Store;

/// Both copies of the superblock: where they are, and their bytes.
const SUPERBLOCKS: (usize, usize) = (Layout::superblock(0), Layout::retired() - Layout::superblock(0));

/// An open pool.
pub struct Pool {
    /// The whole pool, mapped.
    pub region: Store,
    /// Its descriptor, or its image's; the first holds the lock.
    pub file: File,
    /// The image in front of a journal.
    pub image: Option<Image>,
    /// The journal, which then holds the lock.
    pub lock: Option<File>,
    /// The copies of a log on two devices.
    pub mirror: Option<Mirrored>,
    /// The spill area, if it has one.
    pub area: Option<Area>,
    /// Where it was opened.
    pub path: PathBuf,
    /// The superblock at opening.
    pub superblock: Superblock,
    /// The probed medium.
    pub medium: Medium,
    /// Why we believe that.
    pub because: String,
}

impl Pool {
    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        self.superblock.layout()
    }

    /// Segments that have their memory: the first ones. In a young image, not all of them.
    pub fn backed(&self) -> u32 {
        let (layout, desk_at) = (self.layout(), self.superblock.size as usize);
        let desk_end = desk_at.checked_add(Desk::bytes_for(layout.segments));
        let has_desk = desk_at.is_multiple_of(LINE) && desk_end.is_some_and(|end| end <= self.region.len());
        if self.medium != Medium::Block || !has_desk {
            return layout.segments;
        }
        layout.segments.saturating_sub(Desk::new(&self.region, desk_at).unbacked().load(Acquire))
    }

    /// The pool's UUID.
    pub fn uuid(&self) -> u128 {
        u128::from_le_bytes(self.superblock.uuid)
    }

    /// Copies bytes of the log out: of the pool, or, behind its end, of the spill area's slots.
    ///
    /// # Errors
    /// The error of the area's device.
    pub(crate) fn read_log(&self, at: usize, into: &mut [u8]) -> io::Result<()> {
        let Some(behind) = at.checked_sub(self.region.len()) else {
            self.region.read(at, into);
            return Ok(());
        };
        let area = self.area.as_ref().ok_or_else(|| io::Error::other("the pool has no spill area"))?;
        area.read(behind as u64, into)
    }

    /// The cell of the retired LSN.
    pub fn retired(&self) -> Cell {
        Cell::at(Layout::retired())
    }

    /// True if the last daemon ran in this boot: then the page cache is intact.
    pub fn is_same_boot(&self) -> bool {
        self.superblock.boot == boot()
    }

    /// Records that the log is used in this boot, before the first record of the boot; for a log that other hosts keep,
    /// also the turn.
    ///
    /// # Errors
    /// The medium's error.
    pub fn mark_boot(&mut self) -> io::Result<()> {
        self.superblock.boot = boot();
        if let Some(journal) = self.region.journal().filter(|_| self.medium == Medium::Replicated) {
            self.superblock.complete_since = journal.desk(&self.region).turn().0.counter as u32;
        }
        self.write_superblock()
    }

    /// Nothing is live in the log, and from this turn on it holds everything that its files lack.
    ///
    /// # Errors
    /// The medium's error.
    pub fn is_complete_since(&self, turn: u64) -> io::Result<()> {
        let mut superblock = Superblock::read(&self.region).map_err(|_| io::ErrorKind::InvalidData)?;
        superblock.complete_since = turn as u32;
        self.region.change(&[SUPERBLOCKS], |region| superblock.write(region)).map_err(Into::into)
    }

    /// Records this host as the log's host.
    pub(super) fn move_here(&mut self) -> io::Result<()> {
        self.superblock.host = host();
        self.write_superblock()
    }

    /// Returns when the log has taken one more batch: until then nobody else has taken the log over.
    ///
    /// # Errors
    /// The medium's error: the log belongs to another host by now, for example.
    pub fn confirm(&self) -> io::Result<()> {
        self.region.change(&[(Layout::retired(), LINE)], |_| ()).map_err(Into::into)
    }

    fn write_superblock(&mut self) -> io::Result<()> {
        let Self { superblock, region, .. } = self;
        region.change(&[SUPERBLOCKS], |region| superblock.write(region)).map_err(Into::into)
    }
}
