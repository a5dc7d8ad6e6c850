//! Small files that become records as a whole, and what ends that.

use core::ffi::CStr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::directory::Directory;
use super::turns::enter;
use crate::engine::{Engine, Turn};
use crate::file::FileRef;
use crate::file::captured::Capture;
use crate::format::NameChange;

/// Most bytes of a file that becomes a record as a whole: a larger file is on the disk just as soon.
pub const LARGEST: usize = 128 << 10;

/// The first sync of a small file, which has this inode and is at `name`: all of it becomes a record, durable when this
/// returns. False: the file needs a real sync.
pub fn capturing<D: Directory>(here: &D, name: &CStr, inode: (u64, u64)) -> bool {
    capturing_by(here, |turn| captures(here, turn, name, inode) == Some(true))
}

/// The same for a front that reads the file itself: `capture` makes the record in this turn, if it can.
pub fn capturing_by<'h, D: Directory>(here: &'h D, capture: impl FnOnce(&Turn<'h, D>) -> bool) -> bool {
    let turn = enter(here);
    let is_captured = turn.is_in_log() && capture(&turn);
    turn.finish_durably() && is_captured
}

/// What became of a file that was synced for real, and of what the log has of it as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// Nothing of that comes back.
    Done,
    /// It has moved: it is to be looked for again.
    Again,
    /// This directory has it, or may be about to.
    Elsewhere(FileRef),
    /// The disk refused the file or its directory.
    Refused,
}

/// The file with this inode has been synced for real, by a sync that began when the next record was to get the LSN `since`: what
/// the log has of it as a whole must not come back over that. `here`: where its name was found, if that is in the log. `again`
/// syncs it once more.
pub fn settling<D: Directory>(
    engine: &Engine,
    here: Option<(&D, &CStr)>,
    (inode, since): ((u64, u64), u64),
    again: impl FnOnce() -> Result<(), Errno>,
) -> Settling {
    let Some((here, name)) = here else {
        return engine.directory_of_content(inode).map_or(Settling::Done, Settling::Elsewhere);
    };
    // Whoever captures it, or moves what was captured, has the directory that it is in until that is over.
    let turn = enter(here);
    let is_here = here.at(name).is_some_and(|known| known.inode == inode);
    let settling = match engine.capture_of(inode) {
        Capture::Whole(captured) if captured.directory == here.reference() => {
            match turn.settle(&captured, inode, since, again) {
                true => Settling::Done,
                false if engine.captured(inode).is_some_and(|now| now.directory != captured.directory) => {
                    Settling::Again
                }
                false => Settling::Refused,
            }
        }
        Capture::Whole(captured) => Settling::Elsewhere(captured.directory),
        // Another file is captured.
        Capture::UnderWay(_) if is_here => Settling::Done,
        Capture::UnderWay(_) => Settling::Again,
        Capture::No => Settling::Done,
    };
    turn.finish();
    settling
}

fn captures<D: Directory>(here: &D, turn: &Turn<'_, D>, name: &CStr, inode: (u64, u64)) -> Option<bool> {
    let known = here.at(name).filter(|known| known.inode == inode && known.links == 1)?;
    let file = known.file().filter(|_| known.attributes.uid == here.uid())?;
    turn.capture(inode, &file, |record| {
        let (bytes, attributes) = (name.to_bytes(), known.attributes);
        let content = |data: &[u8]| record(&NameChange::Content { name: bytes, file, attributes, data });
        here.with_content(name, &known, content).flatten()
    })
    .then_some(true)
}

/// True if a file has extended attributes, access control lists among them, that a copy made again would lack. Its
/// security label comes from its directory.
pub fn has_attributes(fd: BorrowedFd<'_>) -> bool {
    const LABEL: &[u8] = b"security.selinux\0";
    let mut names = [0; LABEL.len()];
    match rustix::fs::flistxattr(fd, &mut names[..]) {
        Ok(len) => len > 0 && names[..len] != *LABEL,
        Err(error) => error != Errno::OPNOTSUPP,
    }
}
