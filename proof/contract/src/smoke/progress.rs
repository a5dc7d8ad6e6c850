//! Counters that outlive their writers: shared memory without a file.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// One worker's counters: operations begun and finished in its present life.
#[repr(C, align(64))]
pub struct Progress {
    begun: AtomicU64,
    finished: AtomicU64,
}

impl Progress {
    /// Maps counters for `workers`, and one more whose `begun` is the stop flag.
    pub fn share(workers: usize) -> &'static [Progress] {
        let length = (workers + 1) * size_of::<Progress>();
        // SAFETY: a fresh anonymous mapping, zero-filled, never unmapped: valid for 'static, and
        // all-zero is a valid Progress.
        unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let address =
                libc::mmap(std::ptr::null_mut(), length, both, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(address, libc::MAP_FAILED, "no shared memory for the counters");
            std::slice::from_raw_parts(address.cast(), workers + 1)
        }
    }

    pub fn begin(&self, index: u64) {
        self.begun.store(index + 1, SeqCst);
    }

    pub fn finish(&self, index: u64) {
        self.finished.store(index + 1, SeqCst);
    }

    /// How many operations finished, and whether another was begun.
    pub fn read(&self) -> (u64, bool) {
        let finished = self.finished.load(SeqCst);
        (finished, self.begun.load(SeqCst) > finished)
    }

    pub fn reset(&self) {
        self.begun.store(0, SeqCst);
        self.finished.store(0, SeqCst);
    }

    pub fn raise(&self) {
        self.begun.store(1, SeqCst);
    }

    pub fn raised(&self) -> bool {
        self.begun.load(SeqCst) != 0
    }
}
