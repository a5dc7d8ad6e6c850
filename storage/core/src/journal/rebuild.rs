//! Rebuilding a lost copy while the log is in use.
//!
//! From [`Rebuild::begin`] on, every leader writes its batches to that copy too, which does not count: its failure
//! fails no commit. Older content is copied piece by piece, each piece while nobody else leads. The copy says
//! "unfinished" all the while. When everything is on it, both say "both", in an order that `mirror` defines.
//!
//! | the rebuilder dies | what its heir, or a start, finds |
//! |---|---|
//! | before the end | the other copy is alone, this one unfinished: it goes on alone, until somebody begins anew |
//! | when the other one says "both" | the same: it counts alone, and an unfinished one is not believed |
//! | when both count | both hold everything: the heir has both say so |
//!
//! Not handled here: whether a device fits, and what it held before (`pool::block::mirror`).

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use seawall_media::Region;
use seawall_media::block::{Device, RING_AT};
use seawall_wire::desk::Desk;

use super::handle::Journal;
use super::mirror;
use super::way::{Pair, Way};
use super::writer::{Writer, joining, written};

/// Bytes copied at a time: nobody commits meanwhile.
pub const PIECE: u64 = 256 << 10;
/// Longest pause between two pieces.
const PAUSE: Duration = Duration::from_secs(1);
/// Changes of a mirror's membership that are reserved for purposes other than rebuilding.
const SPARE: u32 = 64;

/// A rebuild that is under way. If dropped before its end, it leaves the other copy alone.
pub struct Rebuild<'a> {
    journal: &'a Journal,
    image: &'a Region,
    source: &'a File,
    given: u32,
    at: u64,
}

impl<'a> Rebuild<'a> {
    /// Begins: `devices` are those of the first and the second copy from now on, `source` reads the one that counts.
    ///
    /// # Errors
    /// EINVAL if the log has not lost a copy; EOVERFLOW if it did so too often; the new device's error. The log is
    /// untouched then, except for an anchor that says once more that its copy is alone. Another rebuild that is under
    /// way is given up.
    pub fn begin(
        journal: &'a Journal,
        image: &'a Region,
        devices: [OwnedFd; 2],
        source: &'a File,
    ) -> Result<Self, Errno> {
        let Way::Mirrored(pair) = journal.way() else { return Err(Errno::INVAL) };
        let desk = journal.desk(image);
        let lead = journal.lead_pinned(image)?;
        mirror::settle(&lead, image)?;
        let copies = written(desk);
        if desk.copies().load(SeqCst) == 0 || copies == 3 {
            return Err(Errno::INVAL);
        }
        if desk.epoch().load(SeqCst) + SPARE > u32::from(u16::MAX) {
            return Err(Errno::OVERFLOW);
        }
        mirror::stay_alone(&lead, image)?;
        let given = desk.given().load(SeqCst).wrapping_add(1);
        let devices = devices.map(Device::new);
        let copy = (3 - copies).trailing_zeros() as usize;
        // This comes before anybody else may write to it: with the first batch, what it says of itself is no longer
        // true.
        mirror::be_unfinished(desk, image, copy, &devices[copy])?;
        pair.replace(Pair::new(devices, given))?;
        desk.given().store(given, SeqCst);
        // The failure has been reported by now.
        desk.lost().store(0, SeqCst);
        desk.refused().store(0, SeqCst);
        desk.joining().store(1 << copy, SeqCst);
        drop(lead);
        Ok(Self { journal, image, source, given, at: RING_AT })
    }

    /// How many bytes have been copied, and of how many.
    pub fn progress(&self) -> (u64, u64) {
        (self.at - RING_AT, self.size() - RING_AT)
    }

    /// Copies everything, and lets both count. Others lead for as long as the copying takes: half of the devices' time
    /// is theirs. `goes_on` gets the progress after each piece, and decides whether to copy another one.
    ///
    /// # Errors
    /// Either device's error; ECANCELED if another rebuild was begun, or `goes_on` ended this one. The log goes on
    /// alone.
    pub fn run(mut self, mut goes_on: impl FnMut((u64, u64)) -> bool) -> io::Result<()> {
        while self.at < self.size() {
            let took = self.piece()?;
            if !goes_on(self.progress()) {
                return Err(Errno::CANCELED.into());
            }
            std::thread::sleep(took.min(PAUSE));
        }
        self.finish()
    }

    /// Copies the next piece. Returns for how long nobody else could lead.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn piece(&mut self) -> io::Result<Duration> {
        let (at, len) = (self.at, PIECE.min(self.size() - self.at));
        let lead = self.lead()?;
        let began = Instant::now();
        // Reads from the device, not from what was cached of it before.
        let _ = rustix::fs::fadvise(self.source, at, NonZeroU64::new(len), rustix::fs::Advice::DontNeed);
        let mut bytes = vec![0; len as usize];
        self.source.read_exact_at(&mut bytes, at).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot read the copy that is left: {error}"))
        })?;
        let (buffer, _) = self.desk().buffer(lead.seat());
        self.image.copy_in(buffer, &bytes);
        mirror::join(&lead, |copy| lead.to(copy, self.image, buffer, len as usize, at))?;
        self.check()?;
        drop(lead);
        self.at += len;
        Ok(began.elapsed())
    }

    /// Both count from now on, if everything was copied.
    ///
    /// # Errors
    /// As for [`run`](Self::run); EIO if the log itself failed.
    pub fn finish(&self) -> io::Result<()> {
        if self.at < self.size() {
            return Err(Errno::AGAIN.into());
        }
        let lead = self.lead()?;
        mirror::be_both(&lead, self.image)?;
        match written(self.desk()) {
            3 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(self.desk().lost().load(SeqCst) as i32)),
        }
    }

    fn lead(&self) -> io::Result<Writer<'a>> {
        let lead = self.journal.lead_pinned(self.image)?;
        self.check()?;
        Ok(lead)
    }

    fn check(&self) -> io::Result<()> {
        let desk = self.desk();
        if desk.given().load(SeqCst) != self.given {
            return Err(Errno::CANCELED.into());
        }
        match joining(desk) {
            0 => Err(io::Error::from_raw_os_error(desk.refused().load(SeqCst) as i32)),
            _ => Ok(()),
        }
    }

    fn desk(&self) -> Desk<'a> {
        self.journal.desk(self.image)
    }

    fn size(&self) -> u64 {
        self.desk().size().load(Relaxed)
    }
}

impl Journal {
    /// A daemon that takes a log over calls this before anything else: it gives up, or finishes, a rebuild that the
    /// former daemon left. False if there is none.
    ///
    /// # Errors
    /// EIO if the log failed.
    pub fn inherit_rebuild(&self, image: &Region) -> Result<bool, Errno> {
        if self.desk(image).joining().load(SeqCst) == 0 {
            return Ok(false);
        }
        mirror::inherit(&self.lead_pinned(image)?, image).map(|()| true)
    }
}

impl Drop for Rebuild<'_> {
    fn drop(&mut self) {
        // A thread that cannot lead leaves it to the next rebuild.
        let Ok(_lead) = self.lead() else { return };
        self.desk().joining().store(0, SeqCst);
    }
}
