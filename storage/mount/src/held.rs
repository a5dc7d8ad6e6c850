//! What the kernel may have of a file in its cache, as numbers: [`crate::pages`], which lets pages go, says why.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Writes past a file's pages, with nothing put there between them, after which they are all let go.
const QUIET: u32 = 64;

/// What the kernel may have of an inode.
#[derive(Default)]
pub struct Held {
    /// How often it may have put something there.
    fills: AtomicU64,
    /// What the first so many put there is gone.
    gone: AtomicU64,
    /// Writes that let pages go since something was last put there: about so many.
    quiet: AtomicU32,
}

impl Held {
    /// To be called before it is read through them.
    pub fn may_fill(&self) {
        self.fills.fetch_add(1, SeqCst);
        if self.quiet.load(Relaxed) != 0 {
            self.quiet.store(0, Relaxed);
        }
    }

    /// To be asked after a write past them was published: false if none of them holds what was there before it.
    pub fn may_be_there(&self) -> bool {
        self.fills.load(SeqCst) != self.gone.load(SeqCst)
    }

    /// To be called when the kernel is going to let all go, and nobody has the file open.
    pub fn none(&self) {
        self.gone.fetch_max(self.fills.load(SeqCst), SeqCst);
    }

    /// Lets these bytes' pages go, by `drop`: or all of them, whose length is 0 for the kernel.
    pub fn let_go(&self, (offset, len): (u64, usize), drop: impl FnOnce(u64, usize)) {
        if self.quiet.fetch_add(1, Relaxed) < QUIET {
            return drop(offset, len);
        }
        let there = self.fills.load(SeqCst);
        drop(0, 0);
        self.gone.fetch_max(there, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_read_before_a_write_is_let_go_whatever_others_let_go_meanwhile() {
        let held = Held::default();
        assert!(!held.may_be_there());
        held.may_fill();
        // Another write lets its own pages go.
        held.let_go((0, 4096), |offset, len| assert_eq!((offset, len), (0, 4096)));
        assert!(held.may_be_there(), "not those of this one");
    }

    #[test]
    fn a_file_that_is_not_read_any_more_has_all_let_go_once() {
        let held = Held::default();
        held.may_fill();
        for _ in 0..QUIET {
            held.let_go((4096, 4096), |offset, _| assert_eq!(offset, 4096));
        }
        // Something is put there while they are let go.
        held.let_go((4096, 4096), |offset, len| {
            assert_eq!((offset, len), (0, 0));
            held.may_fill();
        });
        assert!(held.may_be_there(), "the last one is");
        for _ in 0..=QUIET {
            held.let_go((4096, 4096), |_, _| {});
        }
        assert!(!held.may_be_there());
        held.may_fill();
        assert!(held.may_be_there());
    }
}
