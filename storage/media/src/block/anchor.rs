//! The anchor: what this journal is, and where reading begins. Two copies; the valid newer one counts.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::crc32c;

/// Bytes of one copy: no device tears less than a sector, and no copy shares one with the other.
pub const ANCHOR_BYTES: usize = 4096;
/// Where the ring of batches begins: behind both copies.
pub const RING_AT: u64 = 2 * ANCHOR_BYTES as u64;

/// How a journal begins.
pub const ANCHOR_MAGIC: [u8; 8] = *b"SEAWALLJ";
const VERSION: u32 = 7;
/// Of a copy of a mirrored journal: a program that knows nothing of the other copy must not write it.
const VERSION_MIRRORED: u32 = 8;

/// What one copy of a mirrored journal says of itself, as it lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MirrorBytes {
    /// 1 or 2; 0 of a journal that is not mirrored.
    copy: u8,
    state: u8,
    epoch: u16,
}

/// How a copy of a mirrored journal stands to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MirrorState {
    /// What was acknowledged is on both.
    Both = 0,
    /// The other one was lost: what was acknowledged since is here alone.
    Alone = 1,
    /// It is being made from the other one, and must not be believed.
    Unfinished = 2,
}

/// What one copy of a mirrored journal says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Which of the two it is, 0 or 1.
    pub copy: usize,
    /// How it stands to the other one.
    pub state: MirrorState,
    /// Counts changes of the mirror's members.
    pub epoch: u16,
}

/// One copy's content; zeros follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Anchor {
    magic: [u8; 8],
    version: u32,
    /// Bytes of a block: every batch begins at a multiple of it.
    pub block: u32,
    /// The pool's UUID.
    pub uuid: [u8; 16],
    /// Bytes of the journal, anchors included: defeats truncation.
    pub size: u64,
    /// Bytes of the image.
    pub image: u64,
    /// Counts writes of the anchor; its lowest bit chooses the copy.
    pub sequence: u64,
    /// Where the oldest batch begins that still counts.
    pub tail: u64,
    /// What that batch names as its predecessor: all up to it are obsolete.
    pub before: u64,
    /// The last batch that the device had confirmed when this was written. One that lacks it now lied.
    pub last: u64,
    /// 0: in use. Otherwise the log was closed behind `last`: no batch follows it, and no attempt at one has a number above
    /// this.
    pub closed: u64,
    mirror: MirrorBytes,
    /// CRC-32C of all bytes before it.
    checksum: u32,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Anchor>() == 96 && offset_of!(Anchor, uuid) == 16 && offset_of!(Anchor, size) == 32);
    assert!(offset_of!(Anchor, sequence) == 48 && offset_of!(Anchor, tail) == 56);
    assert!(
        offset_of!(Anchor, before) == 64
            && offset_of!(Anchor, last) == 72
            && offset_of!(Anchor, closed) == 80
            && offset_of!(Anchor, checksum) == 92
    );
};

/// Why no anchor could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorError {
    /// Neither copy begins like a journal.
    NotAJournal,
    /// A journal of another format version.
    Version(u32),
    /// Both copies are damaged.
    Damaged,
    /// Its numbers contradict each other or the device's length.
    Geometry,
}

impl Anchor {
    /// The first anchor of an empty journal. `size` and `block` must fit together (see [`Anchor::is_sane`]).
    pub fn new(uuid: [u8; 16], size: u64, image: u64, block: u32) -> Self {
        let mut anchor = Self::new_zeroed();
        (anchor.magic, anchor.version, anchor.block) = (ANCHOR_MAGIC, VERSION, block);
        (anchor.uuid, anchor.size, anchor.image) = (uuid, size, image);
        anchor.tail = RING_AT;
        anchor
    }

    /// What it says of itself as one of two copies; `None` if the journal is not mirrored.
    pub fn mirror(&self) -> Option<Mirror> {
        let MirrorBytes { copy, state, epoch } = self.mirror;
        let state = match state {
            0 => MirrorState::Both,
            1 => MirrorState::Alone,
            _ => MirrorState::Unfinished,
        };
        (copy != 0).then(|| Mirror { copy: usize::from(copy) - 1, state, epoch })
    }

    /// The same anchor of this copy of a mirrored journal, or of one that is not mirrored. The copies of a mirrored one are
    /// compared at each start, all of them, so that nothing is gained by saying that it was closed.
    pub fn with_mirror(mut self, mirror: Option<Mirror>) -> Self {
        self.closed = if mirror.is_some() { 0 } else { self.closed };
        let none = MirrorBytes { copy: 0, state: 0, epoch: 0 };
        self.version = if mirror.is_some() { VERSION_MIRRORED } else { VERSION };
        self.mirror = mirror.map_or(none, |m| MirrorBytes {
            copy: m.copy as u8 + 1,
            state: m.state as u8,
            epoch: m.epoch,
        });
        self
    }

    /// The same anchor of a journal that is closed, behind whatever has a number up to this one.
    pub fn closed(self, highest: u64) -> Self {
        Self { closed: highest, ..self }
    }

