//! A payload on its way to the medium: any slices in, whole checksummed lines out.

use crate::{LINE, Region, Striped};

/// Copies slices one after the other to a region, padded with zeros to a whole line, and checksums what it
/// copies. Made by [`Region::stream`].
pub struct Stream<'a> {
    region: &'a Region,
    at: usize,
    sum: Striped,
    rest: [u8; LINE],
    rest_len: usize,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at, sum: Striped::new(), rest: [0; LINE], rest_len: 0 }
    }

    /// Takes the next slice.
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.rest_len > 0 {
            let take = bytes.len().min(LINE - self.rest_len);
            self.rest[self.rest_len..self.rest_len + take].copy_from_slice(&bytes[..take]);
            self.rest_len += take;
            bytes = &bytes[take..];
            if self.rest_len < LINE {
                return;
            }
            self.emit_rest();
        }
        let whole = bytes.len() & !(LINE - 1);
        self.region.copy_lines(self.at, &bytes[..whole], &mut self.sum);
        self.at += whole;
        let rest = &bytes[whole..];
        self.rest[..rest.len()].copy_from_slice(rest);
        self.rest_len = rest.len();
    }

    /// Pads and writes what is left. Returns the payload's checksum; nothing is persisted before the next
    /// [`fence`](crate::fence).
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn finish(mut self) -> u32 {
        if self.rest_len > 0 {
            self.rest[self.rest_len..].fill(0);
            self.emit_rest();
        }
        self.sum.finish()
    }

    #[cfg_attr(feature = "sim", track_caller)]
    fn emit_rest(&mut self) {
        let line = self.rest;
        self.region.copy_lines(self.at, &line, &mut self.sum);
        self.at += LINE;
        self.rest_len = 0;
    }
}
