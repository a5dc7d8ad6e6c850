//! What a log's writer and its keepers send each other: frames of one line, some with bytes behind them.
//!
//! A keeper holds a copy of a log on another host. One *writer* at a time may change it, by its *epoch*; what the copy is
//! up to date with is its *position*. The rules are the keeper's (`seawall_keeper::copy`); this is only what travels.
//!
//! | from the writer | body | answer |
//! |---|---|---|
//! | `Hello` | a [`Greeting`] | `Welcome`, with a [`State`] and the log's keepers and the writer's host behind it |
//! | `Promise` | the log's keepers and the writer's host, as JSON; nothing: as they were | `Promised`, with the same as a `Welcome` |
//! | `Adopt` | a [`Position`]: where the copy must be | `Ack` |
//! | `Batch` | a batch of a journal, as `seawall_media::block` makes them | `Ack` |
//! | `Begin` | | `Ack`: a second image is made, of zeros; batches go there as well |
//! | `Piece` | an offset in the image, and bytes | none |
//! | `Complete` | | `Ack`: the second image is the copy |
//! | `Ask` | | `Ack`: where the copy is now |
//! | `Fetch` | | any number of `Piece`, then `Complete`; without a promise of a copy that may change meanwhile |
//! | `Forget` | | `Ack`: the log is gone |
//! | `Report` | | `Reported`: all that it keeps, as JSON |
//!
//! Any of them may be answered by `Refused`, with a [`Refusal`] in `code` and a text behind it; after that the connection
//! ends. Numbers are little endian. Everything here came from somewhere else: it may say anything.

mod acknowledged;
mod kind;

use seawall_media::{LINE, crc32c};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub use acknowledged::{acknowledged, needs_witnesses};
pub use kind::{Kind, Refusal};

/// Version of everything in this module. A writer and a keeper that differ do not talk.
pub const KEEPER_VERSION: u32 = 2;

/// The most bytes behind a frame: a journal's longest batch.
pub const BODY_MAX: u32 = 1 << 20;

/// No turn and no batch of a log has such a number: there are enough for ever.
pub const NUMBER_MAX: u64 = 1 << 48;

/// The most keepers of a log.
pub const KEEPERS_MAX: usize = 8;

const MAGIC: u32 = u32::from_le_bytes(*b"SWkp");

/// A writer's turn. Of two, the one with the higher counter is newer; the writer's own number makes them differ when two
/// draw the same counter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Epoch {
    /// Grows with each writer.
    pub counter: u64,
    /// Drawn at random by the writer.
    pub writer: u64,
}

/// What a copy is up to date with: the newest batch in it. The batch of a newer epoch is newer, whatever its number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Position {
    /// Whose batch that is.
    pub epoch: Epoch,
    /// Its number; 0: none.
    pub number: u64,
}

/// The first line of everything that travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Frame {
    magic: u32,
    kind: u32,
    /// Bytes behind it.
    pub len: u32,
    /// Of an answer: what else there is to say. A [`Refusal`]; of an `Ack`, [`ack`] flags. In a keeper's file: which use of
    /// the file it is of.
    pub code: u32,
    /// Whose turn it is.
    pub epoch: Epoch,
    /// Of a batch and its answer: its number. Of a piece: where in the image it belongs.
    pub number: u64,
    /// Of a batch: the one that it follows, the newest that counts. Of an `Ack`: up to which the keeper's disk has it.
    pub previous: u64,
    /// The log's UUID, low half.
    pub log: u64,
    /// In a keeper's file, of what is no batch: the checksum of what is behind it.
    body_sum: u32,
    checksum: u32,
}

const _: () = assert!(size_of::<Frame>() == LINE && size_of::<State>() == 3 * LINE);

/// Flags of an `Ack`.
pub mod ack {
    /// The copy is not the writer's yet: a second image is being made, or none was begun. The answer's number says nothing.
    pub const JOINING: u32 = 1;
}

impl Frame {
    /// A frame with nothing behind it.
    pub fn new(kind: Kind, log: u64, epoch: Epoch) -> Self {
        let mut frame = Self::new_zeroed();
        (frame.magic, frame.kind, frame.log, frame.epoch) = (MAGIC, kind as u32, log, epoch);
        frame
    }

    /// The same with these numbers.
    pub fn numbered(mut self, number: u64, previous: u64) -> Self {
        (self.number, self.previous) = (number, previous);
        self
    }

    /// What a witness gets of a batch, which has none of its bytes: its number if the witness's word [is
    /// needed](needs_witnesses), else that of its predecessor, which counts already. A witness that knew of a batch which
    /// does not count would have a takeover wait for a keeper that is not needed. `None`: there is nothing to be known yet.
    pub fn for_witness(self, is_needed: bool) -> Option<Self> {
        let number = if is_needed { self.number } else { self.previous };
        // A witness lacks nothing of a batch that it has not heard of.
        (number > 0).then(|| self.numbered(number, 0).followed_by(0))
    }

