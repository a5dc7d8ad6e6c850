//! Making a journal, and making an image from one after a crash of the machine.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use seawall_media::LINE;
use seawall_media::block::{
    ANCHOR_BYTES, Anchor, Device, JournalError, Mirror, MirrorState, RING_AT, Recovered, probe_block, read,
    read_closed, size_of,
};
use seawall_wire::desk::{Desk, LastWord, alone};
use seawall_wire::keeper::{Epoch, Position};

use super::handle::Journal;
use super::way::{Pair, Way};
use crate::format::Layout;

/// Bytes of memory for an image of this layout: the pool and the desk behind it.
pub fn memory_bytes(image: u64, layout: Layout) -> u64 {
    image + Desk::bytes_for(layout.segments) as u64
}

/// The smallest journal for an image: three times as long, so that it can always be cleaned.
pub fn smallest(image: u64) -> u64 {
    3 * image + RING_AT + 8 * Desk::BUFFER as u64
}

/// Makes an empty journal on an open device or preallocated file.
///
/// # Errors
/// The device's error.
pub fn format(file: &File, uuid: [u8; 16], image: u64, size: u64, block: u32) -> io::Result<Anchor> {
    let anchor = Anchor::new(uuid, size, image, block);
    if !anchor.is_sane() {
        return Err(io::Error::other(format!("a log of {size} bytes in blocks of {block} is not possible")));
    }
    // Leftovers of a former journal carry another pool's number, or belong to a journal of ours whose making failed.
    file.write_all_at(&anchor.seal(), 0)?;
    file.write_all_at(&[0; ANCHOR_BYTES], ANCHOR_BYTES as u64)?;
    file.write_all_at(&vec![0; block as usize], RING_AT)?;
    file.sync_all()?;
    Ok(anchor)
}

/// The block that a journal on this device should have.
///
/// # Errors
/// If the device does not answer.
pub fn block_of(file: &File) -> io::Result<u32> {
    Ok(probe_block(file)?.block())
}

/// Reads a journal into an image of zeros, where `apply` stores bytes at an offset, and fills in the desk behind it.
///
/// # Errors
/// [`JournalError`]; then the image means nothing.
pub fn load(
    file: &File,
    desk: Desk<'_>,
    mut apply: impl FnMut(usize, &[u8]),
) -> Result<Recovered, JournalError> {
    let (len, read_at) = (size_of(file)?, |into: &mut [u8], at| file.read_exact_at(into, at));
    let mut apply = |at, bytes: &[u8]| apply(at as usize, bytes);
    let found = match read_closed(len, read_at, &mut apply)? {
        Some(found) => found,
        None => read(len, data_of(file, len)?.into_iter(), read_at, apply)?,
    };
    lay_out(desk, &found);
    Ok(found)
}

/// Reads a journal, and keeps nothing of it.
///
/// # Errors
/// [`JournalError`]: what is missing or damaged.
pub fn read_only(file: &File) -> Result<Recovered, JournalError> {
    // Reads from the device, not from what was cached of it before.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    let len = size_of(file)?;
    read(len, data_of(file, len)?.into_iter(), |into, at| file.read_exact_at(into, at), |_, _| ())
}

/// The ranges that were ever written: in a new file, few. If the file system cannot tell, all of it.
fn data_of(file: &File, len: u64) -> io::Result<Vec<Range<u64>>> {
    let (mut data, mut at) = (Vec::new(), 0);
    while at < len {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from,
            // There is no data behind this point.
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let to = seek(file, SeekFrom::Hole(from)).unwrap_or(len).min(len);
        data.push(from..to);
        at = to.max(from + 1);
    }
    Ok(data)
}

/// Lets a journal whose device had failed be written again, behind whatever is left on it. Nobody else uses the desk.
/// The cursors of the segments show what the device had confirmed, and stay as they are.
///
/// # Errors
/// [`JournalError`], also if a confirmed batch is gone. Then the journal stays as it is.
pub fn revive(file: &File, desk: Desk<'_>) -> Result<Recovered, JournalError> {
    let (found, confirmed) = (read_only(file)?, desk.newest().0.number());
    if found.last < confirmed {
        return Err(JournalError::Lost { last: found.last, missing: confirmed });
    }
    let claimed = desk.claimed().load(SeqCst);
    lay_out(desk, &found);
    // A failed batch may be on the device all the same, or reach it late: no number is given twice.
    desk.claimed().fetch_max(claimed, SeqCst);
    desk.failed().store(0, SeqCst);
    Ok(found)
}

