//! Copies of the log on other hosts: who keeps them ([`Copies`]), what is [sent](Sending) there, and what a copy gets
//! that is made anew while the log goes on ([`Standing`]).

use core::sync::atomic::Ordering::Relaxed;
use std::os::fd::OwnedFd;
use std::vec::Vec;

use rustix::io::Errno;
use seawall_media::Region;
use seawall_wire::desk::Desk;

use super::parts::{OFFSET, PIECE, pieces};
use crate::format::{Layout, SegmentHeader, Superblock};

/// Bytes of a stretch.
const STRETCH: usize = 256 << 10;

/// The party that keeps copies of a log.
pub trait Copies: Send + Sync {
    /// Sends a batch to all of them, and waits until enough have confirmed it.
    ///
    /// # Errors
    /// EIO: the batch may be kept or not, and nothing more from this writer is ever kept. EAGAIN: the batch does not
    /// count, because this host went on [alone](seawall_wire::desk::alone) meanwhile.
    fn write(&self, batch: &Sending<'_>) -> Result<(), Errno>;

    /// The connections on which any process of this host may send.
    fn lend(&self) -> Lent {
        Lent::default()
    }
}

/// Connections to keepers that are lent to a process.
#[derive(Default)]
pub struct Lent {
    /// [`Desk::given`] for these connections; 0: nothing is lent now, regardless of what was lent before.
    pub given: u32,
    /// Which keepers they lead to: a bit each, by their place in the roster.
    pub keepers: u32,
    /// The connections.
    pub connections: Vec<OwnedFd>,
}

/// A batch to be sent.
pub struct Sending<'a> {
    /// The log in front of it.
    pub standing: Standing<'a>,
    /// Its number.
    pub number: u64,
    /// Where it lies in the image's memory, and how many bytes it has.
    pub(super) at: usize,
    pub(super) len: usize,
}

impl Sending<'_> {
    /// Copies its bytes out.
    pub fn copy_to(&self, bytes: &mut Vec<u8>) {
        bytes.resize(self.len, 0);
        self.standing.image.read(self.at, bytes);
    }
}

/// A log between two batches: nobody commits one, and no table is being changed.
pub struct Standing<'a> {
    image: &'a Region,
    desk: Desk<'a>,
    layout: Layout,
    uuid_low: u64,
    /// The newest batch that counts.
    pub last: u64,
}

impl<'a> Standing<'a> {
    /// What the log's writers share.
    pub fn desk(&self) -> Desk<'a> {
        self.desk
    }

    pub(crate) fn of(desk: Desk<'a>, image: &'a Region) -> Result<Self, Errno> {
        let superblock = Superblock::read(image).map_err(|_| Errno::IO)?;
        let last = desk.newest().0.number();
        Ok(Self { image, desk, layout: superblock.layout(), uuid_low: superblock.uuid_low(), last })
    }

    /// The next stretch, from `from` on, of the content of a copy that is up to date with [`last`](Self::last): where
    /// in the image it is, and its bytes. Bytes that no batch contains yet are left out, since newer ones might be
    /// there and older ones not.
    pub fn stretch(&self, from: u64, bytes: &mut Vec<u8>) -> Option<u64> {
        let tables = self.layout.segments_at();
        let from = usize::try_from(from).ok()?;
        if let Some(at) = pieces(self.image, self.layout, from).next() {
            bytes.resize(PIECE, 0);
            self.image.read(at, bytes);
            return Some(at as u64);
        }
        let size = self.layout.segment_bytes as usize;
        let first = from.saturating_sub(tables) / size;
        (first as u32..self.layout.segments).find_map(|index| {
            let begin = self.layout.segment(index);
            let at = from.max(begin);
            self.of_segment(index, at - begin, bytes).then_some(at as u64)
        })
    }

    /// Reads what batches contain of a segment, from this offset in it on.
    fn of_segment(&self, index: u32, from: usize, bytes: &mut Vec<u8>) -> bool {
        let (cursor, begin) = (self.desk.cursor(index).load(Relaxed), self.layout.segment(index));
        let end = (cursor & OFFSET).min(u64::from(self.layout.segment_bytes)) as usize;
        let is_same_use = || {
            SegmentHeader::read(self.image, begin, self.uuid_low)
                .is_some_and(|h| h.seq & OFFSET == cursor >> 32)
        };
        if from >= end || !is_same_use() {
            return false;
        }
        bytes.resize((end - from).min(STRETCH), 0);
        self.image.read(begin + from, bytes);
        // The segment may have begun anew meanwhile: then its content is in no batch.
        is_same_use()
    }
}
