//! The persisted content of the pool, and a second copy of it to crash and recover in.
//!
//! The copy equals the persisted content between explorations; what an exploration stores into it is noted
//! and put back, so that a point costs what it changes and not the size of the pool.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use seawall_core::format::{Superblock, SuperblockError};
use seawall_core::pool::Pool;
use seawall_core::spill::Area;
use seawall_media::{Medium, Region};

use crate::pending::{LINE, Units};

/// Persisted bytes and the pool to explore in.
pub struct Image {
    persisted: RefCell<Vec<u8>>,
    /// The copy, as recovery sees it.
    pub pool: RefCell<Pool>,
    base: usize,
    noted: RefCell<BTreeSet<u32>>,
    noting: Cell<bool>,
}

fn bytes_of(units: &Units) -> [u8; LINE] {
    let mut bytes = [0; LINE];
    for (unit, value) in bytes.chunks_exact_mut(8).zip(units) {
        unit.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// A line of bytes as units.
pub fn units_of(bytes: &[u8]) -> Units {
    let mut units = [0; 8];
    for (unit, word) in units.iter_mut().zip(bytes.chunks_exact(8)) {
        *unit = u64::from_le_bytes(word.try_into().unwrap_or_default());
    }
    units
}

/// A line of a region as it is visible.
pub fn visible(region: &Region, line: u32) -> Units {
    let mut bytes = [0; LINE];
    region.read(line as usize * LINE, &mut bytes);
    units_of(&bytes)
}

/// A file that is nowhere but in memory, with this content.
pub fn memory_file(name: &str, content: &[u8]) -> File {
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(fd.expect("a memory file"));
    file.write_all_at(content, 0).expect("room");
    file
}

impl Image {
    /// An image of a pool of which everything is persisted.
    pub fn of(pool: &Pool) -> Self {
        let len = pool.superblock.size as usize;
        let mut persisted = vec![0; len];
        pool.region.read(0, &mut persisted);
        let file = memory_file("seawall-sim-image", &persisted);
        let region = Region::map(file.as_fd(), len as u64, false).expect("a mapping");
        let base = region.base();
        let copy = Pool {
            region: region.into(),
            file,
            image: None,
            lock: None,
            mirror: None,
            area: pool.area.as_ref().map(Area::again),
            path: pool.path.clone(),
            superblock: pool.superblock,
            medium: Medium::Emulated,
            because: String::new(),
        };
        Self {
            persisted: RefCell::new(persisted),
            pool: RefCell::new(copy),
            base,
            noted: RefCell::default(),
            noting: Cell::new(false),
        }
    }

    /// The persisted content of a line.
    pub fn line(&self, line: u32) -> Units {
        let at = line as usize * LINE;
        units_of(&self.persisted.borrow()[at..at + LINE])
    }

    /// A unit is persisted.
    pub fn persist(&self, line: u32, unit: usize, value: u64) {
        let at = line as usize * LINE + unit * 8;
        self.persisted.borrow_mut()[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self.pool.borrow().region.store(at, &value.to_le_bytes());
    }

    /// True for the mapping that explorations recover in.
    pub fn is_at(&self, base: usize) -> bool {
        base == self.base
    }

    /// Takes note of a store into the copy. False: the store was elsewhere.
    pub fn note(&self, base: usize, at: usize, len: usize) -> bool {
        if base == self.base && self.noting.get() {
            let lines = (at / LINE) as u32..(at + len).div_ceil(LINE) as u32;
            self.noted.borrow_mut().extend(lines);
        }
        base == self.base
    }

    /// Lets `f` do what it likes with a copy in which these lines differ, then puts the copy right.
    pub fn with<R>(&self, lines: &[(u32, Units)], f: impl FnOnce(Result<&Pool, SuperblockError>) -> R) -> R {
        self.noting.set(true);
        for (line, units) in lines {
            self.pool.borrow().region.store(*line as usize * LINE, &bytes_of(units));
        }
        let read = Superblock::read(&self.pool.borrow().region);
        let result = match read {
            Ok(superblock) => {
                self.pool.borrow_mut().superblock = superblock;
                f(Ok(&self.pool.borrow()))
            }
            Err(e) => f(Err(e)),
        };
        self.noting.set(false);
        let noted = std::mem::take(&mut *self.noted.borrow_mut());
        for line in noted {
            let at = line as usize * LINE;
            self.pool.borrow().region.store(at, &self.persisted.borrow()[at..at + LINE]);
        }
        result
    }

    /// A power cut: these lines become the persisted ones, and the pool itself falls back to them.
    pub fn cut(&self, lines: &[(u32, Units)], unsure: impl Iterator<Item = u32>, pool: &Region) {
        self.settle(lines);
        for line in unsure {
            let at = line as usize * LINE;
            pool.store(at, &self.persisted.borrow()[at..at + LINE]);
        }
    }

    /// These lines are persisted, whatever they were.
    pub fn settle(&self, lines: &[(u32, Units)]) {
        for (line, units) in lines {
            for (unit, value) in units.iter().enumerate() {
                self.persist(*line, unit, *value);
            }
        }
    }

    /// The first line before `end` in which a region differs from the persisted content.
    pub fn differs(&self, region: &Region, end: usize) -> Option<usize> {
        let persisted = self.persisted.borrow();
        let mut bytes = vec![0; end];
        region.read(0, &mut bytes);
        bytes.chunks_exact(LINE).zip(persisted.chunks_exact(LINE)).position(|(a, b)| a != b)
    }
}
