//! What a copy's file has: its frames done once more, up to the first that is not whole or of another use of the file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use seawall_media::LINE;
use seawall_wire::keeper::{Frame, Kind, Refusal};

use super::frames::with_sum;
use crate::answer::answer;
use crate::copy::Copy;

/// Bytes that are read of it at once.
const READ_AT_ONCE: usize = 4 << 20;

/// What a file has.
pub(super) struct Loaded {
    pub(super) copy: Copy,
    /// Where that ends.
    pub(super) whole: u64,
    /// Which use of the file it is.
    pub(super) number: u32,
    /// Why it ends there, if whole frames follow.
    pub(super) trouble: Option<String>,
}

/// Reads frames until one is not whole, or of another use of the file.
pub(super) fn load(file: &File, mut copy: Copy) -> io::Result<Loaded> {
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
