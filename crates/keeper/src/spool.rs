//! A copy on the keeper's own disk: the frames that made it, one behind the other, as they came.
//!
//! ```text
//! Begin │ Piece … │ Complete │ Batch │ Batch │ …
//! ```
//!
//! When it has grown to some times the image it is written anew, a piece at a time, while batches go to both: what a writer
//! does that brings a keeper up to date, done by the keeper to its own file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal};

use crate::answer::answer;
use crate::copy::Copy;
use crate::meta::sync_directory;
use crate::wire::{seal_into, sealed};

/// Bytes of a piece when it is written anew.
const PIECE: usize = 256 << 10;
/// It is written anew from so many bytes on, and twice the image.
const LEAST: u64 = 64 << 20;

/// Frames that a copy took, as its file is to have them.
#[derive(Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Some of them are no batches.
    has_others: bool,
}

impl Frames {
    /// One more, and what was behind it.
    pub fn push(&mut self, frame: &Frame, body: &[u8]) {
        seal_into(&mut self.bytes, frame, body);
        self.has_others |= frame.kind() != Some(Kind::Batch);
    }

    /// Bytes of all of them.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// There are none any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.has_others = false;
    }
}

/// The file of one copy.
pub struct Spool {
    path: PathBuf,
    file: File,
    bytes: u64,
    image: u64,
    anew: Option<Anew>,
}

/// Its successor in the making.
struct Anew {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// How far the image is in it.
    at: u64,
}

/// What was found in a file.
pub struct Found {
    /// The copy as the file has it.
    pub copy: Copy,
    /// Why it ends where it ends, if not at its end.
    pub trouble: Option<String>,
}

impl Spool {
    /// Makes an empty one, durably.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(path: &Path, image: u64) -> io::Result<Self> {
        let file = File::create(path)?;
        file.sync_all()?;
        sync_directory(path)?;
        Ok(Self { path: path.to_owned(), file, bytes: 0, image, anew: None })
    }

    /// Reads one, to go on with it behind what is whole.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(path: &Path, copy: Copy) -> io::Result<(Self, Found)> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let image = copy.image_bytes();
        let (copy, whole, trouble) = load(&mut file, copy)?;
        file.set_len(whole)?;
        let spool = Self { path: path.to_owned(), file, bytes: whole, image, anew: None };
        Ok((spool, Found { copy, trouble }))
    }

    /// Frames that the copy took, with what was behind each. Not durable yet.
    ///
    /// # Errors
    /// The disk's. Then the file says nothing any more.
    pub fn append(&mut self, frames: &Frames) -> io::Result<()> {
        self.file.write_all_at(&frames.bytes, self.bytes)?;
        self.bytes += frames.bytes.len() as u64;
        if frames.has_others {
            // Another image: what was copied of the former one is worth nothing.
            self.anew = None;
        }
        if let Some(anew) = &mut self.anew {
            anew.file.write_all_at(&frames.bytes, anew.bytes)?;
            anew.bytes += frames.bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes durable what was appended.
    ///
    /// # Errors
    /// The disk's. Then nothing is known of what is on it.
    pub fn harden(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The same for another thread, while this one appends.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn again(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// A step towards a shorter file, if it is due. True while there is more to do. The copy is what the file says, and no
    /// second image is being made.
    ///
    /// # Errors
    /// The disk's.
    pub fn shorten(&mut self, copy: &Copy) -> io::Result<bool> {
        let (log, at) = (copy.log(), copy.position());
        let Some(mut anew) = self.anew.take() else {
            if self.bytes < LEAST + 2 * self.image {
                return Ok(false);
            }
            self.anew = Some(Anew::begin(&self.path, log, at.epoch)?);
            return Ok(true);
        };
        if let Some((from, bytes)) = copy.stretch(anew.at, PIECE) {
            let frame = Frame::new(Kind::Piece, log, at.epoch).numbered(from, 0);
            anew.bytes += put(&anew.file, anew.bytes, &frame, bytes)?;
            anew.at = from + bytes.len() as u64;
            self.anew = Some(anew);
            return Ok(true);
        }
        let frame = Frame::new(Kind::Complete, log, at.epoch).numbered(at.number, 0);
        anew.bytes += put(&anew.file, anew.bytes, &frame, &[])?;
        anew.file.sync_all()?;
        fs::rename(&anew.path, &self.path)?;
        sync_directory(&self.path)?;
        (self.file, self.bytes) = (anew.file, anew.bytes);
        Ok(false)
    }
}

impl Anew {
    fn begin(path: &Path, log: u64, epoch: Epoch) -> io::Result<Self> {
        let path = path.with_extension("anew");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let bytes = put(&file, 0, &Frame::new(Kind::Begin, log, epoch), &[])?;
        Ok(Self { path, file, bytes, at: 0 })
    }
}

/// Writes a frame and its body at an offset; how many bytes that were.
fn put(file: &File, at: u64, frame: &Frame, body: &[u8]) -> io::Result<u64> {
    let bytes = sealed(frame, body);
    file.write_all_at(&bytes, at)?;
    Ok(bytes.len() as u64)
}

/// Reads frames until one is not whole: the copy, where that is, and why if whole ones follow it.
fn load(file: &mut File, mut copy: Copy) -> io::Result<(Copy, u64, Option<String>)> {
    let mut bytes = io::BufReader::with_capacity(4 << 20, &mut *file);
    let (mut at, mut body) = (0, Vec::new());
    let trouble = loop {
        let mut line = [0; LINE];
        if let Err(e) = bytes.read_exact(&mut line) {
            break (e.kind() != io::ErrorKind::UnexpectedEof).then(|| e.to_string());
        }
        let Some(frame) = Frame::parse(&line).filter(|frame| frame.log == copy.log()) else {
            break whole_ones_follow(file, at, copy.log())?;
        };
        body.resize(frame.len as usize, 0);
        if bytes.read_exact(&mut body).is_err() {
            break None;
        }
        if replay(&mut copy, &frame, &body).is_err() {
            break whole_ones_follow(file, at, copy.log())?;
        }
        at += (LINE + body.len()) as u64;
    };
    Ok((copy, at, trouble))
}

/// Has the copy do once more what a frame had it do.
fn replay(copy: &mut Copy, frame: &Frame, body: &[u8]) -> Result<(), Refusal> {
    if !frame.kind().is_some_and(Kind::changes) {
        return Err(Refusal::Malformed);
    }
    let turn = copy.turn_of(frame.epoch)?;
    answer(copy, turn, frame, body).map(drop)
}

/// What was written later than what is damaged says that this is no end.
fn whole_ones_follow(file: &File, at: u64, log: u64) -> io::Result<Option<String>> {
    let (mut from, len) = (at + LINE as u64, file.metadata()?.len());
    let mut line = [0; LINE];
    while from + LINE as u64 <= len {
        file.read_exact_at(&mut line, from)?;
        if Frame::parse(&line).is_some_and(|frame| frame.log == log) {
            return Ok(Some(format!("damaged at byte {at}, and whole again at {from}")));
        }
        from += LINE as u64;
    }
    Ok(None)
}
