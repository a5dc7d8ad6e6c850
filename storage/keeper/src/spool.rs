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
//! of another use is the end. A crash may leave any part of what was not synced: a body that is not a batch, which has a
//! checksum of its own, is told by its frame.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;
use seawall_media::{LINE, crc32c, durable};
use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal};

use crate::answer::answer;
use crate::copy::Copy;
use crate::wire::sealed;

/// Bytes of a piece when it is written anew.
const PIECE: usize = 256 << 10;
/// It is written anew from so many bytes on, and twice the image.
const LEAST: u64 = 16 << 20;
/// Bytes that are read of it at once.
const READ_AT_ONCE: usize = 4 << 20;

/// Frames that a copy took, as its file is to have them.
#[derive(Default)]
pub struct Frames {
    /// Each with a line in front for its frame, which is of a use of the file.
    bytes: Vec<u8>,
    /// Where each begins, and its frame.
    heads: Vec<(usize, Frame)>,
    /// Some of them are no batches.
    has_others: bool,
}

impl Frames {
    /// One more, and what was behind it.
    pub fn push(&mut self, frame: &Frame, body: &[u8]) {
        self.heads.push((self.bytes.len(), with_sum(*frame, body).followed_by(body.len())));
        self.bytes.extend_from_slice(&[0; LINE]);
        self.bytes.extend_from_slice(body);
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
        self.heads.clear();
        self.has_others = false;
    }

    /// All of them, for this use of a file.
    fn of_use(&mut self, number: u32) -> &[u8] {
        for (at, frame) in &self.heads {
            self.bytes[*at..*at + LINE].copy_from_slice(&frame.with_code(number).seal());
        }
        &self.bytes
    }
}

/// What a file has of a body that is no batch: its checksum, to tell it from what lay there before.
fn with_sum(frame: Frame, body: &[u8]) -> Frame {
    if frame.kind() == Some(Kind::Batch) { frame } else { frame.with_body_sum(crc32c(body)) }
}

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

/// What a file has.
struct Loaded {
    copy: Copy,
    /// Where that ends.
    whole: u64,
    /// Which use of the file it is.
    number: u32,
    /// Why it ends there, if whole frames follow.
    trouble: Option<String>,
}

/// Reads frames until one is not whole, or of another use of the file.
fn load(file: &File, mut copy: Copy) -> io::Result<Loaded> {
    let mut bytes = BufReader::with_capacity(READ_AT_ONCE, file);
    let (mut whole, mut number, mut body) = (0, None, Vec::new());
    let trouble = loop {
        let line = match next(&mut bytes) {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(e) => break Some(e.to_string()),
        };
        let Some(frame) = frame_of(&line, copy.log(), number) else {
            break whole_ones_follow(file, whole, copy.log(), number)?;
        };
        body.resize(frame.len as usize, 0);
        if bytes.read_exact(&mut body).is_err() {
            break None;
        }
        if with_sum(frame, &body) != frame || replay(&mut copy, &frame, &body).is_err() {
            break whole_ones_follow(file, whole, copy.log(), number)?;
        }
        number = Some(frame.code);
        whole += (LINE + body.len()) as u64;
    };
    // One without any begins with any number that it was not used with before: it is cut to nothing.
    Ok(Loaded { copy, whole, number: number.unwrap_or(1), trouble })
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
fn whole_ones_follow(mut file: &File, at: u64, log: u64, number: Option<u32>) -> io::Result<Option<String>> {
    let mut from = file.seek(SeekFrom::Start(at + LINE as u64))?;
    let mut bytes = BufReader::with_capacity(READ_AT_ONCE, file);
    while let Some(line) = next(&mut bytes)? {
        if frame_of(&line, log, number).is_some() {
            return Ok(Some(format!("the file is damaged at byte {at}, and intact again at {from}")));
        }
        from += LINE as u64;
    }
    Ok(None)
}

/// The next line; `None` at the end, also in the middle of one.
fn next(bytes: &mut impl Read) -> io::Result<Option<[u8; LINE]>> {
    let mut line = [0; LINE];
    match bytes.read_exact(&mut line) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(line)),
    }
}

