//! Where in the ring the next batch goes.
//!
//! What counts lies from the tail to the end, perhaps around the ring's end; end = tail means nothing does. A
//! batch is never cut in two: what is left before the ring's end stays unused if it is too small.

use super::anchor::RING_AT;

/// The ring of one journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Where it ends: the journal's size.
    pub size: u64,
}

impl Ring {
    /// Bytes it has.
    pub const fn bytes(self) -> u64 {
        self.size - RING_AT
    }

    /// Bytes from the tail to the end, what is unused at the ring's end among them.
    pub const fn used(self, tail: u64, end: u64) -> u64 {
        if end >= tail { end - tail } else { self.bytes() - (tail - end) }
    }

    /// Where `len` bytes go behind `end`, so that they neither reach the tail nor end at it. `None`: full.
    pub const fn place(self, tail: u64, end: u64, len: u64) -> Option<u64> {
        if end < tail {
            return if end + len < tail { Some(end) } else { None };
        }
        if end + len <= self.size {
            return Some(end);
        }
        if RING_AT + len < tail { Some(RING_AT) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_never_overwritten() {
        let ring = Ring { size: RING_AT + 10 };
        for tail in RING_AT..RING_AT + 10 {
            for end in RING_AT..=RING_AT + 10 {
                for len in 1..10 {
                    let Some(at) = ring.place(tail, end, len) else { continue };
                    assert!(at >= RING_AT && at + len <= ring.size);
                    let counts =
                        |x: u64| if end >= tail { (tail..end).contains(&x) } else { x >= tail || x < end };
                    assert!(!(at..at + len).any(counts), "tail {tail} end {end} len {len}: at {at}");
                    assert_ne!(at + len, tail, "a full ring does not look empty");
                    assert!(ring.used(tail, at + len) >= ring.used(tail, end) + len);
                }
            }
        }
    }
}
