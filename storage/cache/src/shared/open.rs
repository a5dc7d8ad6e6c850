//! A zone is made, found again, and closed. By one process that has it to itself; [`join`](super::join) is for all others.
//!
//! Finding again believes nothing: the header and, after a clean close, the whole index are checksummed; every entry
//! must be in the set of its block, of a file that is known under that incarnation, and, after a machine stopped
//! without warning, from before the last sync of its file. What is not is dropped. Whether a file is still the one
//! that was noted is asked when somebody [enters](super::register) it; until then nothing of it is served. Blocks are
//! checksummed when they are read.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::collections::HashMap;

use seawall_media::{LINE, Region, Striped, fence};
use zerocopy::IntoBytes;

use super::format::{FileRecord, Header};
use super::join::{OpenError, fits};
use super::state::{BOOT, CLEAN};
use super::sync::is_synced;
use super::view::Set;
use super::word::{FileWord, SetWord};
use super::{Cache, Layout};
use crate::key::Block;
use crate::set::WAYS;

/// What was found in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Blocks that are there, and are served if their file is unchanged.
    pub kept: u64,
    /// Blocks that were dropped: of a file that changed, half made, or not known to be on the disk.
    pub dropped: u64,
    /// The machine stopped without a clean close.
    pub was_cut: bool,
}

/// What is known of the files when the index is looked through.
struct Known {
    /// The places that a set has, as bits.
    places: u16,
    /// By incarnation: the slot, and the newest sync that has ended.
    files: HashMap<u32, (u32, u32)>,
    /// Only blocks of before that sync.
    was_cut: bool,
}

impl Cache {
    /// Makes an empty zone, over whatever is there, and joins it.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] if the region is too short for the layout.
    pub fn create(
        region: Region,
        layout: Layout,
        uuid: [u8; 16],
        boot: [u8; 16],
        is_durable: bool,
    ) -> Result<Self, OpenError> {
        fits(layout, &region)?;
        let cache = Self { region, layout, is_durable, read: None };
        // The header last: without it there is no zone.
        cache.region.zero(0, layout.index_bytes());
        cache.flush(0, layout.index_bytes());
        cache.settle();
        cache.next_incarnation().store(1, SeqCst);
        cache.set_boot(boot);
        cache.flush(0, Header::BYTES);
        cache.settle();
        cache.region.store(0, Header::new(layout, uuid, is_durable).as_bytes());
        fence();
        Ok(cache)
    }

    /// Finds a zone again that nobody uses, in a boot that may be another one.
    ///
    /// # Errors
    /// [`OpenError`]. The zone is then to be made anew.
    pub fn recover(region: Region, boot: [u8; 16]) -> Result<(Self, Recovered), OpenError> {
        let cache = Self::join(region)?;
        let has_restarted = cache.boot() != boot;
        let was_clean = cache.was_closed()?;
        // An index that was brought back from a disk was saved when it was closed.
        let is_saved = was_clean && cache.layout.is_on_disk();
        if has_restarted && !cache.is_durable && !is_saved {
            return Err(OpenError::Lost);
        }
        cache.region.u64(CLEAN).store(0, SeqCst);
        cache.flush(CLEAN, 8);
        cache.settle();
        let was_cut = has_restarted && !was_clean;
        let known = Known { places: cache.places(), files: cache.recover_files(was_cut)?, was_cut };
        cache.watcher().store(0, SeqCst);
        let mut recovered = Recovered { was_cut, ..Recovered::default() };
        cache.sets().for_each(|set| recover_set(set, &known, &mut recovered));
        cache.entries().for_each(|(_, entry)| entry.release());
        cache.unstage_all();
        cache.calm();
        // What was left out of the index must not come back by the next power cut. The new boot after that.
        cache.flush(0, cache.layout.index_bytes());
        cache.settle();
        cache.set_boot(boot);
        cache.flush(BOOT, 16);
        cache.settle();
        Ok((cache, recovered))
    }

    /// Closes a zone that nobody uses any more. Every file of it was synced since it was written last, and its
    /// [identity noted](Cache::leave). Nobody uses it afterwards, this process neither.
    pub fn close(&self) {
        self.flush(0, self.layout.index_bytes());
        self.settle();
        self.region.u64(CLEAN).store(1 << 32 | u64::from(self.index_sum()), SeqCst);
        self.flush(CLEAN, 8);
        self.settle();
    }