    /// The same with so many bytes behind it.
    pub fn followed_by(mut self, len: usize) -> Self {
        self.len = len as u32;
        self
    }

    /// The same with this code.
    pub fn with_code(mut self, code: u32) -> Self {
        self.code = code;
        self
    }

    /// The same with the checksum of what is behind it.
    pub fn with_body_sum(mut self, sum: u32) -> Self {
        self.body_sum = sum;
        self
    }

    /// The line to send.
    pub fn seal(mut self) -> [u8; LINE] {
        self.checksum = self.sum();
        let mut line = [0; LINE];
        line.copy_from_slice(self.as_bytes());
        line
    }

    /// The frame in these bytes, or `None`: after that nothing on the connection can be trusted.
    pub fn parse(line: &[u8; LINE]) -> Option<Self> {
        let frame = Self::read_from_bytes(line).ok()?;
        let valid = frame.magic == MAGIC && frame.checksum == frame.sum() && frame.len <= BODY_MAX;
        (valid && Kind::from_word(frame.kind).is_some()).then_some(frame)
    }

    /// What it is. `None` cannot be in a frame that was [parsed](Self::parse).
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_word(self.kind)
    }

    /// True if a newer turn, and a newer batch, has a number too. A piece has a place instead of a number.
    pub fn makes_sense(&self) -> bool {
        let number = if self.kind() == Some(Kind::Piece) { 0 } else { self.number };
        self.epoch.counter < NUMBER_MAX && number < NUMBER_MAX
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..LINE - 4])
    }
}

/// True if a copy is older than files beside which there is the mark of a host that went on alone in turn `alone`: nothing of
/// it is replayed into them, whoever has it and in which turn. `complete_since` is what the copy says of itself.
pub fn is_older_than_files(complete_since: u64, alone: u64) -> bool {
    complete_since <= alone
}

/// What somebody who connects wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Greeting {
    /// [`KEEPER_VERSION`].
    pub version: u32,
    /// 1: the log is to be made if it is not here.
    pub make: u32,
    /// The log's UUID.
    pub log: [u8; 16],
    /// Bytes of its image, if it is to be made.
    pub image: u64,
    /// The keeper that is expected here; zeros: whoever it is.
    pub keeper: [u8; 16],
}

/// What a keeper has of a log, and who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct State {
    /// Its UUID, as long as its directory lives.
    pub keeper: [u8; 16],
    /// Nobody older than this changes the copy.
    pub promised: Epoch,
    /// Where the copy is.
    pub position: Position,
    /// Up to which batch of that epoch its own disk has it.
    pub hardened: u64,
    /// Bytes of the image.
    pub image: u64,
    /// [`state`] flags.
    pub flags: u32,
    /// [`KEEPER_VERSION`].
    pub version: u32,
    /// The host's name, cut short, zeros behind.
    pub host: [u8; 64],
    reserved: [u8; 48],
}

/// Flags of a [`State`].
pub mod state {
    /// It has everything that it ever confirmed: it may vote.
    pub const KEPT: u32 = 1;
    /// It has no data, only numbers.
    pub const WITNESS: u32 = 2;
    /// It confirms only what its own disk has.
    pub const AFFIRM: u32 = 4;
}

impl State {
    /// True if it has everything that it ever confirmed.
    pub fn is_kept(&self) -> bool {
        self.flags & state::KEPT != 0
    }

    /// True if it has numbers only.
    pub fn is_witness(&self) -> bool {
        self.flags & state::WITNESS != 0
    }

    /// True if a newer turn, and a newer batch, has a number too: only rubbish and malice come that far.
    pub fn makes_sense(&self) -> bool {
        let numbers =
            [self.promised.counter, self.position.epoch.counter, self.position.number, self.hardened];
        numbers.iter().all(|number| *number < NUMBER_MAX)
    }

    /// True if it confirms only what its disk has.
    pub fn affirms(&self) -> bool {
        self.flags & state::AFFIRM != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_sent_and_a_changed_one_is_not() {
        let epoch = Epoch { counter: 3, writer: 9 };
        let frame = Frame::new(Kind::Batch, 7, epoch).numbered(12, 11).followed_by(4096);
        let sealed = frame.seal();
        let read = Frame::parse(&sealed).expect("valid");
        assert_eq!((read.kind(), read.number, read.previous, read.len), (Some(Kind::Batch), 12, 11, 4096));
        for byte in 0..LINE {
            let mut changed = sealed;
            changed[byte] ^= 1;
            assert_eq!(Frame::parse(&changed), None, "byte {byte}");
        }
        assert_eq!(Frame::parse(&frame.followed_by(BODY_MAX as usize + 1).seal()), None);
    }

    #[test]
    fn a_newer_epoch_is_newer_whatever_the_number() {
        let at = |counter, number| Position { epoch: Epoch { counter, writer: 0 }, number };
        assert!(at(2, 1) > at(1, 9) && at(2, 2) > at(2, 1));
    }
}
