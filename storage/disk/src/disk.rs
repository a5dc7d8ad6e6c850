//! One disk: its image, and what its guest may do with it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use seawall_daemon::workers::Workers;
use seawall_front::Joined;

use crate::back::Back;
use crate::chain::Malformed;
use crate::config;
use crate::count::{Counts, Seen};
use crate::failure::Refused;
use crate::image::{Image, may_become};
use crate::log::Log;
use crate::memory::Memory;
use crate::pace::{Limits, Pace};
use crate::request::{MustWait, Patience, Request};

/// How a disk is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image.
    pub image: PathBuf,
    /// The guest cannot write.
    pub is_read_only: bool,
    /// Each write is whole after a power cut, flushed or not.
    pub is_atomic: bool,
    /// What it says of itself, in up to 20 bytes.
    pub serial: String,
    /// Queues that a guest may have at once.
    pub queues: u16,
    /// What it may do in a second.
    pub limits: Limits,
    /// Another machine has the image until its guest arrives here.
    pub is_incoming: bool,
}

/// A disk.
pub struct Disk<L = Joined> {
    /// Its content.
    pub image: Image<L>,
    /// Its limits.
    pub pace: Pace,
    /// For what waits for a disk.
    pub workers: Workers,
    /// What its guests asked for.
    pub counts: Counts,
    /// How many queues the guest that is connected uses.
    pub queues: AtomicUsize,
    /// By which that guest hears of another size.
    pub back: Back,
    /// The guest's driver flushes; if not, each write is durable when it is answered. Until it has said so, none does.
    pub has_cache: AtomicBool,
    options: Options,
}

/// Bytes of the serial number.
pub const SERIAL: usize = 20;
/// Threads for reads that the page cache does not have, and for syncs that wait.
const THREADS: usize = 64;
const STACK: usize = 256 << 10;

impl Disk<Joined> {
    /// Opens the image and takes it into the log of `pool`, whose daemon runs; an incoming one only when its guest is here.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn new(options: Options, pool: &Path) -> Result<Self, Refused> {
        let joined = match options.is_read_only {
            true => None,
            false => Some(Joined::new(pool).map_err(Refused::failed("cannot join the log"))?),
        };
        let image = Image::open(&options.image, joined, options.is_atomic)?;
        if !options.is_incoming {
            image.take(Duration::ZERO)?;
        }
        Ok(Self::with(image, options))
    }
}

impl<L: Log> Disk<L> {
    /// The disk whose image is open as `file`, for writing, and whose requests go through this log.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn of(options: Options, file: File, log: L) -> Result<Self, Refused> {
        let image = Image::of(&options.image, file, Some(log), options.is_atomic)?;
        image.take_open()?;
        Ok(Self::with(image, options))
    }

    fn with(image: Image<L>, options: Options) -> Self {
        Self {
            image,
            pace: Pace::new(options.limits),
            workers: Workers::new("disk", STACK, THREADS),
            counts: Counts::default(),
            queues: AtomicUsize::new(0),
            back: Back::default(),
            has_cache: AtomicBool::new(false),
            options,
        }
    }

    /// Carries out the request at `head` of a table of descriptors, as a queue does: all that a hostile guest can have done. How much
    /// of its memory was written.
    ///
    /// # Errors
    /// Why it has no answer.
    pub fn carry_out(&self, head: u16, table: (u64, u16), memory: &Memory) -> Result<u32, &'static str> {
        let request = Request::at(head, table, memory, self).map_err(|Malformed(why)| why)?;
        request.carry_out(memory, self, Patience::Any).map_err(|MustWait| "it would wait")
    }

    /// How it is.
    pub fn look(&self) -> Seen {
        Seen { bytes: self.image.bytes(), queues: self.queues.load(Relaxed), counted: self.counts.now() }
    }

    /// Makes it larger. The guest hears of it at once, if QEMU can tell it.
    ///
    /// # Errors
    /// Why it stays as it is.
    pub fn resize(&self, bytes: u64) -> Result<(), Refused> {
        let path = &self.options.image;
        if self.image.is_read_only() {
            return Err(Refused::ReadOnly(path.into()));
        }
        may_become(path, self.image.bytes(), bytes)?;
        self.image.grow(bytes).map_err(|e| Refused::failed(path.display().to_string())(e.into()))?;
        self.back.has_changed();
        Ok(())
    }

    /// How it is served.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What it can do.
    pub fn features(&self) -> u64 {
        config::features(self.image.is_read_only(), self.image.can_move())
    }

    /// What the guest reads of it.
    pub fn config(&self) -> [u8; config::BYTES] {
        config::bytes(self.image.bytes(), self.options.queues)
    }

    /// Its serial number, filled up with zeros.
    pub fn serial(&self) -> [u8; SERIAL] {
        let mut all = [0; SERIAL];
        let text = self.options.serial.as_bytes();
        let len = text.len().min(SERIAL);
        all[..len].copy_from_slice(&text[..len]);
        all
    }
}
