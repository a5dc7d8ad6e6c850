//! Frames on their way to a copy's file.

use seawall_media::{LINE, crc32c};
use seawall_wire::keeper::{Frame, Kind};

/// Frames that a copy took, as its file is to have them.
#[derive(Default)]
pub struct Frames {
    /// Each with a line in front for its frame, which is of a use of the file.
    bytes: Vec<u8>,
    /// Where each begins, and its frame.
    heads: Vec<(usize, Frame)>,
    /// Some of them are no batches.
    pub(super) has_others: bool,
}

impl Frames {
    /// One more, and what was behind it.
    pub fn push(&mut self, frame: &Frame, body: &[u8]) {
        self.heads.push((self.bytes.len(), with_sum(*frame, body).followed_by(body.len())));
        self.bytes.extend_from_slice(&[0; LINE]);
        self.bytes.extend_from_slice(body);
        self.has_others |= frame.kind() != Some(Kind::Batch);
    }

    /// Bytes of all of them.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// There are none any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.heads.clear();
        self.has_others = false;
    }

    /// All of them, for this use of a file.
    pub(super) fn of_use(&mut self, number: u32) -> &[u8] {
        for (at, frame) in &self.heads {
            self.bytes[*at..*at + LINE].copy_from_slice(&frame.with_code(number).seal());
        }
        &self.bytes
    }
}

/// What a file has of a body that is no batch: its checksum, to tell it from what lay there before.
pub(super) fn with_sum(frame: Frame, body: &[u8]) -> Frame {
    if frame.kind() == Some(Kind::Batch) { frame } else { frame.with_body_sum(crc32c(body)) }
}
