//! A queue's desk: where its entries lie that others have.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use seawall_media::locks::lock;

use super::sys::UringEntry;

const EIO: i32 = 5;

/// Where others leave entries that have their answers.
pub struct Desk {
    pub done: Mutex<Vec<&'static mut UringEntry>>,
    /// Entries whose answer comes by the socket, by their request.
    pub away: Mutex<HashMap<u64, &'static mut UringEntry>>,
    pub wake: OwnedFd,
    /// The queue is not to be used.
    pub over: AtomicBool,
}

impl Desk {
    pub fn new(wake: OwnedFd) -> Arc<Self> {
        Arc::new(Self { done: Mutex::default(), away: Mutex::default(), wake, over: AtomicBool::new(false) })
    }

    pub fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Ends the queue's thread.
    pub fn end(&self) {
        self.over.store(true, Relaxed);
        self.wake();
    }

    /// Nobody answers any more.
    pub fn give_up(&self) {
        let left = std::mem::take(&mut *lock(&self.away));
        for entry in left.into_values() {
            entry.answer(Err(EIO));
            self.hand_in(entry);
        }
    }

    /// Gives an entry back to the queue's thread.
    pub fn hand_in(&self, entry: &'static mut UringEntry) {
        let mut done = lock(&self.done);
        done.push(entry);
        let is_first = done.len() == 1;
        drop(done);
        if is_first {
            self.wake();
        }
    }
}

/// An entry that has its answer, or nothing: another thread has it.
pub type Answered = Option<&'static mut UringEntry>;
