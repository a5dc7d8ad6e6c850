//! Memory as O_DIRECT wants it.

use std::ops::{Deref, DerefMut};

/// What O_DIRECT wants memory, offsets and lengths aligned to, at most.
pub(super) const ALIGNMENT: usize = 4096;

/// Zeros at first, at an aligned address.
pub(super) struct Aligned {
    bytes: Vec<u8>,
    skip: usize,
    len: usize,
}

impl Aligned {
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGNMENT];
        let skip = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { bytes, skip, len }
    }
}

impl Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.skip..self.skip + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip..self.skip + self.len]
    }
}
