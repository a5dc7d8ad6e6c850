//! Intake: a call's data becomes something bounded that the log can hold.
//!
//! Input: the caller's slices. Output: how long they are and how much of them must be stored, since runs of zeros at
//! the end are logged as a length (PostgreSQL zeroes every WAL segment once, and WAL pages are mostly zeros behind
//! their last record). Bytes that a write repeats are logged again. PostgreSQL writes a WAL page anew for each commit
//! in it, and logging only the new bytes would take a tenth of the space. But the page cache writes whole pages back,
//! and a disk that garbles the page it is writing would garble bytes whose older record is retired.
//!
//! Not handled here: whether a call has to be logged at all.

/// The measure of a write's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Bytes the call writes.
    pub length: u64,
    /// Bytes up to and including the last one that is not zero.
    pub stored: u64,
}

impl Intake {
    /// No data.
    pub const NONE: Self = Self { length: 0, stored: 0 };
}

/// Measures the slices.
#[inline]
pub fn measure<'d>(data: impl Iterator<Item = &'d [u8]>) -> Intake {
    let mut intake = Intake { length: 0, stored: 0 };
    for slice in data {
        let kept = without_trailing_zeros(slice);
        if kept > 0 {
            intake.stored = intake.length + kept as u64;
        }
        intake.length += slice.len() as u64;
    }
    intake
}

/// Length of `bytes` without the zeros at its end. Looks at whole 64-byte groups first: four loads and one
/// branch for a group.
#[inline]
fn without_trailing_zeros(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while end >= 64 && is_zero(&bytes[end - 64..end]) {
        end -= 64;
    }
    let from = end.saturating_sub(64);
    bytes[from..end].iter().rposition(|byte| *byte != 0).map_or(from, |last| from + last + 1)
}

#[inline]
fn is_zero(group: &[u8]) -> bool {
    let words = group.chunks_exact(8).map(|word| word.try_into().map_or(1, u64::from_ne_bytes));
    words.fold(0, |all, word| all | word) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_but_zeros_is_left_out(slices in prop::collection::vec(
            prop::collection::vec(prop_oneof![9 => Just(0u8), 1 => any::<u8>()], 0..300), 0..6)) {
            let intake = measure(slices.iter().map(Vec::as_slice));
            let all = slices.concat();
            prop_assert_eq!(intake.length as usize, all.len());
            let expected = all.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
            prop_assert_eq!(intake.stored as usize, expected);
        }
    }
}