/// Reads only the journal's anchor: to know how much memory its image needs.
///
/// # Errors
/// [`JournalError`].
pub fn anchor_of(file: &File) -> Result<Anchor, JournalError> {
    let mut copies = vec![0; 2 * ANCHOR_BYTES];
    file.read_exact_at(&mut copies, 0)?;
    let (a, b) = copies.split_at(ANCHOR_BYTES);
    Anchor::choose([a, b], size_of(file)?).map_err(JournalError::Anchor)
}

/// Fills the desk in, for a journal in this state.
pub fn lay_out(desk: Desk<'_>, found: &Recovered) {
    let anchor = &found.anchor;
    let uuid = u128::from_le_bytes(anchor.uuid);
    desk.block().store(anchor.block, SeqCst);
    desk.size().store(anchor.size, SeqCst);
    desk.uuid_low().store(uuid as u64, SeqCst);
    desk.uuid_high().store((uuid >> 64) as u64, SeqCst);
    desk.anchor().store(anchor.sequence, SeqCst);
    let (tail, before) = desk.start(anchor.sequence);
    tail.store(anchor.tail, SeqCst);
    before.store(anchor.before, SeqCst);
    desk.tail().store(anchor.tail, SeqCst);
    desk.copies().store(anchor.mirror().map_or(0, copies), SeqCst);
    desk.epoch().store(anchor.mirror().map_or(0, |said| said.epoch.into()), SeqCst);
    desk.closed().store(u32::from(anchor.closed != 0), SeqCst);
    desk.suspect().store(0, SeqCst);
    desk.lost().store(0, SeqCst);
    desk.joining().store(0, SeqCst);
    desk.refused().store(0, SeqCst);
    desk.claimed().store(found.highest.max(found.last), SeqCst);
    let last = LastWord(desk.last().load(SeqCst));
    desk.seat(last.seat()).end().store(found.end, SeqCst);
    // The former leader can commit nothing any more.
    let next =
        if last.number() == found.last { last.fenced() } else { LastWord::new(found.last, last.seat()) };
    desk.last().store(next.0, SeqCst);
}

/// Fills the desk in, for a log of which other hosts have copies: the turn that begins, the copy it begins with, and
/// the log's number now.
pub fn lay_out_kept(desk: Desk<'_>, uuid: [u8; 16], (epoch, base, last): (Epoch, Position, u64)) {
    desk.set_turn(epoch, base, last);
    let uuid = u128::from_le_bytes(uuid);
    desk.block().store(LINE as u32, SeqCst);
    desk.size().store(0, SeqCst);
    desk.uuid_low().store(uuid as u64, SeqCst);
    desk.uuid_high().store((uuid >> 64) as u64, SeqCst);
    desk.claimed().store(last, SeqCst);
    desk.last().store(LastWord::new(last, 0).0, SeqCst);
    desk.failed().store(0, SeqCst);
    desk.alone().store(alone::NO, SeqCst);
}

/// The copies that count, a bit each, according to one of them.
fn copies(said: Mirror) -> u32 {
    if said.state == MirrorState::Both { 3 } else { 1 << said.copy }
}

/// True for the desk of a journal with this anchor. A cleaner that was killed may have written one more anchor than it
/// noted.
pub fn is_of(desk: Desk<'_>, anchor: &Anchor) -> bool {
    let uuid = u128::from_le_bytes(anchor.uuid);
    let noted = desk.anchor().load(SeqCst);
    desk.size().load(SeqCst) == anchor.size
        && desk.block().load(SeqCst) == anchor.block
        && (desk.uuid_low().load(SeqCst), desk.uuid_high().load(SeqCst)) == (uuid as u64, (uuid >> 64) as u64)
        && (noted..=noted + 1).contains(&anchor.sequence)
}

/// A journal on this descriptor; a mirrored one has a second. `given` is the desk's number for them ([`Desk::given`]).
pub fn journal(fd: OwnedFd, second: Option<OwnedFd>, given: u32, desk_at: usize) -> Journal {
    let first = Device::new(fd);
    let way = match second {
        None => Way::Own(first),
        Some(second) => Way::Mirrored(Arc::new(Pair::new([first, Device::new(second)], given))),
    };
    Journal::new(way, desk_at)
}
