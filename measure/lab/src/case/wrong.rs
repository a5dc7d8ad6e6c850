//! A mistake in a case's text.

use std::ops::Range;

/// Something wrong at a place of the text.
pub struct Wrong {
    pub at: Range<usize>,
    pub what: String,
}
