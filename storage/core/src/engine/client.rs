//! Processes come and go: one client slot each.

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use super::attach::Engine;

impl Engine {
    /// Claims a slot for the process `pid`, which gives `since_ns` of CLOCK_BOOTTIME as its start. `None`: all are
    /// taken; the process then passes everything through.
    pub fn claim_client(&self, pid: u32, since_ns: u64) -> Option<u32> {
        let n = self.shm().shape().clients;
        let slot = (0..n).map(|i| (pid.wrapping_add(i)) % n).find(|i| {
            self.shm().client(*i).is_some_and(|c| {
                let won = c.pid().compare_exchange(0, pid, AcqRel, Relaxed).is_ok();
                if won {
                    c.generation().fetch_add(1, Relaxed);
                    c.since().store(since_ns, Release);
                    Self::begins_with_nothing_under_way(c);
                }
                won
            })
        })?;
        if let Some(journal) = self.log.pool.journal() {
            journal.sits_for(slot);
        }
        Some(slot)
    }

    /// Gives a slot back. The process must hold nothing.
    pub fn release_client(&self, slot: u32) {
        if let Some(client) = self.shm().client(slot) {
            client.pid().store(0, Release);
        }
    }
}