/// The frame in a line, if it is of this log, and of this use of the file where that is known.
fn frame_of(line: &[u8; LINE], log: u64, number: Option<u32>) -> Option<Frame> {
    Frame::parse(line).filter(|frame| frame.log == log && number.is_none_or(|number| frame.code == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: u64 = 7;
    const EPOCH: Epoch = Epoch { counter: 1, writer: 5 };
    const IMAGE: u64 = 1 << 20;

    fn empty() -> Copy {
        Copy::new(LOG, IMAGE, false)
    }

    /// Has the copy and its file take a frame.
    fn take(copy: &mut Copy, spool: &mut Spool, frame: Frame, body: &[u8]) {
        let turn = copy.turn_of(EPOCH).expect("its own");
        answer(copy, turn, &frame, body).expect("taken");
        let mut frames = Frames::default();
        frames.push(&frame, body);
        spool.append(&mut frames).expect("written");
    }

    /// Another image, of one byte, up to this number.
    fn fill(copy: &mut Copy, spool: &mut Spool, byte: u8, number: u64) {
        let frame = |kind| Frame::new(kind, LOG, EPOCH);
        take(copy, spool, frame(Kind::Begin), &[]);
        for at in (0..IMAGE).step_by(PIECE) {
            take(copy, spool, frame(Kind::Piece).numbered(at, 0), &[byte; PIECE]);
        }
        take(copy, spool, frame(Kind::Complete).numbered(number, 0), &[]);
    }

    fn shorten(copy: &Copy, spool: &mut Spool) -> bool {
        let was = spool.now.number;
        if let Some(file) = to_sync(copy, spool) {
            file.sync_all().expect("synced");
            spool.take_turns(false).expect("exchanged");
        }
        spool.now.number != was
    }

    /// Its successor, once that has everything.
    fn to_sync(copy: &Copy, spool: &mut Spool) -> Option<File> {
        loop {
            match spool.shorten(copy).expect("written") {
                Step::Nothing => return None,
                Step::More => {}
                Step::Sync(file) => return Some(file),
            }
        }
    }

    /// Nobody waits while it is synced, so anything may come meanwhile.
    #[test]
    fn a_successor_takes_no_turn_before_it_is_synced_nor_when_another_image_came() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
        let mut number = 0;
        let mut due = |copy: &mut Copy, spool: &mut Spool| loop {
            number += 1;
            fill(copy, spool, number as u8, number);
            if to_sync(copy, spool).is_some() {
                break number;
            }
        };
        let number = due(&mut copy, &mut spool);
        let was = spool.now.number;
        assert_eq!(
            read(&path),
            (number, vec![number as u8; IMAGE as usize], None),
            "the former one has it too"
        );
        fill(&mut copy, &mut spool, 77, number + 1);
        spool.take_turns(false).expect("nothing to do");
        assert_eq!(spool.now.number, was);
        assert_eq!(read(&path), (number + 1, vec![77; IMAGE as usize], None));
        assert!(shorten(&copy, &mut spool) && spool.now.number != was);
        assert_eq!(read(&path), (number + 1, vec![77; IMAGE as usize], None));
    }

    fn read(path: &Path) -> (u64, Vec<u8>, Option<String>) {
        let apart = tempfile::tempdir().expect("a directory");
        let other = apart.path().join("copy");
        fs::copy(path, &other).expect("copied");
        let (_, Found { copy, trouble }) = Spool::open(&other, empty()).expect("opened");
        let image = copy.stretch(0, IMAGE as usize).map(|(_, bytes)| bytes.to_vec());
        (copy.position().number, image.unwrap_or_default(), trouble)
    }

    #[test]
    fn files_take_turns_and_what_a_former_use_left_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
        let mut turns = 0;
        for number in 1..=100 {
            fill(&mut copy, &mut spool, number as u8, number);
            turns += u32::from(shorten(&copy, &mut spool));
            if number % 7 == 0 {
                assert_eq!(read(&path), (number, vec![number as u8; IMAGE as usize], None));
            }
        }
        assert!(turns >= 4, "{turns}");
        // Neither grows from turn to turn.
        for path in [&path, &other_of(&path)] {
            let length = fs::metadata(path).expect("there").len();
            assert!(length <= longest(IMAGE) + 2 * IMAGE, "{length}");
        }
    }

    /// A power cut may leave a whole frame with what lay behind it before.
    #[test]
    fn a_piece_that_is_not_whole_is_no_piece() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
        fill(&mut copy, &mut spool, 1, 1);
        let before = spool.now.bytes;
        fill(&mut copy, &mut spool, 2, 2);
        assert_eq!(read(&path).0, 2);
        spool.now.file.write_all_at(&[9], before + 3 * LINE as u64).expect("written");
        let (number, image, trouble) = read(&path);
        assert_eq!((number, image[0]), (1, 1));
        assert!(trouble.is_some(), "whole ones follow");
    }
}
