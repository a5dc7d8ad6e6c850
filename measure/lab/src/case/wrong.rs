//! A mistake in a case's text.

use std::ops::{Range, RangeInclusive};

/// Something wrong at a place of the text.
pub struct Wrong {
    pub at: Range<usize>,
    pub what: String,
}

/// Whether something in a case is right.
pub type Checked = Result<(), Wrong>;

/// Whether each number of a table is in its range.
pub fn within(table: &str, numbers: &[(&str, u32, RangeInclusive<u32>)]) -> Checked {
    if numbers.iter().all(|(_, value, range)| range.contains(value)) {
        return Ok(());
    }
    let ranges =
        numbers.iter().map(|(name, _, range)| format!("{name} from {} to {}", range.start(), range.end()));
    Err(Wrong { at: 0..0, what: format!("[{table}]: {}", ranges.collect::<Vec<_>>().join(", ")) })
}
