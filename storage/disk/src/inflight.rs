//! Requests without an answer, in memory that QEMU keeps when this process is gone (VHOST_USER_PROTOCOL_F_INFLIGHT_SHMFD).
//!
//! The layout and the order of steps are the vhost-user document's for split rings ("Inflight I/O tracking"), so that another
//! backend understands what we left, and we what it left:
//!
//! ```text
//! per queue:  features 8 | version 2, entries 2, last head 2, used index 2 | entry 16 × entries, filled up to a multiple of 64
//! an entry:   in flight 1, 0 × 5, next 2 | counter 8
//! ```
//!
//! | step | | after a kill here |
//! |---|---|---|
//! | a request is taken | its entry: counter, then in flight | it is carried out |
//! | its answer comes | last head | it is carried out again, which changes nothing |
//! | | used ring and its index (in the guest's memory) | the used index is ahead: that head has its answer |
//! | | its entry: not in flight | the same |
//! | | used index | |
//!
//! Nothing that the memory says is believed: another program may have filled it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use seawall_media::Region;

const HEAD: usize = 16;
const ENTRY: usize = 16;
const ALIGNED_TO: usize = 64;
const VERSION: u64 = 1;

/// The memory of all queues of a disk.
pub struct Shared {
    region: Region,
    queues: u16,
    size: u16,
}

/// Bytes that one queue of so many entries takes.
fn queue_bytes(size: u16) -> usize {
    (HEAD + ENTRY * usize::from(size)).next_multiple_of(ALIGNED_TO)
}

impl Shared {
    /// Makes it.
    ///
    /// # Errors
    /// There is no memory.
    pub fn make(queues: u16, size: u16) -> io::Result<(Arc<Self>, File, u64)> {
        let bytes = queue_bytes(size) as u64 * u64::from(queues);
        let file = memfd_create("seawall-disk-inflight", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, bytes)?;
        let file = File::from(file);
        Ok((Self::map(&file, bytes, queues, size)?, file, bytes))
    }

    /// Maps what the former process had.
    ///
    /// # Errors
    /// It is smaller than it should be, or cannot be mapped.
    pub fn map(file: &File, bytes: u64, queues: u16, size: u16) -> io::Result<Arc<Self>> {
        let wanted = queue_bytes(size) as u64 * u64::from(queues);
        if bytes < wanted || file.metadata()?.len() < wanted {
            return Err(io::Error::other("the memory for requests in flight is too small"));
        }
        let region = Region::map(file, wanted, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
        Ok(Arc::new(Self { region, queues, size }))
    }

    /// What one queue of `size` entries has in it. `None`: it has no room for such a queue.
    pub fn queue(self: &Arc<Self>, index: u16, size: u16) -> Option<Tracker> {
        let fits = index < self.queues && size <= self.size;
        fits.then(|| Tracker {
            shared: Arc::clone(self),
            at: usize::from(index) * queue_bytes(self.size),
            size,
            counter: 0,
        })
    }
}

/// One queue's. Whoever has it takes requests and gives answers alone.
pub struct Tracker {
    shared: Arc<Shared>,
    at: usize,
    size: u16,
    counter: u64,
}

/// The second word of a queue's head.
#[derive(Clone, Copy)]
struct Head {
    last: u16,
    used: u16,
}

impl Tracker {
    /// Takes over what the former process left: the heads that have no answer, in the order in which they were taken. `used`: the
    /// index in the used ring.
    pub fn begin(&mut self, used: u16) -> Vec<u16> {
        let head = self.head();
        if self.version() == 0 {
            self.set_head(Head { last: 0, used });
        } else if head.used != used {
            // Killed between the used ring and the entry: the answer is there.
            self.set_in_flight(head.last, false);
            self.set_head(Head { used, ..head });
        }
        let mut left: Vec<(u64, u16)> = (0..self.size)
            .filter(|head| self.is_in_flight(*head))
            .map(|head| (self.count_of(head), head))
            .collect();
        left.sort_unstable();
        self.counter = left.last().map_or(0, |(count, _)| count.wrapping_add(1));
        left.into_iter().map(|(_, head)| head).collect()
    }

