//! A simulated block device under a journal.
//!
//! A write that is under way is, at a power cut, in any mixture of old, new and garbled sectors on the device; one
//! that was reported durable is there. Each crash image is read back by the production reader. A thread that is killed
//! during a write leaves it done or not begun, as the kernel does.
//!
//! A write fails: some of it is on the device all the same, and its writer gets EIO.
//!
//! A mirrored log has two devices, written one after the other. When a write to one of them fails, all later ones to it
//! fail too; at the next start it is back, as stale as it is, or gone until a later one. Or it is well again before,
//! and the daemon rebuilds it: then nothing but it fails until it is whole.
//!
//! A device that lies: `lies`.
//!
//! Not simulated here: a cut while a copy is made equal at a start (`seawall-core`, tests of the mirror).

mod desk;
mod lies;
pub mod under_way;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use seawall_core::pool::Pool;
use seawall_core::pool::block::mirror::{Verdict, decide};
use seawall_media::block::{ANCHOR_BYTES, Anchor, JournalError, Mirror, read};

use lies::{History, Latest};

pub use lies::Lie;

use crate::Rng;
use crate::image::{Image, units_of};
use crate::pending::{LINE, Units};

/// The device, where, and what.
pub type Written = (usize, u64, Vec<u8>);

/// One device.
struct Device {
    path: PathBuf,
    journal: File,
    /// It was lost when the power went.
    gone: Cell<bool>,
    latest: Latest,
}

impl Device {
    fn open(path: &Path, pool: u64) -> Self {
        let latest = Latest::of(pool);
        Self { path: path.into(), journal: writable(path), gone: Cell::new(false), latest }
    }

    fn away(&self) -> PathBuf {
        self.path.with_extension("pool")
    }
}

fn writable(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("the journal")
}

/// The device, or both of a mirrored log.
pub struct Block {
    devices: Vec<Device>,
    /// The one that fails from now on.
    doomed: Cell<Option<usize>>,
    /// The one that is being rebuilt.
    rebuilt: Cell<Option<usize>>,
    len: u64,
    desk_at: usize,
    /// The write that is under way of each thread: of the leader, and of those who were replaced.
    under_way: RefCell<BTreeMap<usize, Written>>,
    /// The image's lines that are not zero, as the device has them.
    lines: RefCell<BTreeMap<u32, Units>>,
    at_death: RefCell<Option<Vec<u8>>>,
    /// One failed write in this many; 0 for none.
    failures: Cell<u64>,
    /// A write failed since the log was recovered.
    has_failed: Cell<bool>,
    history: History,
}

impl Block {
    /// The device of a pool; none for one in memory.
    pub fn of(pool: &Pool) -> Option<Self> {
        let desk_at = pool.region.journal()?.desk_at();
        let paths = pool.mirror.as_ref().map_or(vec![pool.path.clone()], |mirror| mirror.paths().to_vec());
        let uuid_low = pool.uuid() as u64;
        let devices: Vec<_> = paths.iter().map(|path| Device::open(path, uuid_low)).collect();
        let len = devices[0].journal.metadata().expect("a size").len();
        let block = Self {
            devices,
            doomed: Cell::new(None),
            rebuilt: Cell::new(None),
            len,
            desk_at,
            under_way: RefCell::default(),
            lines: RefCell::default(),
            at_death: RefCell::default(),
            failures: Cell::new(0),
            has_failed: Cell::new(false),
            history: History::default(),
        };
        let lines = block.read().expect("a fresh journal");
        *block.lines.borrow_mut() = lines;
        Some(block)
    }

    /// The image that the log amounts to, as the devices are.
    fn read(&self) -> Result<BTreeMap<u32, Units>, JournalError> {
        let contents = self.contents(&[]);
        if let [device] = self.devices.as_slice() {
            let (last, lines) = self.lines_of(&contents[0])?;
            device.latest.settle(last, self.has_failed());
            self.history.settle(last, &lines);
            return Ok(lines);
        }
        self.read_of(&contents)
    }

