//! The simulated file: what each block held when, and what a read may return.
//!
//! A block is two halves, each of which says which write it is of. A write changes one half after the other: in
//! between the disk holds a mixture, as a real one does for a block of two pages.

/// Which write each half is of.
pub type Halves = [u32; 2];

/// A state of a block, from a moment on.
#[derive(Clone, Copy)]
struct State {
    since: u64,
    halves: Halves,
    /// Its writer was killed, or power was cut: it stays like this.
    is_left: bool,
}

/// A file's blocks.
pub struct Disk {
    blocks: Vec<Vec<State>>,
    writer: Vec<Option<usize>>,
    /// When the last sync that has ended began.
    synced: u64,
    clock: u64,
    writes: u32,
    mtime: i64,
}

impl Disk {
    /// Its writes have numbers from `first` on.
    pub fn new(blocks: usize, first: u32) -> Self {
        let state = State { since: 0, halves: [first; 2], is_left: false };
        let blocks = vec![vec![state]; blocks];
        Self { writer: vec![None; blocks.len()], blocks, synced: 0, clock: 0, writes: first, mtime: 0 }
    }

    /// Now.
    pub fn now(&self) -> u64 {
        self.clock
    }

    /// What a half of a block holds.
    pub fn half(&self, block: usize, half: usize) -> u32 {
        self.last(block).halves[half]
    }

    fn last(&self, block: usize) -> State {
        self.blocks[block][self.blocks[block].len() - 1]
    }

    /// The inode's lock, for these blocks.
    pub fn lock(&mut self, blocks: std::ops::Range<usize>, writer: usize) -> bool {
        let is_free = self.writer[blocks.clone()].iter().all(Option::is_none);
        if is_free {
            self.writer[blocks].fill(Some(writer));
        }
        is_free
    }

    pub fn unlock(&mut self, blocks: std::ops::Range<usize>) {
        self.writer[blocks].fill(None);
    }

    /// When it was written last.
    pub fn mtime(&self) -> i64 {
        self.mtime
    }

    /// Sets that.
    pub fn touch(&mut self, mtime: i64) {
        self.mtime = mtime;
    }

    /// A number that no write had.
    pub fn next_write(&mut self) -> u32 {
        self.writes += 1;
        self.mtime = i64::from(self.writes);
        self.writes
    }

    pub fn set_half(&mut self, block: usize, half: usize, write: u32) {
        self.clock += 1;
        let mut halves = self.last(block).halves;
        halves[half] = write;
        self.blocks[block].push(State { since: self.clock, halves, is_left: false });
    }

    /// A writer was killed.
    pub fn died(&mut self, writer: usize) {
        for (states, of) in self.blocks.iter_mut().zip(&mut self.writer) {
            if *of == Some(writer) {
                *of = None;
                states.iter_mut().next_back().into_iter().for_each(|state| state.is_left = true);
            }
        }
    }

    pub fn synced(&mut self, since: u64) {
        self.synced = self.synced.max(since);
    }

    /// The power is cut: each block is what it was at the last sync, or something it was since.
    pub fn cut(&mut self, mut pick: impl FnMut(u64) -> u64) {
        let synced = self.synced;
        for states in &mut self.blocks {
            let first = states.iter().rposition(|state| state.since <= synced).unwrap_or(0);
            let survivor = states[first + pick((states.len() - first) as u64) as usize];
            *states = vec![State { since: self.clock, is_left: true, ..survivor }];
        }
        self.writer.fill(None);
    }

    /// Whether a cache may answer a read that began at `since` and ends now with this.
    pub fn may_be_read(&self, block: usize, since: u64, halves: Halves) -> bool {
        let states = &self.blocks[block];
        let first = states.iter().rposition(|state| state.since <= since).unwrap_or(0);
        let is_allowed = |state: &State| state.halves == halves && (halves[0] == halves[1] || state.is_left);
        states[first..].iter().any(is_allowed)
    }
}