    /// A request is taken.
    pub fn take(&mut self, head: u16) {
        if head < self.size {
            self.word(self.entry(head) + 8).store(self.counter, Relaxed);
            self.counter = self.counter.wrapping_add(1);
            self.set_in_flight(head, true);
        }
    }

    /// Its answer is about to be in the used ring.
    pub fn answering(&mut self, head: u16) {
        self.set_head(Head { last: head, ..self.head() });
    }

    /// It is: the index of the used ring is this one.
    pub fn answered(&mut self, head: u16, used: u16) {
        self.set_in_flight(head, false);
        self.set_head(Head { used, ..self.head() });
    }

    fn word(&self, at: usize) -> &std::sync::atomic::AtomicU64 {
        self.shared.region.u64(at)
    }

    fn entry(&self, head: u16) -> usize {
        self.at + HEAD + ENTRY * usize::from(head)
    }

    fn version(&self) -> u64 {
        self.word(self.at + 8).load(Acquire) & 0xffff
    }

    fn head(&self) -> Head {
        let word = self.word(self.at + 8).load(Acquire);
        Head { last: (word >> 32) as u16, used: (word >> 48) as u16 }
    }

    fn set_head(&self, head: Head) {
        let word =
            VERSION | u64::from(self.size) << 16 | u64::from(head.last) << 32 | u64::from(head.used) << 48;
        self.word(self.at + 8).store(word, Release);
    }

    fn is_in_flight(&self, head: u16) -> bool {
        self.word(self.entry(head)).load(Acquire) & 0xff == 1
    }

    fn count_of(&self, head: u16) -> u64 {
        self.word(self.entry(head) + 8).load(Relaxed)
    }

    fn set_in_flight(&self, head: u16, is: bool) {
        if head < self.size {
            self.word(self.entry(head)).store(u64::from(is), Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker(shared: &Arc<Shared>) -> Tracker {
        shared.queue(1, 8).expect("room")
    }

    #[test]
    fn whatever_has_no_answer_is_found_in_the_order_in_which_it_was_taken() {
        let (shared, file, bytes) = Shared::make(2, 8).expect("made");
        let mut first = tracker(&shared);
        assert!(first.begin(0).is_empty());
        for head in [5, 2, 7] {
            first.take(head);
        }
        first.answering(2);
        first.answered(2, 1);
        let again = Shared::map(&file, bytes, 2, 8).expect("mapped");
        assert_eq!(tracker(&again).begin(1), [5, 7]);
        assert!(again.queue(0, 8).expect("the other queue").begin(0).is_empty());
        let mut second = tracker(&again);
        second.begin(1);
        second.take(2);
        assert_eq!(tracker(&again).begin(1), [5, 7, 2], "what is taken now comes last");
    }

    #[test]
    fn an_answer_that_reached_the_ring_is_not_given_twice_wherever_the_kill_came() {
        let (shared, ..) = Shared::make(2, 8).expect("made");
        let mut first = tracker(&shared);
        first.begin(65535);
        first.take(3);
        first.take(4);
        first.answering(3);
        assert_eq!(tracker(&shared).begin(65535), [3, 4], "before the ring");
        assert_eq!(tracker(&shared).begin(0), [4], "behind it, and the index has come round");
        assert_eq!(tracker(&shared).begin(0), [4], "once more");
    }

    #[test]
    fn memory_that_is_too_small_or_says_nonsense_is_refused_or_harmless() {
        let (shared, file, bytes) = Shared::make(2, 8).expect("made");
        assert!(Shared::map(&file, bytes, 3, 8).is_err());
        assert!(Shared::map(&file, bytes * 9, 9, 8).is_err(), "the file is not as large as the message says");
        assert!(shared.queue(2, 8).is_none() && shared.queue(0, 16).is_none());
        (0..bytes as usize / 8).for_each(|at| shared.region.u64(at * 8).store(u64::MAX, Relaxed));
        let mut tracker = tracker(&shared);
        assert!(tracker.begin(7).is_empty(), "in flight is 1");
        tracker.take(9000);
        tracker.answered(9000, 8);
    }
}
