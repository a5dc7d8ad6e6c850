//! A device that lies: it confirmed writes, and a power cut takes some of the latest ones from it, or sectors of them.
//!
//! What is judged: an image that is read from what is left was whole once, after the batch that the reader says is the
//! last one; and where a batch or an anchor is whole, nothing that was there before it is missed without a word. That
//! commits are lost is the device's doing: nobody could tell the newest ones from writes that were under way.
//!
//! Of a mirrored log one device lies, and the other one is whole: then nothing is lost, in a cut that is only looked at
//! and in one after which the log is opened and gone on with.
//!
//! Not simulated: a mirrored log both of whose devices lie, and what recovery would make of an older image.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::FileExt;

use seawall_core::pool::block::mirror::Verdict;
use seawall_media::block::BatchHeader;

use super::Block;
use crate::Rng;
use crate::pending::Units;
use crate::sectors::SECTOR;

/// Writes that such a device may not have yet.
const LATEST: usize = 6;
/// Batches whose images are remembered: older ones are not what is left of such a device.
const REMEMBERED: usize = 2 * LATEST;

type Image = BTreeMap<u32, Units>;

struct Done {
    at: u64,
    old: Vec<u8>,
    new: Vec<u8>,
    /// The newest batch that it vouches for: the last one that counted when it was done, or, of a batch by a leader
    /// that had been replaced, the one that it names. `None` of one that failed: what is left of that vouches for nothing.
    last: Option<u64>,
}

/// What came of a lie.
pub enum Lie {
    /// The reader says that something is missed.
    Found,
    /// It takes what is left for all there was; the error says why it must not.
    Believed(Result<(), String>),
}

/// What a device did lately.
pub struct Latest {
    /// Half of the pool's UUID, by which a batch is known.
    pool: u64,
    writes: RefCell<VecDeque<Done>>,
}

/// Batches, and the image of each when it was the last one.
#[derive(Default)]
pub struct History {
    images: RefCell<VecDeque<(u64, Image)>>,
}

impl Latest {
    /// Of a device of this pool.
    pub fn of(pool: u64) -> Self {
        Self { pool, writes: RefCell::default() }
    }

    /// A write is about to be put over what was there.
    pub fn note(&self, at: u64, old: Vec<u8>, new: &[u8]) {
        let mut writes = self.writes.borrow_mut();
        writes.push_back(Done { at, old, new: new.to_vec(), last: None });
        if writes.len() > LATEST {
            writes.pop_front();
        }
    }

    /// The last batch that the device holds now.
    pub fn settle(&self, last: u64, failed: bool) {
        if let Some(write) = self.writes.borrow_mut().back_mut() {
            let batch = BatchHeader::parse(&write.new, write.at, self.pool);
            let late = batch.filter(|batch| batch.number != last).map(|batch| batch.previous);
            write.last = (!failed).then_some(late.unwrap_or(last));
        }
    }

    /// The power was off: what is there is there.
    pub fn forget(&self) {
        self.writes.borrow_mut().clear();
    }

    /// What is left if some of the latest writes are lost. Returns the newest batch that what is whole vouches for.
    fn lose(&self, rng: &Rng, device: &mut [u8]) -> Option<u64> {
        let writes = self.writes.borrow();
        let place = |write: &Done| write.at as usize..write.at as usize + write.new.len();
        for write in writes.iter().rev() {
            device[place(write)].copy_from_slice(&write.old);
        }
        for write in writes.iter().filter(|_| !rng.one_in(4)) {
            let torn = rng.one_in(4);
            for (old, new) in device[place(write)].chunks_mut(SECTOR).zip(write.new.chunks(SECTOR)) {
                if !torn || rng.one_in(2) {
                    old.copy_from_slice(new);
                }
            }
        }
        let whole = writes.iter().filter(|write| device[place(write)] == write.new);
        whole.filter_map(|write| write.last).max()
    }
}

impl History {
    /// The image that the device holds now, and its last batch.
    pub fn settle(&self, last: u64, image: &Image) {
        let mut images = self.images.borrow_mut();
        if images.back().is_none_or(|(known, _)| *known != last) {
            images.push_back((last, image.clone()));
        }
        if images.len() > REMEMBERED {
            images.pop_front();
        }
    }

    /// True if this is not what the image was after a batch.
    fn never_was(&self, last: u64, image: &Image) -> bool {
        self.images.borrow().iter().any(|(known, was)| *known == last && !are_one(was, image))
    }
}

/// True if two images are the same but for lines that nobody needs: read from an older anchor an image has those of
/// segments that were free when the newer one was written.
fn are_one(a: &Image, b: &Image) -> bool {
    let (less, more) = if a.len() < b.len() { (a, b) } else { (b, a) };
    less.iter().all(|(line, units)| more.get(line) == Some(units))
}

impl Block {
    /// One power cut here and now, of a device that lied.
    pub fn lie(&self, rng: &Rng) -> Lie {
        let [mut device] = self.contents(&[]).try_into().expect("one device");
        let vouched = self.devices[0].latest.lose(rng, &mut device);
        let Ok((last, image)) = self.lines_of(&device) else { return Lie::Found };
        if let Some(vouched) = vouched.filter(|vouched| *vouched > last) {
            return Lie::Believed(Err(format!(
                "a device that lied had batch {vouched}, and is believed that {last} is the last one"
            )));
        }
        if self.history.never_was(last, &image) {
            return Lie::Believed(Err(format!(
                "a device that lied is believed: what is read up to batch {last} never was"
            )));
        }
        Lie::Believed(Ok(()))
    }

    /// Which copy of a mirrored log lies at this power cut, if one does. The other one is whole: what a device that is
    /// left alone loses is lost.
    pub fn liar(&self, rng: &Rng) -> Option<usize> {
        if self.devices.len() != 2 || !rng.one_in(8) {
            return None;
        }
        let liar = rng.below(2) as usize;
        self.is_whole(1 - liar).then_some(liar)
    }

    fn is_whole(&self, copy: usize) -> bool {
        !self.devices[copy].gone.get() && ![self.doomed.get(), self.rebuilt.get()].contains(&Some(copy))
    }

    /// What is left of the copy that lied. `None` if it now says, of a time that is over, that it is alone, as the other
    /// one does: the pool is refused then, and nobody is misled.
    pub fn believable(&self, rng: &Rng, liar: usize, contents: &[Vec<u8>]) -> Option<Vec<u8>> {
        let mut contents = contents.to_vec();
        self.devices[liar].latest.lose(rng, &mut contents[liar]);
        let is_split = self.verdict(&contents).1 == Verdict::Split;
        (!is_split).then(|| contents.swap_remove(liar))
    }

    /// This is what is left of a copy that lied.
    pub fn leave(&self, liar: usize, left: &[u8]) {
        self.devices[liar].journal.write_all_at(left, 0).expect("room");
    }
}
