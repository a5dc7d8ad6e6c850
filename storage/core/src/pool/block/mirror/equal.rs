//! Makes one copy equal to the other, ring and anchors.
//!
//! The copy that is made equal says "unfinished" first, and says "both" last: wherever this is cut, a start does not
//! believe it.

use std::os::unix::fs::FileExt;
use std::path::Path;

use seawall_media::block::{Anchor, Mirror, MirrorState, RING_AT};

use super::copy::{Copy, agreed};
use crate::pool::error::PoolError;
use crate::pool::steps::io as failing;

/// Bytes that are compared and copied at a time.
const PIECE: u64 = 1 << 20;

/// Makes the second one equal to the first. If that fails, the first one goes on alone. Returns what was done, in words.
pub fn equal(believed: &mut Copy, other: &mut Copy) -> Result<Vec<String>, PoolError> {
    let start = |anchor: &Anchor| (anchor.sequence, anchor.tail, anchor.before);
    if start(&believed.anchor) == start(&other.anchor)
        && agreed(believed, other)
        && !differs(believed, other)?
    {
        return Ok(Vec::new());
    }
    let (from, to) = (believed.path.display().to_string(), other.path.display().to_string());
    match rebuild(believed, other) {
        Ok(bytes) => {
            let mib = bytes.div_ceil(1 << 20);
            Ok(vec![format!("the copy {to} was made equal to {from}: {mib} MiB differed")])
        }
        Err(Side::Other(error)) => {
            if believed.said().state != MirrorState::Alone {
                believed.say_alone()?;
            }
            Ok(vec![missing(&believed.path, &other.path, &error.to_string())])
        }
        Err(Side::Believed(error)) => Err(error),
    }
}

/// Tells the operator that the copy at `place` is lost.
pub fn missing(path: &Path, place: &Path, why: &str) -> String {
    format!(
        "THE LOG HAS LOST ITS MIRROR {}: it is on {} alone ({why}). `seawall mirror` gives it another copy",
        place.display(),
        path.display()
    )
}

/// The copy that an error belongs to.
pub enum Side {
    Believed(PoolError),
    Other(PoolError),
}

/// Makes the second one equal to the first, whatever it holds. Returns the number of bytes that differed.
pub fn rebuild(believed: &mut Copy, other: &mut Copy) -> Result<u64, Side> {
    other.say_unfinished().map_err(Side::Other)?;
    let bytes = copy(believed, other)?;
    agree(believed, other)?;
    Ok(bytes)
}

/// Makes the rings equal. Returns the number of bytes that were not.
fn copy(believed: &Copy, other: &Copy) -> Result<u64, Side> {
    let mut bytes = 0;
    pieces(believed, other, |at, from, to| {
        if to != Some(from) {
            bytes += from.len() as u64;
            other.file.write_all_at(from, at).map_err(failing(&other.path, "write to"))?;
        }
        Ok(true)
    })?;
    other.file.sync_all().map_err(failing(&other.path, "write to")).map_err(Side::Other)?;
    Ok(bytes)
}

/// True if the rings differ.
fn differs(believed: &Copy, other: &Copy) -> Result<bool, PoolError> {
    let mut differs = false;
    let looked = pieces(believed, other, |_, from, to| {
        differs = to != Some(from);
        Ok(!differs)
    });
    match looked {
        Ok(()) => Ok(differs),
        Err(Side::Believed(error) | Side::Other(error)) => Err(error),
    }
}

/// Reads both rings piece by piece, until `each` stops it. An unreadable piece of the second one is `None`.
fn pieces(
    believed: &Copy,
    other: &Copy,
    mut each: impl FnMut(u64, &[u8], Option<&[u8]>) -> Result<bool, PoolError>,
) -> Result<(), Side> {
    for file in [&believed.file, &other.file] {
        // Reads from the device, not from what was cached of it before.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
    let (mut from, mut to) = (vec![0; PIECE as usize], vec![0; PIECE as usize]);
    let size = believed.anchor.size;
    for at in (RING_AT..size).step_by(PIECE as usize) {
        let len = PIECE.min(size - at) as usize;
        let read = believed.file.read_exact_at(&mut from[..len], at);
        read.map_err(failing(&believed.path, "read")).map_err(Side::Believed)?;
        let there = other.file.read_exact_at(&mut to[..len], at).is_ok();
        if !each(at, &from[..len], there.then_some(&to[..len])).map_err(Side::Other)? {
            break;
        }
    }
    Ok(())
}

/// Both say that from now on what is acknowledged is on both. The believed one says so first: otherwise the other one
/// could be ahead of it.
fn agree(believed: &mut Copy, other: &mut Copy) -> Result<(), Side> {
    let (like, was) = (believed.anchor, believed.said());
    let epoch = match was.state {
        MirrorState::Both => was.epoch,
        _ => believed.next_epoch().map_err(Side::Believed)?,
    };
    let (sequence, copy) = (like.sequence + 2, other.said().copy);
    let said = |copy| Mirror { copy, state: MirrorState::Both, epoch };
    believed.say(&like, sequence, said(1 - copy)).map_err(Side::Believed)?;
    other.say(&like, sequence, said(copy)).map_err(Side::Other)
}
