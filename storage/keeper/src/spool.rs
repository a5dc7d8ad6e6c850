//! A copy on the keeper's own disk: the frames that made it, one behind the other, as they came.
//!
//! ```text
//! Begin │ Piece … │ Complete │ Batch │ Batch │ …
//! ```
//!
//! When there are some times the image's bytes in it, it is written anew, a piece at a time, while batches go to both: what a
//! writer does that brings a keeper up to date, done by the keeper to its own file. The two files take turns, and their room
//! is reserved: to write where a file was written before costs no new blocks and, where it is synced, no journal of the file
//! system.
//!
//! So behind the last frame there are older ones. Each frame's code says which *use* of a file it is of, and the first frame
//! of another use is the end. A crash may leave any part of what was not synced, so each body has a checksum: a batch has its
//! own, and any other body's is in its frame.

mod frames;
mod load;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;
use seawall_media::durable;
use seawall_wire::keeper::{Epoch, Frame, Kind};

use crate::copy::Copy;
use crate::wire::sealed;
pub use frames::Frames;
use frames::with_sum;
use load::{Loaded, load};

/// Bytes of a piece when it is written anew.
const PIECE: usize = 256 << 10;
/// It is written anew from so many bytes on, and twice the image.
const LEAST: u64 = 16 << 20;

/// The file of one copy.
pub struct Spool {
    path: PathBuf,
    now: Use,
    image: u64,
    /// The newest use that was begun.
    newest: u32,
    anew: Option<Anew>,
}

/// A file, used from its front.
struct Use {
    file: File,
    bytes: u64,
    /// Which use it is.
    number: u32,
}

/// Its successor in the making.
struct Anew {
    path: PathBuf,
    to: Use,
    /// How far the image is in it.
    at: u64,
    /// All of it is, and what came meanwhile.
    is_whole: bool,
}

/// What a step towards a shorter file leaves to be done.
pub enum Step {
    /// Nothing is due.
    Nothing,
    /// More steps.
    More,
    /// The successor has everything: it is to be synced, which takes the disk seconds, while frames go on to be appended, and
    /// then to [take its turn](Spool::take_turns).
    Sync(File),
}

/// What was found in a file.
pub struct Found {
    /// The copy as the file has it.
    pub copy: Copy,
    /// Why it ends where it ends, if not at its end.
    pub trouble: Option<String>,
}

impl Spool {
    /// Makes an empty one, durably, with room for what comes.
    ///
    /// # Errors
    /// The disk's; ENOSPC if it has not that much room.
    pub fn create(path: &Path, image: u64) -> io::Result<Self> {
        let file = File::create(path)?;
        reserve(&file, image)?;
        file.sync_all()?;
        durable::sync_name(path)?;
        Ok(Self {
            path: path.to_owned(),
            now: Use { file, bytes: 0, number: 1 },
            image,
            newest: 1,
            anew: None,
        })
    }