    /// The same of devices with this content.
    pub fn read_of(&self, contents: &[Vec<u8>]) -> Result<BTreeMap<u32, Units>, JournalError> {
        let lines = |i: usize| self.lines_of(&contents[i]).map(|(_, lines)| lines);
        if self.devices.len() == 1 {
            return lines(0);
        }
        match self.verdict(contents) {
            (_, Verdict::Compare) => match (self.lines_of(&contents[0]), self.lines_of(&contents[1])) {
                (Ok((a, _)), Ok((b, other))) if b > a => Ok(other),
                (Err(_), Ok((_, other))) => Ok(other),
                (first, _) => first.map(|(_, lines)| lines),
            },
            (this, Verdict::This | Verdict::Alone) => lines(this),
            (this, Verdict::Other) => lines(1 - this),
            (_, verdict) => Err(std::io::Error::other(format!("{verdict:?}")).into()),
        }
    }

    /// What a copy with this content says of itself.
    fn said(&self, content: &[u8]) -> Option<Mirror> {
        let [a, b] = [0, ANCHOR_BYTES].map(|at| &content[at..at + ANCHOR_BYTES]);
        Anchor::choose([a, b], self.len).ok().and_then(|anchor| anchor.mirror())
    }

    /// What is decided about two copies with this content, and by which of them.
    fn verdict(&self, contents: &[Vec<u8>]) -> (usize, Verdict) {
        let there = |i: usize| self.said(&contents[i]).filter(|_| !self.devices[i].gone.get());
        match (there(0), there(1)) {
            (Some(first), second) => (0, decide(first, second)),
            (None, Some(second)) => (1, decide(second, None)),
            (None, None) => (0, Verdict::Missing),
        }
    }

