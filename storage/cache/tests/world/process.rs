//! What a process does: reads, writes, truncates and syncs, as a front of the cache is to do it. Or not quite
//! ([`Planted`]).

use std::ops::Range;
use std::rc::Rc;

use seawall_cache::shared::{Cache, CachedFile, Lookup, Offered, OperationOwner, Token, Version};

use super::disk::Halves;
use super::{BLOCK, BLOCKS, DEV, FILES, NOT_ENTERED, Planted, World};

/// One process.
pub struct Process {
    world: Rc<World>,
    cache: Rc<Cache>,
    number: usize,
    /// Missed blocks that were read and not offered yet.
    held: Option<(Token, Vec<u8>)>,
    /// What its descriptor of each file remembers.
    known: Vec<Known>,
}

/// What a descriptor remembers.
#[derive(Clone, Copy)]
enum Known {
    /// Its file was not entered when its cell had this version.
    Not(Version),
    /// It was.
    Entered(CachedFile),
}

impl Process {
    pub fn new(world: Rc<World>, cache: Rc<Cache>, number: usize) -> Self {
        let files = world.files.borrow().clone();
        let known = |file| match file {
            NOT_ENTERED => Known::Not(Version::default()),
            file => Known::Entered(file),
        };
        let known = files.into_iter().map(known).collect();
        Self { world, cache, number, held: None, known }
    }

    fn owner(&self) -> OperationOwner {
        OperationOwner::new(self.number as u32, 1)
    }

    pub fn run(mut self) {
        for _ in 0..self.world.rng.range(10, 60) {
            if self.world.broken.borrow().is_some() {
                return;
            }
            let file = self.world.rng.below(FILES as u64) as usize;
            match self.world.rng.below(40) {
                0 => self.truncate(file),
                1..=4 => self.sync(file),
                5..=10 => self.write(file),
                _ => self.read(file),
            }
        }
    }

    /// A few blocks are wanted often, and others now and then.
    fn block(&self) -> usize {
        let rng = &self.world.rng;
        if rng.one_in(3) { rng.below(BLOCKS as u64) as usize } else { rng.below(3) as usize }
    }

    fn read(&mut self, file: usize) {
        let (world, block) = (Rc::clone(&self.world), self.block());
        let since = world.disks.borrow()[file].now();
        let mut buffer = vec![0; BLOCK];
        if world.planted == Some(Planted::ReadBeforeMissed) {
            return self.read_wrongly(file, block, buffer);
        }
        let of = world.files.borrow()[file];
        let token = match self.cache.look_up(of, block as u32, &mut buffer) {
            Lookup::Hit => return self.check(file, block, since, &buffer),
            Lookup::Miss(token) => token,
        };
        self.read_disk(file, block, &mut buffer);
        if let Some(token) = token {
            self.offer(token, buffer);
        }
    }

    fn read_disk(&self, file: usize, block: usize, buffer: &mut [u8]) {
        for half in 0..2 {
            self.world.step();
            let write = self.world.disks.borrow()[file].half(block, half);
            fill_half(buffer, half, write);
        }
        self.world.step();
    }

    fn read_wrongly(&mut self, file: usize, block: usize, mut buffer: Vec<u8>) {
        self.read_disk(file, block, &mut buffer);
        let (of, since) = (self.world.files.borrow()[file], self.world.disks.borrow()[file].now());
        let mut found = vec![0; BLOCK];
        match self.cache.look_up(of, block as u32, &mut found) {
            Lookup::Hit => self.check(file, block, since, &found),
            Lookup::Miss(token) => token.into_iter().for_each(|token| self.offer(token, buffer.clone())),
        }
    }

    /// At once, or some operations later.
    fn offer(&mut self, token: Token, buffer: Vec<u8>) {
        let later = self.world.rng.one_in(4);
        let offer = if later { self.held.replace((token, buffer)) } else { Some((token, buffer)) };
        let Some((token, buffer)) = offer else { return };
        match self.cache.offer(self.owner(), &token, &buffer) {
            Offered::Admitted => self.world.count(|seen| seen.admitted += 1),
            Offered::Stale => self.world.count(|seen| seen.stale += 1),
            Offered::Passed | Offered::Busy | Offered::Staged | Offered::Failed => {}
        }
    }

    /// Reads a block if it is there.
    pub fn look(&self, file: usize, block: usize) {
        let (of, since) = (self.world.files.borrow()[file], self.world.disks.borrow()[file].now());
        let mut buffer = vec![0; BLOCK];
        if self.cache.look_up(of, block as u32, &mut buffer) == Lookup::Hit {
            self.check(file, block, since, &buffer);
        }
    }