    fn was_closed(&self) -> Result<bool, OpenError> {
        match self.region.u64(CLEAN).load(SeqCst) {
            0 => Ok(false),
            clean if clean == 1 << 32 | u64::from(self.index_sum()) => Ok(true),
            _ => Err(OpenError::Damaged("the checksum of its index is wrong")),
        }
    }

    /// The checksum of files and sets.
    fn index_sum(&self) -> u32 {
        let (mut sum, mut chunk) = (Striped::new(), [0; LINE]);
        for at in (self.layout.files_at()..self.layout.blocks_at()).step_by(chunk.len()) {
            self.region.read(at, &mut chunk);
            sum.update(&chunk);
        }
        sum.finish()
    }

    /// No file is served, and no change is under way. By incarnation, the files that are known.
    ///
    /// After a cut only those that were served: any other may have been written unannounced, and its times, which would
    /// show that, are made durable later than its content.
    fn recover_files(&self, was_cut: bool) -> Result<HashMap<u32, (u32, u32)>, OpenError> {
        let mut files = HashMap::new();
        let next = self.next_incarnation().load(SeqCst);
        for slot in 0..self.layout.files {
            let record = self.record(slot);
            let word = FileWord(record.word);
            let was_watched = !was_cut || word.has(FileWord::SERVED);
            let is_whole = record.is_whole() && record.is_sealed();
            let is_known = word.has(FileWord::USED) && is_whole && was_watched;
            // One that was looked at when the daemon died is compared with what was noted, as every other.
            let judged = FileWord::SUSPENDED | FileWord::PASSED;
            let known = || word.reset().flagged(FileWord::SERVED, false).flagged(judged, false);
            let word = if is_known { known() } else { word.vacated() };
            if let Some(at) = self.file_at(slot) {
                self.region.u64(at).store(word.0, SeqCst);
                self.region.u64(at + FileRecord::DEV).store(0, SeqCst);
                self.seal(slot);
            }
            if is_known && u64::from(word.incarnation()) >= next {
                return Err(OpenError::Damaged("a file's incarnation is still to come"));
            }
            if is_known && files.insert(word.incarnation(), (slot, record.done)).is_some() {
                return Err(OpenError::Damaged("two files have one incarnation"));
            }
        }
        Ok(files)
    }

    /// A file's entry as it is now; a zeroed one for a slot that does not exist.
    pub(super) fn record(&self, slot: u32) -> FileRecord {
        let mut record = FileRecord::nobody();
        if let Some(at) = self.file_at(slot) {
            self.region.read(at, record.as_mut_bytes());
        }
        record
    }

    fn boot(&self) -> [u8; 16] {
        let mut boot = [0; 16];
        self.region.read(BOOT, &mut boot);
        boot
    }

    fn set_boot(&self, boot: [u8; 16]) {
        self.region.copy_in(BOOT, &boot);
    }
}

/// No write is under way, and only what can be served is valid.
fn recover_set(set: Set<'_>, known: &Known, recovered: &mut Recovered) {
    let word = set.load();
    let kept = set.which(word, |way| is_good(set, way, known));
    for way in 0..WAYS {
        let tag = set.load_tag(way);
        if !tag.is_filled() {
            set.tag(way).store(tag.given_up().0, Relaxed);
        }
    }
    set.word().store(SetWord(word.0).only(kept).reset().0, SeqCst);
    recovered.kept += u64::from(kept.count_ones());
    recovered.dropped += u64::from((word.valid() & !kept).count_ones());
}

fn is_good(set: Set<'_>, way: usize, known: &Known) -> bool {
    let (key, tag) = (set.key(way).load(Relaxed), set.load_tag(way));
    let Some((slot, done)) = known.files.get(&((key >> 32) as u32)) else { return false };
    let block = Block { file: *slot, number: key as u32 };
    let is_place = known.places >> way & 1 == 1;
    is_place && tag.is_filled() && set.is_of(block) && (!known.was_cut || is_synced(tag.stamp(), *done))
}
