//! The owner of a lock or a lane: a process's client slot and one of its threads, in one word.

use core::sync::atomic::Ordering::Acquire;

use rustix::process::{Pid, test_kill_process};
use seawall_wire::shm::Shm;

use crate::thread;

const THREAD_BITS: u32 = 48;

/// An owner word; never 0, which means "free".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    /// The thread with this thread pointer (unique among a process's living threads) of a client.
    #[inline]
    pub fn new(client: u32, thread_pointer: usize) -> Self {
        let thread = (thread_pointer as u64 >> 4) & ((1 << THREAD_BITS) - 1);
        Self(u64::from(client + 1) << THREAD_BITS | thread)
    }

    /// The word as stored in shared memory.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The owner a non-zero word names.
    pub fn from_word(word: u64) -> Option<Self> {
        (word >> THREAD_BITS != 0).then_some(Self(word))
    }

    /// The client slot.
    #[inline]
    pub fn client(self) -> u32 {
        (self.0 >> THREAD_BITS) as u32 - 1
    }

    /// A number by which owners are spread over lanes.
    #[inline]
    pub(crate) fn spread(self) -> u32 {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
    }

    /// True if the owner's process has ended. A reused process id counts as alive: the daemon, which compares start
    /// times, frees such slots.
    pub fn is_dead(self, shm: &Shm) -> bool {
        match self.process(shm) {
            None => true,
            Some(pid) => test_kill_process(pid) == Err(rustix::io::Errno::SRCH),
        }
    }

    /// The same of the owner that a word names; free, it names nobody.
    pub(crate) fn is_word_dead(word: u64, shm: &Shm) -> bool {
        Self::from_word(word).is_some_and(|owner| owner.is_dead(shm))
    }

    /// True if the owner's process is stopped: by a signal or a debugger, or its control group is frozen.
    pub(crate) fn is_halted(self, shm: &Shm) -> bool {
        self.process(shm).is_some_and(|pid| thread::is_halted(pid.as_raw_nonzero().get() as u32))
    }

    fn process(self, shm: &Shm) -> Option<Pid> {
        Pid::from_raw(shm.client(self.client())?.pid().load(Acquire) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_never_the_free_word_and_keeps_its_client() {
        for client in [0, 1, 4095] {
            let owner = Owner::new(client, 0);
            assert_ne!(owner.word(), 0);
            assert_eq!(owner.client(), client);
            assert_ne!(owner, Owner::new(client, 0x7f00_1234_5740));
        }
        assert_eq!([0, 1].map(Owner::from_word), [None, None], "free, and what nobody has");
    }
}