    /// Where the copy with this sequence lies.
    pub fn place(sequence: u64) -> u64 {
        sequence % 2 * ANCHOR_BYTES as u64
    }

    /// The bytes of the copy, sealed.
    pub fn seal(mut self) -> [u8; ANCHOR_BYTES] {
        self.checksum = self.sum();
        let mut page = [0; ANCHOR_BYTES];
        page[..size_of::<Self>()].copy_from_slice(self.as_bytes());
        page
    }

    /// The valid newer one of two copies, for a journal of `len` bytes.
    ///
    /// # Errors
    /// [`AnchorError`]. One damaged copy is an update that a crash interrupted, not an error.
    pub fn choose(copies: [&[u8]; 2], len: u64) -> Result<Self, AnchorError> {
        let found = [0, 1].map(|i| Self::parse(copies[i], i as u64));
        let newest = found.iter().filter_map(|copy| copy.ok()).max_by_key(|anchor| anchor.sequence);
        let Some(anchor) = newest else {
            let [a, b] = found.map(|copy| copy.err().unwrap_or(AnchorError::Damaged));
            return Err(if a == AnchorError::NotAJournal { b } else { a });
        };
        if anchor.is_sane() && anchor.size <= len { Ok(anchor) } else { Err(AnchorError::Geometry) }
    }

    fn parse(bytes: &[u8], copy: u64) -> Result<Self, AnchorError> {
        let Ok((anchor, _)) = Self::read_from_prefix(bytes) else { return Err(AnchorError::Damaged) };
        match anchor {
            a if a.magic != ANCHOR_MAGIC => Err(AnchorError::NotAJournal),
            a if a.checksum != a.sum() => Err(AnchorError::Damaged),
            // A copy in the other one's place was misdirected.
            a if a.sequence % 2 != copy => Err(AnchorError::Damaged),
            a if a.version != a.version_due() => Err(AnchorError::Version(a.version)),
            a => Ok(a),
        }
    }

    /// True if blocks, ring and tail fit together.
    pub fn is_sane(&self) -> bool {
        let block = u64::from(self.block);
        self.block.is_power_of_two()
            && (512..=65_536).contains(&self.block)
            && RING_AT.is_multiple_of(block)
            && self.size.is_multiple_of(block)
            && self.size > RING_AT + block
            && self.tail.is_multiple_of(block)
            && (RING_AT..self.size).contains(&self.tail)
            && self.image.is_multiple_of(crate::LINE as u64)
            && self.mirror.copy <= 2
    }

    /// The half of the UUID that batches carry.
    pub fn uuid_low(&self) -> u64 {
        u128::from_le_bytes(self.uuid) as u64
    }

    fn version_due(&self) -> u32 {
        if self.mirror.copy == 0 { VERSION } else { VERSION_MIRRORED }
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(sequence: u64) -> Anchor {
        Anchor { sequence, ..Anchor::new([7; 16], 1 << 20, 1 << 19, 4096) }
    }

    #[test]
    fn the_newer_valid_copy_counts() {
        let (old, new) = (anchor(4).seal(), anchor(5).seal());
        let chosen = |a: &[u8], b: &[u8]| Anchor::choose([a, b], 1 << 20).map(|anchor| anchor.sequence);
        assert_eq!(chosen(&old, &new), Ok(5));
        let mut torn = new;
        torn[60] ^= 1;
        assert_eq!(chosen(&old, &torn), Ok(4));
        assert_eq!(chosen(&new, &old), Err(AnchorError::Damaged), "misdirected");
        assert_eq!(chosen(&[0; 4096], &[0; 4096]), Err(AnchorError::NotAJournal));
        assert_eq!(Anchor::choose([&old, &new], 1 << 19), Err(AnchorError::Geometry));
    }

    #[test]
    fn a_copy_of_a_mirror_says_so_and_is_of_another_version() {
        let said = Mirror { copy: 1, state: MirrorState::Alone, epoch: 300 };
        let mirrored = anchor(4).with_mirror(Some(said));
        let read = Anchor::choose([&mirrored.seal(), &[0; 4096]], 1 << 20).expect("an anchor");
        assert_eq!((read.mirror(), read.version), (Some(said), VERSION_MIRRORED));
        assert_eq!(anchor(4).mirror(), None);
        assert_eq!(read.with_mirror(None).seal(), anchor(4).seal());
        let third = anchor(4).with_mirror(Some(Mirror { copy: 2, ..said }));
        assert_eq!(Anchor::choose([&third.seal(), &[0; 4096]], 1 << 20), Err(AnchorError::Geometry));
    }

    #[test]
    fn blocks_larger_than_the_anchors_are_refused() {
        for (block, sane) in [(512, true), (4096, true), (8192, true), (16_384, false), (1000, false)] {
            assert_eq!(Anchor::new([0; 16], 1 << 20, 1 << 19, block).is_sane(), sane, "{block}");
        }
    }
}
