//! Writes that are not announced, because nobody has entered their file: what keeps a file that somebody reads
//! through the cache and a silent writer of it apart.
//!
//! Every file, entered or not, belongs to a *cell*, by a hash of device and inode.
//!
//! ```text
//!  63    48 47                24 23                  0
//! ┌────────┬────────────────────┬─────────────────────┐
//! │ zero   │ version            │ writers             │
//! └────────┴────────────────────┴─────────────────────┘
//! ```
//!
//! Whoever writes a file that is not entered, as far as he knows, counts himself among the cell's writers meanwhile. Whoever
//! enters a file raises the version, and serves it only if no writer is counted then. Both are changes of one word:
//! either the writer sees the version, looks for his file among those that were entered and announces his writes from
//! now on; or whoever enters it sees the writer. It does not matter since when the writer has the file open, whether he
//! inherited it, or whether a daemon lives that could be asked.
//!
//! A writer that is killed stays counted, and so does one that *pinned* the cell because he writes at times of his
//! own: no file of the cell is entered until the zone is recovered, or is [calm](Cache::calm).

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use seawall_media::mix;

use super::format::CELL_BYTES;
use super::word::FileWord;
use super::{Cache, CachedFile, FileRecord};

const WRITERS_MAX: u64 = (1 << 24) - 1;
/// So many that nobody has to be counted any more: there is room left for those that come and go.
const PINNED_MAX: u64 = 1 << 23;
const VERSION_AT: u32 = 24;
const VERSION_MAX: u32 = (1 << 24) - 1;

/// A file's cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(u16);

impl Cell {
    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The cell with this number.
    pub const fn from_number(number: u16) -> Self {
        Self(number)
    }
}

/// How many files of a cell had been entered when it was looked at; 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(u32);

impl Version {
    /// As a number, for whoever remembers it.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The version with this number.
    pub const fn from_number(number: u32) -> Self {
        Self(number & VERSION_MAX)
    }

    const fn of(word: u64) -> Self {
        Self((word >> VERSION_AT) as u32 & VERSION_MAX)
    }
}

impl Cache {
    /// The cell of the file with this device and inode.
    #[inline]
    pub fn cell(&self, dev: u64, inode: u64) -> Cell {
        let hash = mix(inode ^ dev.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15);
        Cell((((hash >> 32) * u64::from(self.layout.cells())) >> 32) as u16)
    }

    /// A write of a file of this cell is about to begin that is not announced: its file was not entered when the cell
    /// had this version. Must be [ended](Self::end_unannounced).
    ///
    /// # Errors
    /// The version is another one: some file was entered since, perhaps this one. Nothing has begun. Ask
    /// [`find`](Self::find), and if it is not there come back with the version returned here.
    #[inline]
    pub fn begin_unannounced(&self, cell: Cell, known: Version) -> Result<(), Version> {
        let now = Version::of(self.cell_word(cell).fetch_add(1, SeqCst));
        // At the last version nothing is counted any more: from then on a writer always has to look.
        if now == known && now.0 != VERSION_MAX {
            return Ok(());
        }
        self.end_unannounced(cell);
        Err(now)
    }

    /// What began has ended.
    #[inline]
    pub fn end_unannounced(&self, cell: Cell) {
        self.cell_word(cell).fetch_sub(1, SeqCst);
    }

    /// A file of this cell is written from now on at times that nobody sees. After this [`find`](Self::find) it, and if
    /// it is there [distrust](Self::distrust) it.
    ///
    /// True if that can be [ended](Self::end_unannounced); else there were enough already, and it lasts.
    pub fn pin(&self, cell: Cell) -> bool {
        let one_more = |word: u64| (word & WRITERS_MAX < PINNED_MAX).then_some(word + 1);
        self.cell_word(cell).fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    /// The entry of a file, served or not, by device and inode. It may be one that had them before: to announce a write
    /// to it is right all the same, to read through it is not.
    pub fn find(&self, dev: u64, inode: u64) -> Option<CachedFile> {
        let slots = if dev == 0 { 0..0 } else { 0..self.layout.files };
        slots.into_iter().find_map(|slot| {
            let at = self.file_at(slot)?;
            let word = FileWord(self.region.u64(at).load(SeqCst));
            let is = |part: usize, value: u64| self.region.u64(at + part).load(Relaxed) == value;
            let is_it = word.has(FileWord::USED) && is(FileRecord::DEV, dev) && is(FileRecord::INODE, inode);
            is_it.then_some(CachedFile { slot, tenant: word.tenant() })
        })
    }

    /// What the database uses a file for, as the daemon said when it was entered.
    pub fn class(&self, file: CachedFile) -> u32 {
        self.file_at(file.slot).map_or(0, |at| self.region.u32(at + FileRecord::CLASS).load(Relaxed))
    }

    /// True while `file` is what it was when it was found.
    #[inline]
    pub fn knows(&self, file: CachedFile) -> bool {
        self.file(file).has(FileWord::USED)
    }

    /// Nobody is writing unannounced, by the word of somebody who knows: no process that has the zone is left, but for
    /// the caller.
    #[cfg(feature = "std")]
    pub fn calm(&self) {
        let at = self.layout.cells_at();
        for cell in 0..self.layout.cells() as usize {
            self.region.u64(at + cell * CELL_BYTES).fetch_and(!WRITERS_MAX, SeqCst);
        }
    }

    /// One more file of this cell is entered.
    #[cfg(feature = "std")]
    pub(super) fn raise(&self, cell: Cell) {
        let next = |word: u64| (Version::of(word).0 < VERSION_MAX).then(|| word + (1 << VERSION_AT));
        let _ = self.cell_word(cell).fetch_update(SeqCst, SeqCst, next);
    }

    /// True if nobody writes a file of this cell unannounced.
    #[cfg(feature = "std")]
    pub(super) fn is_cell_quiet(&self, cell: Cell) -> bool {
        self.cell_word(cell).load(SeqCst) & WRITERS_MAX == 0
    }

    #[inline]
    fn cell_word(&self, cell: Cell) -> &AtomicU64 {
        self.region.u64(self.layout.cells_at() + cell.0 as usize * CELL_BYTES)
    }
}
