//! Where the blocks of a read come from that are not in the block cache: a file's page cache, and its disk.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, pread, preadv2};
use seawall_cache::front::reader::{How, Source};
use seawall_core::Errno;
use seawall_stats::{Class, Event};

use crate::joined::Joined;

/// The blocks of a read, in one piece of memory.
pub struct Blocks<'a> {
    /// Where the waits are counted.
    pub joined: &'a Joined,
    /// The file.
    pub fd: BorrowedFd<'a>,
    /// Where in it the read begins.
    pub offset: u64,
    /// Bytes of a block.
    pub size: usize,
    /// All of them.
    pub into: &'a mut [u8],
}

impl Source for Blocks<'_> {
    type Error = Errno;

    fn block(&mut self, i: usize) -> &mut [u8] {
        &mut self.into[i * self.size..][..self.size]
    }

    fn kernel(&mut self, from: usize, to: usize, how: How) -> Result<usize, Errno> {
        let (begin, end) = (from * self.size, to * self.size);
        let (fd, offset) = (self.fd, self.offset + begin as u64);
        fill(&mut self.into[begin..end], |rest, got| {
            let at = offset + got as u64;
            match how {
                How::Wait => pread(fd, rest, at),
                How::NoWait => preadv2(fd, &mut [IoSliceMut::new(rest)], at, ReadWriteFlags::NOWAIT),
            }
        })
    }

    fn give_up(&self, from: usize, to: usize) {
        let (offset, len) = (self.offset + (from * self.size) as u64, (to - from) * self.size);
        let _ = fadvise(self.fd, offset, NonZeroU64::new(len as u64), Advice::DontNeed);
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.joined.engine.shm().header().clock().ns(ticks)
    }

    fn record(&self, event: Event, class: Class, ns: u64, count: usize) {
        let shm = self.joined.engine.shm();
        let stats = shm.stats(self.joined.thread() % shm.shape().lanes);
        (0..count).for_each(|_| stats.record_shared(event, class, ns));
    }
}

/// Fills `into` as far as the file goes: a short answer would be taken for its end.
pub fn fill(
    into: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut got = 0;
    while got < into.len() {
        match read(&mut into[got..], got) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(Errno::INTR) => {}
            Err(_) if got > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
