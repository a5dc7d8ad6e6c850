//! A writer of a journal, its memory and its device: what it wrote, and what of that counts.

use std::fs::File;

use seawall_media::Region;
use seawall_media::block::{
    ANCHOR_BYTES, Anchor, Draft, JournalError, RING_AT, Recovered, Ring, read, read_closed,
};

pub const IMAGE: usize = 16 << 10;
const BUFFER: usize = 16 << 10;
const EXTENTS: u32 = 32;
pub const BLOCK: u32 = 512;
pub const SIZE: u64 = RING_AT + (64 << 10);
const UUID: [u8; 16] = [9; 16];

/// What one device write was to put where.
pub struct Write {
    pub at: usize,
    pub bytes: Vec<u8>,
    /// What was there before.
    old: Vec<u8>,
}

/// A writer, its memory and its device.
pub struct Log {
    pub memory: Region,
    pub disk: Vec<u8>,
    ring: Ring,
    pub anchor: Anchor,
    pub number: u64,
    pub last: u64,
    end: u64,
    /// The image at the tail, and after each batch that counts since.
    pub states: Vec<Vec<u8>>,
    /// Where each of these batches ended, and its number.
    pub ends: Vec<(u64, u64)>,
    pub writes: Vec<Write>,
    /// Batches of those who were replaced before they wrote them, and where they go.
    pub late: Vec<(usize, Vec<u8>)>,
}

/// What becomes of a batch.
#[derive(Clone, Copy, PartialEq)]
pub enum Fate {
    Counts,
    /// Its writer dies in the write.
    Dies,
    /// Its writer is stopped before the write, and another one takes its place.
    Stops,
}

impl Log {
    pub fn new() -> Self {
        let file =
            File::from(rustix::fs::memfd_create("journal", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
        let len = (IMAGE + BUFFER + 4096) as u64;
        file.set_len(len).expect("room");
        let memory = Region::map(&file, len, false).expect("a mapping");
        let anchor = Anchor::new(UUID, SIZE, IMAGE as u64, BLOCK);
        let mut disk = vec![0; SIZE as usize];
        disk[..ANCHOR_BYTES].copy_from_slice(&anchor.seal());
        Self {
            memory,
            disk,
            ring: Ring { size: SIZE },
            anchor,
            number: 0,
            last: 0,
            end: RING_AT,
            states: vec![vec![0; IMAGE]],
            ends: Vec::new(),
            writes: Vec::new(),
            late: Vec::new(),
        }
    }

    pub fn put(&mut self, at: usize, bytes: Vec<u8>) {
        let old = self.disk[at..at + bytes.len()].to_vec();
        self.disk[at..at + bytes.len()].copy_from_slice(&bytes);
        self.writes.push(Write { at, bytes, old });
    }

    /// Changes the image in these places and writes a batch of them. False: the ring is full.
    pub fn batch(&mut self, places: &[(u8, u8)], fate: Fate) -> bool {
        self.number += 1;
        let mut state = self.states.last().expect("a state").clone();
        let mut draft = Draft::begin(&self.memory, (IMAGE, BUFFER), (IMAGE + BUFFER, EXTENTS));
        for (line, n) in places {
            let at = usize::from(*line) * 64 % IMAGE;
            let len = (usize::from(*n % 32 + 1) * 64).min(IMAGE - at);
            state[at..at + len].fill(self.number as u8 ^ n);
            self.memory.copy_in(at, &state[at..at + len]);
            if !draft.take(at, len) {
                break;
            }
        }
        let size = draft.size(BLOCK) as u64;
        let avoided: Vec<_> = self.late.iter().map(|(at, bytes)| (*at as u64, bytes.len() as u64)).collect();
        let Some(at) = self.ring.place(self.anchor.tail, self.end, size, &avoided) else {
            // What did not get out is in no batch.
            self.memory.copy_in(0, self.states.last().expect("a state"));
            return false;
        };
        let mut applied = vec![0; IMAGE];
        self.memory.read(0, &mut applied);
        let sealed = draft.seal(self.number, self.last, at, self.anchor.uuid_low(), BLOCK);
        assert_eq!(sealed as u64, size);
        let mut bytes = vec![0; sealed];
        self.memory.read(IMAGE, &mut bytes);
        if fate == Fate::Stops {
            self.late.push((at as usize, bytes));
            return true;
        }
        self.put(at as usize, bytes);
        if fate == Fate::Dies {
            return true;
        }
        (self.last, self.end) = (self.number, at + size);
        self.states.push(applied);
        self.ends.push((self.end, self.number));
        true
    }

    /// Moves the tail behind some of the batches.
    pub fn forget(&mut self, n: usize) {
        let n = n.min(self.ends.len());
        if n == 0 {
            return;
        }
        let (end, number) = self.ends[n - 1];
        self.anchor.tail = if end == SIZE { RING_AT } else { end };
        if n == self.ends.len() {
            // Nothing counts any more: the next batch begins where reading does.
            self.end = self.anchor.tail;
        }
        (self.anchor.before, self.anchor.last) = (number, self.last);
        self.anchor.sequence += 1;
        self.ends.drain(..n);
        self.states.drain(..n);
        let at = Anchor::place(self.anchor.sequence) as usize;
        self.put(at, self.anchor.seal().to_vec());
    }

    /// Reads the device into an image that holds what the tail stands on.
    pub fn read(&self) -> Result<(Recovered, Vec<u8>), JournalError> {
        let mut image = self.states[0].clone();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&self.disk[at as usize..at as usize + into.len()]);
            Ok(())
        };
        let found = read(SIZE, std::iter::once(0..SIZE), read_at, |at, bytes| {
            image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        })?;
        Ok((found, image))
    }

    /// Says that nothing follows.
    pub fn close(&mut self) {
        self.anchor.last = self.last;
        self.anchor.sequence += 1;
        self.anchor = self.anchor.closed(self.number);
        let at = Anchor::place(self.anchor.sequence) as usize;
        self.put(at, self.anchor.seal().to_vec());
    }

    /// Reads what counts of a journal that was closed.
    pub fn read_closed(&self) -> Option<(Recovered, Vec<u8>)> {
        let mut image = self.states[0].clone();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&self.disk[at as usize..at as usize + into.len()]);
            Ok(())
        };
        let found = read_closed(SIZE, read_at, |at, bytes| {
            image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        });
        found.expect("it can be read").map(|found| (found, image))
    }

    /// Undoes a write in these sectors (true), or garbles them.
    pub fn damage(&mut self, write: usize, sectors: &[u8]) -> bool {
        let Write { at, bytes, old } = &self.writes[write];
        let mut whole = true;
        for (i, sector) in (0..bytes.len()).step_by(512).enumerate() {
            let place = at + sector..at + sector + 512;
            match sectors[i % sectors.len()] % 4 {
                0 => self.disk[place.clone()].copy_from_slice(&old[sector..sector + 512]),
                1 => self.disk[place.clone()].fill(0xa5),
                _ => {}
            }
            whole &= self.disk[place] == bytes[sector..sector + 512];
        }
        whole
    }
}
