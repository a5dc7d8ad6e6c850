//! The zone's memory, and what of it a power cut leaves: what was flushed and fenced, and any of the rest, in units
//! of eight bytes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use seawall_media::Region;
use seawall_sim::Rng;

const LINE: usize = 64;

/// A line as it was when its write-back was started.
struct Flushed {
    at: usize,
    line: [u8; LINE],
    number: u64,
}

pub struct Memory {
    file: File,
    len: usize,
    /// What survives for sure, if anything does.
    persisted: Option<RefCell<Vec<u8>>>,
    /// By thread: lines whose write-back was started.
    flushing: RefCell<BTreeMap<usize, Vec<Flushed>>>,
    /// Counts them; and by line the newest that is persisted.
    count: Cell<u64>,
    newest: RefCell<BTreeMap<usize, u64>>,
    boot: Cell<[u8; 16]>,
}

impl Memory {
    pub fn new(len: usize, is_durable: bool) -> Self {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(len as u64).expect("room");
        Self {
            file,
            len,
            persisted: is_durable.then(|| RefCell::new(vec![0; len])),
            flushing: RefCell::default(),
            count: Cell::new(0),
            newest: RefCell::default(),
            boot: Cell::new([1; 16]),
        }
    }

    pub fn region(&self) -> Region {
        Region::map(&self.file, self.len as u64, false).expect("a mapping")
    }

    pub fn boot(&self) -> [u8; 16] {
        self.boot.get()
    }

    pub fn flushed(&self, thread: usize, at: usize, len: usize) {
        if self.persisted.is_none() {
            return;
        }
        let mut flushing = self.flushing.borrow_mut();
        let lines = flushing.entry(thread).or_default();
        for at in (at / LINE * LINE..at + len).step_by(LINE) {
            let mut line = [0; LINE];
            self.file.read_exact_at(&mut line, at as u64).expect("a line");
            self.count.set(self.count.get() + 1);
            lines.push(Flushed { at, line, number: self.count.get() });
        }
    }

    pub fn fenced(&self, thread: usize) {
        let Some(persisted) = &self.persisted else { return };
        let lines = self.flushing.borrow_mut().remove(&thread).unwrap_or_default();
        for Flushed { at, line, number } in lines {
            let mut newest = self.newest.borrow_mut();
            let newest = newest.entry(at).or_default();
            // What another thread persisted since is not undone.
            if number > *newest {
                *newest = number;
                persisted.borrow_mut()[at..at + LINE].copy_from_slice(&line);
            }
        }
    }

    /// The power is cut, and the machine starts again.
    pub fn cut(&self, rng: &Rng, boot: [u8; 16]) {
        self.boot.set(boot);
        let Some(persisted) = &self.persisted else { return };
        let mut persisted = persisted.borrow_mut();
        let mut now = vec![0; self.len];
        self.file.read_exact_at(&mut now, 0).expect("the memory");
        // None of what was not fenced, some of it, or all.
        let survive = rng.pick(&[0, 16, 128, 240, 256]);
        for (old, new) in persisted.chunks_exact_mut(8).zip(now.chunks_exact(8)) {
            if old != new && rng.below(256) < survive {
                old.copy_from_slice(new);
            }
        }
        self.file.write_all_at(&persisted, 0).expect("the memory");
        self.flushing.borrow_mut().clear();
    }
}
