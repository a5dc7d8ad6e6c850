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

    /// Where `len` bytes go behind `end`, so that they neither reach the tail nor end at it, and meet none of the stretches
    /// (where, and how many bytes) to which others may still write. `None`: full.
    pub fn place(self, tail: u64, end: u64, len: u64, avoided: &[(u64, u64)]) -> Option<u64> {
        if end < tail {
            return fit(end, tail - 1, len, avoided);
        }
        fit(end, self.size, len, avoided).or_else(|| fit(RING_AT, tail.checked_sub(1)?, len, avoided))
    }
}

/// The first place from `from` on where `len` bytes end at or before `until` and meet nothing that is avoided.
fn fit(from: u64, until: u64, len: u64, avoided: &[(u64, u64)]) -> Option<u64> {
    let mut at = from;
    while let Some((begin, bytes)) =
        avoided.iter().find(|(begin, bytes)| at < begin + bytes && *begin < at + len)
    {
        at = begin + bytes;
    }
    (at + len <= until).then_some(at)
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
                    let Some(at) = ring.place(tail, end, len, &[]) else { continue };
                    assert!(at >= RING_AT && at + len <= ring.size);
                    let counts =
                        |x: u64| if end >= tail { (tail..end).contains(&x) } else { x >= tail || x < end };
                    assert!(!(at..at + len).any(counts), "tail {tail} end {end} len {len}: at {at}");
                    assert_ne!(at + len, tail, "a full ring does not look empty");
                    assert!(ring.used(tail, at + len) >= ring.used(tail, end) + len);
                    // Wherever another one may still write, in front of what counts, behind it or in it.
                    for avoided in RING_AT..RING_AT + 8 {
                        let stretches = [(avoided, 2), (avoided + 1, 2)];
                        let Some(beside) = ring.place(tail, end, len, &stretches) else { continue };
                        assert!(
                            !(beside..beside + len).any(counts),
                            "tail {tail} end {end} len {len}: at {beside}"
                        );
                        assert!(beside + len <= avoided || beside >= avoided + 3, "{beside} meets {avoided}");
                        assert!(beside + len <= ring.size && beside + len != tail);
                        assert!(beside >= at || beside < tail, "not in front of where it would have gone");
                    }
                }
            }
        }
    }

    #[test]
    fn what_lies_elsewhere_is_in_nobodys_way() {
        let ring = Ring { size: RING_AT + 10 };
        assert_eq!(ring.place(RING_AT, RING_AT + 2, 3, &[(RING_AT + 5, 2)]), Some(RING_AT + 2));
        assert_eq!(ring.place(RING_AT, RING_AT + 2, 4, &[(RING_AT + 5, 1)]), Some(RING_AT + 6));
        assert_eq!(ring.place(RING_AT, RING_AT + 2, 5, &[(RING_AT + 5, 1)]), None);
        assert_eq!(
            ring.place(RING_AT + 7, RING_AT + 8, 3, &[(RING_AT, 2)]),
            Some(RING_AT + 2),
            "behind the lap's begin"
        );
    }
}