    fn check(&self, file: usize, block: usize, since: u64, buffer: &[u8]) {
        self.world.count(|seen| seen.hits += 1);
        let Some(halves) = halves(buffer) else {
            return self.world.violate(format!("file {file}, block {block}: a half is a mixture"));
        };
        if !self.world.disks.borrow()[file].may_be_read(block, since, halves) {
            self.world
                .violate(format!("file {file}, block {block}: {halves:?} is not what it held since {since}"));
        }
    }

    /// Publishes what is not announced, if the file is not entered. Else the file, as it is entered.
    fn unless_entered(&mut self, file: usize, blocks: &Range<usize>) -> Option<CachedFile> {
        loop {
            let version = match self.known[file] {
                Known::Entered(of) => return Some(of),
                Known::Not(version) => version,
            };
            let cell = self.cache.cell(DEV, file as u64);
            let begun = match self.world.planted {
                Some(Planted::Uncounted) => Ok(()),
                _ => self.cache.begin_unannounced(cell, version),
            };
            match begun {
                Ok(()) => {
                    // The kernel may take its time.
                    (0..self.world.rng.below(30)).for_each(|_| self.world.wait());
                    self.publish(file, blocks.clone());
                    if self.world.planted != Some(Planted::Uncounted) {
                        self.cache.end_unannounced(cell);
                    }
                    return None;
                }
                Err(now) => {
                    let found = self.cache.find(DEV, file as u64);
                    self.known[file] = found.map_or(Known::Not(now), Known::Entered);
                }
            }
        }
    }

    fn write(&mut self, file: usize) {
        let first = self.block();
        let blocks = first..(first + 1 + self.world.rng.below(2) as usize).min(BLOCKS);
        let Some(of) = self.unless_entered(file, &blocks) else { return };
        let begin = || self.cache.begin_write(self.owner(), of, blocks.start as u32..blocks.end as u32);
        match self.world.planted {
            Some(Planted::AnnouncedTooLate) => {
                self.publish(file, blocks.clone());
                self.cache.end_write(begin());
            }
            Some(Planted::EndedTooEarly) => {
                self.cache.end_write(begin());
                self.publish(file, blocks);
            }
            _ => {
                let writing = begin();
                self.publish(file, blocks.clone());
                self.cache.end_write(writing);
            }
        }
    }

    fn truncate(&mut self, file: usize) {
        if self.world.planted == Some(Planted::SilentChange) {
            return self.publish(file, 0..BLOCKS);
        }
        let Some(of) = self.unless_entered(file, &(0..BLOCKS)) else { return };
        self.cache.change(self.owner(), of, || self.publish(file, 0..BLOCKS));
    }

    /// What the kernel does, under the inode's lock.
    fn publish(&self, file: usize, blocks: Range<usize>) {
        let world = &self.world;
        while !world.disks.borrow_mut()[file].lock(blocks.clone(), self.number) {
            world.wait();
        }
        let write = world.disks.borrow_mut()[file].next_write();
        for block in blocks.clone() {
            for half in 0..2 {
                world.step();
                world.disks.borrow_mut()[file].set_half(block, half, write);
            }
        }
        world.step();
        world.disks.borrow_mut()[file].unlock(blocks);
    }

    fn sync(&self, file: usize) {
        let of = self.world.files.borrow()[file];
        let number = self.cache.begin_sync(of);
        let since = self.world.disks.borrow()[file].now();
        self.world.step();
        if self.world.planted != Some(Planted::ImaginedSync) {
            self.world.disks.borrow_mut()[file].synced(since);
        }
        self.world.step();
        self.cache.end_sync(of, number, true);
    }
}

/// Stores which write a half is of.
pub fn fill_half(buffer: &mut [u8], half: usize, write: u32) {
    let bytes = &mut buffer[half * BLOCK / 2..][..BLOCK / 2];
    bytes.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&write.to_le_bytes()));
}

/// The write of each half; `None` if one of them is of several.
fn halves(buffer: &[u8]) -> Option<Halves> {
    let mut found = [0; 2];
    for (half, write) in buffer.chunks_exact(BLOCK / 2).zip(&mut found) {
        let mut words =
            half.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()));
        *write = words.next()?;
        if words.any(|word| word != *write) {
            return None;
        }
    }
    Some(found)
}