    /// Reads one, to go on with it behind what is whole.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(path: &Path, copy: Copy) -> io::Result<(Self, Found)> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let image = copy.image_bytes();
        let Loaded { copy, whole, number, trouble } = load(&file, copy)?;
        // What is behind it may be of this use too. And what the other file has is of a use that nobody knows any more.
        file.set_len(whole)?;
        durable::remove(&other_of(path))?;
        // Without that room it goes on for as long as there is some.
        let _ = reserve(&file, image);
        let (path, now) = (path.to_owned(), Use { file, bytes: whole, number });
        Ok((Self { path, now, image, newest: number, anew: None }, Found { copy, trouble }))
    }

    /// Frames that the copy took, with what was behind each. Not durable yet.
    ///
    /// # Errors
    /// The disk's. Then the file says nothing any more.
    pub fn append(&mut self, frames: &mut Frames) -> io::Result<()> {
        self.now.append(frames.of_use(self.now.number))?;
        if frames.has_others {
            // Another image: what was copied of the former one is worth nothing.
            self.anew = None;
        }
        if let Some(anew) = &mut self.anew {
            anew.to.append(frames.of_use(anew.to.number))?;
        }
        Ok(())
    }

    /// Makes durable what was appended.
    ///
    /// # Errors
    /// The disk's. Then nothing is known of what is on it.
    pub fn harden(&self) -> io::Result<()> {
        self.now.file.sync_data()
    }

    /// The same for another thread, while this one appends.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn again(&self) -> io::Result<File> {
        self.now.file.try_clone()
    }

    /// Where there is to be room for the successor, if it is about to be begun. To reserve it takes the file system a while.
    pub fn wants_room(&self) -> Option<(PathBuf, u64)> {
        let is_due = self.anew.is_none() && self.now.bytes >= longest(self.image);
        is_due.then(|| (other_of(&self.path), self.image))
    }

    /// A step towards a shorter file, if it is due. The copy is what the file says, and no second image is being made.
    ///
    /// # Errors
    /// The disk's.
    pub fn shorten(&mut self, copy: &Copy) -> io::Result<Step> {
        let (log, at) = (copy.log(), copy.position());
        let Some(mut anew) = self.anew.take() else {
            if self.now.bytes < longest(self.image) {
                return Ok(Step::Nothing);
            }
            self.newest = self.newest.wrapping_add(1);
            self.anew = Some(Anew::begin(&self.path, (log, at.epoch), self.image, self.newest)?);
            return Ok(Step::More);
        };
        if let Some((from, bytes)) = copy.stretch(anew.at, PIECE) {
            anew.to.put(Frame::new(Kind::Piece, log, at.epoch).numbered(from, 0), bytes)?;
            anew.at = from + bytes.len() as u64;
            self.anew = Some(anew);
            return Ok(Step::More);
        }
        if !anew.is_whole {
            anew.to.put(Frame::new(Kind::Complete, log, at.epoch).numbered(at.number, 0), &[])?;
            anew.is_whole = true;
        }
        let file = anew.to.file.try_clone()?;
        self.anew = Some(anew);
        Ok(Step::Sync(file))
    }

    /// The successor was synced, and takes its turn, unless another image came meanwhile. `hardens`: what was appended since
    /// that sync began was made durable in this file, and is to be so in that one.
    ///
    /// # Errors
    /// The disk's.
    pub fn take_turns(&mut self, hardens: bool) -> io::Result<()> {
        let Some(anew) = self.anew.take_if(|anew| anew.is_whole) else { return Ok(()) };
        if hardens {
            anew.to.file.sync_data()?;
        }
        exchange(&anew.path, &self.path)?;
        durable::sync_name(&self.path)?;
        self.now = anew.to;
        Ok(())
    }
}

impl Anew {
    fn begin(path: &Path, (log, epoch): (u64, Epoch), image: u64, number: u32) -> io::Result<Self> {
        let path = other_of(path);
        // What is in there of a former use is written over.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        // Without that room it goes on for as long as there is some.
        let _ = reserve(&file, image);
        let mut to = Use { file, bytes: 0, number };
        to.put(Frame::new(Kind::Begin, log, epoch), &[])?;
        Ok(Self { path, to, at: 0, is_whole: false })
    }
}

impl Use {
    /// Writes behind what is there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// The same of a frame and its body.
    fn put(&mut self, frame: Frame, body: &[u8]) -> io::Result<()> {
        self.append(&sealed(&with_sum(frame, body).with_code(self.number), body))
    }
}

/// Bytes from which on it is written anew.
fn longest(image: u64) -> u64 {
    LEAST + 2 * image
}

/// Makes room for the successor of a file. Without it things go on for as long as there is some.
pub fn make_room(path: &Path, image: u64) {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let _ = opened.and_then(|file| reserve(&file, image));
}

/// Takes room for all that comes before it is written anew, where the file system can do that.
fn reserve(file: &File, image: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, longest(image)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

/// The file that takes turns with this one.
fn other_of(path: &Path) -> PathBuf {
    path.with_extension("anew")
}

/// Puts `from` in the place of `to`, and `to` in the place of `from` where the file system can do that.
fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).or_else(|_| fs::rename(from, to))
}

#[cfg(test)]
mod tests;
