//! A file is written a piece at a time before it is synced.
//!
//! A sync of all of it at once fills the device's queue with tens of megabytes. Whoever has something to ask of the same
//! disk waits behind them, tens of milliseconds:
//!
//! * An append, where the file has grown: the file system wants the bitmap of the next free blocks, reads it there, and
//!   holds the file's block map meanwhile (on ext4 `ext4_da_get_block_prep` waits for `i_data_sem`).
//! * A commit, where the log lies on that disk: it waits for a write of the log.
//!
//! With a few megabytes under way, or one, they wait for a few milliseconds, or one, and the disk is no less busy.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use nix::libc;

use crate::sys;

/// Has the kernel write these bytes to the file's disk, and waits for most of them: `piece` are begun at once, and twice
/// as many are under way. Makes nothing durable: a sync has to follow.
///
/// # Errors
/// What the kernel says of the writing. It says so once to this descriptor: a sync by it may succeed afterwards, and
/// proves nothing then.
pub(crate) fn write_out(fd: BorrowedFd<'_>, bytes: Range<u64>, piece: u64) -> io::Result<()> {
    let mut before = None;
    for at in bytes.clone().step_by(piece as usize) {
        let piece = at..bytes.end.min(at + piece);
        range(fd, &piece, libc::SYNC_FILE_RANGE_WRITE)?;
        if let Some(before) = before.replace(piece) {
            range(fd, &before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)?;
        }
    }
    Ok(())
}

fn range(fd: BorrowedFd<'_>, bytes: &Range<u64>, flags: u32) -> io::Result<()> {
    match sys::sync_file_range(fd, bytes, flags) {
        // No such call here, or not for such a file: the sync does it all.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE)) => {
            Ok(())
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    const PIECE: u64 = 64 << 10;

    #[test]
    fn every_length_is_written_out_and_a_refusal_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for len in [0, 1, PIECE, PIECE + 1, 3 * PIECE] {
            file.as_file().set_len(len).expect("its length");
            write_out(file.as_file().as_fd(), 0..len, PIECE).expect("written");
        }
        write_out(file.as_file().as_fd(), Range { start: PIECE, end: 1 }, PIECE).expect("nothing to do");
        let path_only =
            File::options().read(true).custom_flags(libc::O_PATH).open(file.path()).expect("opened");
        assert!(write_out(path_only.as_fd(), 0..1, PIECE).is_err());
    }

    /// What can not be written so is left to the sync.
    #[test]
    fn a_pipe_is_left_alone() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        write_out(reader.as_fd(), 0..PIECE, PIECE).expect("no error");
    }
}
