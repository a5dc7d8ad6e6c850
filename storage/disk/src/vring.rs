//! A queue of the guest's as QEMU tells of it, a message at a time, until it can be served.

use std::fs::File;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex};

use vhost::vhost_user::{Error, Result};
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestAddress;

use crate::memory::Memory;
use crate::ring::Ring;

/// The longest queue that a guest may have.
pub const QUEUE_MAX: u16 = 1024;

/// What is known of a queue so far.
#[derive(Default)]
pub struct Vring {
    /// How many descriptors it has.
    pub size: u16,
    /// The index in the available ring from which on requests are taken.
    pub base: u16,
    /// The guest's addresses: descriptors, available ring, used ring.
    pub rings: Option<[u64; 3]>,
    /// The guest says: there are requests.
    pub kick: Option<File>,
    /// We say: there are answers.
    pub call: Arc<Mutex<Option<File>>>,
    /// It may be served.
    pub is_enabled: bool,
    /// It is.
    pub ring: Option<Ring>,
}

impl Vring {
    /// The queue with its rings at these addresses of the guest's, which goes on where it was left.
    ///
    /// # Errors
    /// It is of no such size, or not in the guest's memory.
    pub fn laid_out(&self, rings: [u64; 3], memory: &Memory, has_event_idx: bool) -> Result<Queue> {
        let mut queue = laid(self.size, rings).map_err(|_| Error::InvalidParam)?;
        queue.set_event_idx(has_event_idx);
        queue.set_next_avail(self.base);
        if !queue.is_valid(memory) {
            return Err(Error::InvalidParam);
        }
        let used = queue.used_idx(memory, Acquire).map_err(|_| Error::InvalidParam)?.0;
        queue.set_next_used(used);
        Ok(queue)
    }

    /// Serves it no longer, and remembers where that ended.
    pub fn stop(&mut self) {
        if let Some(ring) = self.ring.take() {
            self.base = ring.stop();
        }
    }
}

/// A queue of this size with its rings at these addresses of the guest's.
fn laid(size: u16, [table, available, used]: [u64; 3]) -> std::result::Result<Queue, virtio_queue::Error> {
    let mut queue = Queue::new(QUEUE_MAX)?;
    queue.try_set_size(size)?;
    queue.try_set_desc_table_address(GuestAddress(table))?;
    queue.try_set_avail_ring_address(GuestAddress(available))?;
    queue.try_set_used_ring_address(GuestAddress(used))?;
    queue.set_ready(true);
    Ok(queue)
}