    /// What the devices hold, with these writes on top of it, torn or not.
    pub fn contents(&self, torn: &[Written]) -> Vec<Vec<u8>> {
        let read = |device: &Device| {
            let mut content = vec![0; self.len as usize];
            device.journal.read_exact_at(&mut content, 0).expect("the journal");
            content
        };
        let mut contents: Vec<_> = self.devices.iter().map(read).collect();
        for (copy, at, bytes) in torn {
            contents[*copy][*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
        }
        contents
    }

    /// The last batch of a device, and the image.
    fn lines_of(&self, device: &[u8]) -> Result<(u64, BTreeMap<u32, Units>), JournalError> {
        let mut lines = BTreeMap::new();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&device[at as usize..at as usize + into.len()]);
            Ok(())
        };
        let found = read(self.len, std::iter::once(0..self.len), read_at, |at, bytes| {
            for (i, line) in bytes.chunks_exact(LINE).enumerate() {
                lines.insert((at as usize / LINE + i) as u32, units_of(line));
            }
        })?;
        Ok((found.last, lines))
    }

    /// This is on the device now.
    pub fn put(&self, (copy, at, bytes): &Written) {
        let device = &self.devices[*copy];
        let mut old = vec![0; bytes.len()];
        device.journal.read_exact_at(&mut old, *at).expect("the journal");
        device.latest.note(*at, old, bytes);
        device.journal.write_all_at(bytes, *at).expect("room");
    }

    /// Which device a descriptor is of.
    pub fn device_of(&self, fd: i32) -> usize {
        if self.devices.len() == 1 {
            return 0;
        }
        let inode = std::fs::metadata(format!("/proc/self/fd/{fd}")).expect("open").ino();
        let is = |d: &Device| d.journal.metadata().expect("open").ino() == inode;
        self.devices.iter().position(is).expect("a device of the log")
    }

    /// True if a write to this device fails.
    pub fn fails(&self, copy: usize, rng: &Rng) -> bool {
        let failures = self.failures.get();
        match self.doomed.get() {
            Some(doomed) => doomed == copy,
            // The one that is left does not fail as well.
            None if self.rebuilt.get().is_some_and(|rebuilt| rebuilt != copy) => false,
            // The one that is left does not fail as well.
            None if self.devices.iter().any(|device| device.gone.get()) => false,
            None => failures > 0 && rng.one_in(failures),
        }
    }

    /// While the power is off one device of a mirrored log may be lost that is not needed, and one that was lost is back.
    /// Where the log is to be opened; `None`: where it was.
    pub fn replug(&self, rng: &Rng) -> Option<PathBuf> {
        let [first, second] = self.devices.as_slice() else { return None };
        for device in [first, second].into_iter().filter(|device| device.gone.take()) {
            std::fs::rename(device.away(), &device.path).expect("it is back");
        }
        let contents = self.contents(&[]);
        let (this, verdict) = self.verdict(&contents);
        let unneeded = match verdict {
            Verdict::This => Some(1 - this),
            Verdict::Other => Some(this),
            _ => None,
        };
        // What is believed stands alone, or is an equal half that may not be opened without the other one.
        let unneeded = unneeded.filter(|i| decide_alone(self.said(&contents[1 - i])) && rng.one_in(2));
        if let Some(i) = unneeded {
            let device = &self.devices[i];
            std::fs::rename(&device.path, device.away()).expect("it is gone");
            device.gone.set(true);
        }
        let by = unneeded.map_or_else(|| rng.below(2) as usize, |i| 1 - i);
        Some(self.devices[by].path.clone())
    }

    /// A device that was lost is well again: both, and what reads the other one. `None` if that is gone.
    pub fn mend(&self, lost: usize) -> Option<([OwnedFd; 2], File)> {
        let [first, second] = self.devices.as_slice() else { return None };
        if first.gone.get() || second.gone.get() {
            return None;
        }
        self.doomed.set(None);
        self.rebuilt.set(Some(lost));
        let both = [first, second].map(|device| writable(&device.path).into());
        Some((both, writable(&self.devices[1 - lost].path)))
    }

    /// It is whole.
    pub fn mended(&self) {
        self.rebuilt.set(None);
    }

    /// From now on one write in so many fails.
    pub fn may_fail(&self, failures: u64) {
        self.failures.set(failures);
    }

    /// True if a write failed since the log was recovered.
    pub fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// The log was recovered: nothing is left of a failure.
    pub fn recovered(&self) {
        self.has_failed.set(false);
    }

    /// It fails no more.
    pub fn calm(&self) {
        self.failures.set(0);
        self.doomed.set(None);
        self.rebuilt.set(None);
    }

    /// The power was off: what is there is there.
    pub fn forget(&self) {
        self.devices.iter().for_each(|device| device.latest.forget());
    }

    /// True if the log is not mirrored.
    pub fn is_alone(&self) -> bool {
        self.devices.len() == 1
    }

    /// The device's content is what is persisted.
    ///
    /// # Errors
    /// It cannot be read as a journal.
    pub fn settle(&self, image: &Image) -> Result<(), JournalError> {
        let now = self.read()?;
        let changed = self.changed(image, &now);
        image.settle(&changed);
        *self.lines.borrow_mut() = now;
        Ok(())
    }

    /// The lines in which an image differs from the persisted one.
    pub fn changed(&self, image: &Image, now: &BTreeMap<u32, Units>) -> Vec<(u32, Units)> {
        let before = self.lines.borrow();
        let gone = before.keys().filter(|line| !now.contains_key(line)).map(|line| (*line, [0; 8]));
        let new = now.iter().map(|(line, units)| (*line, *units));
        gone.chain(new).filter(|(line, units)| image.line(*line) != *units).collect()
    }
}

/// True for a copy that goes on alone.
fn decide_alone(said: Option<Mirror>) -> bool {
    said.is_some_and(|said| decide(said, None) == Verdict::Alone)
}
