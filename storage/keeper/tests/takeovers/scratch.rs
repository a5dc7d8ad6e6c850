//! Images of a few lines, and real batches of them.

use seawall_media::block::Draft;
use seawall_media::{LINE, Region};

pub const LOG: u64 = 0x5ea_1091;
/// Lines with commits, which are records of what belongs to the files.
pub const COMMITS: usize = 6;
/// The line that says up to which order they are not live any more, and since which turn the log is complete.
pub const STATE: usize = COMMITS;
pub const LINES: usize = COMMITS + 1;
pub const IMAGE: usize = LINES * LINE;

const BUFFER: usize = 4096;
const TABLE: usize = 32 << 10;

/// A commit: its number in the order of all that its writer knows, and which writer's it is. A line holds the newest one
/// of those that belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    pub order: u64,
    pub by: u64,
}

pub type Image = [Commit; LINES];

/// What files have, in the cache of a host or on a disk.
pub type Files = [Commit; COMMITS];

/// The line [`STATE`].
pub fn state(retired: u64, complete_since: u64) -> Commit {
    Commit { order: retired, by: complete_since }
}

/// The newest of them.
pub fn newest(commits: &[Commit]) -> u64 {
    commits.iter().map(|commit| commit.order).max().unwrap_or(0)
}

pub fn line_of(commit: Commit) -> usize {
    commit.order as usize % COMMITS
}

/// Memory in which batches are made.
pub struct Scratch(Region);

impl Scratch {
    pub fn new() -> Self {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(64 << 10).expect("room");
        Self(Region::map(&file, 64 << 10, false).expect("a mapping"))
    }

    /// A batch with these lines of the image.
    pub fn batch(&self, image: &Image, lines: &[usize], (number, previous): (u64, u64)) -> Vec<u8> {
        let region = &self.0;
        region.copy_in(0, &bytes(image));
        let mut draft = Draft::begin(region, (BUFFER, 16 << 10), (TABLE, 64));
        for line in lines {
            assert!(draft.take(line * LINE, LINE));
        }
        let size = draft.seal(number, previous, 0, LOG, LINE as u32);
        let mut batch = vec![0; size];
        region.read(BUFFER, &mut batch);
        batch
    }
}

pub fn bytes(image: &Image) -> Vec<u8> {
    let line = |commit: &Commit| {
        let mut line = [0; LINE];
        line[..8].copy_from_slice(&commit.order.to_le_bytes());
        line[8..16].copy_from_slice(&commit.by.to_le_bytes());
        line
    };
    image.iter().flat_map(line).collect()
}

pub fn image(bytes: &[u8]) -> Image {
    let mut image = Image::default();
    for (commit, line) in image.iter_mut().zip(bytes.chunks(LINE)) {
        let word = |at: usize| u64::from_le_bytes(line[at..at + 8].try_into().expect("eight bytes"));
        *commit = Commit { order: word(0), by: word(8) };
    }
    image
}
