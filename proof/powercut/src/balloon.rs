//! A file that takes all the room there is, so that everybody else gets ENOSPC.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::outside::DATA;

/// Taken in ever smaller pieces, down to a block.
const PIECES: [i64; 4] = [64 << 20, 4 << 20, 256 << 10, 4 << 10];

fn path() -> PathBuf {
    Path::new(DATA).join("balloon")
}

/// Fills the file system.
///
/// # Errors
/// If that fails for any other reason than success.
pub fn inflate() -> Result<()> {
    let file = File::create(path()).context("cannot create the balloon")?;
    let mut size = 0;
    for piece in PIECES {
        loop {
            match fallocate(&file, FallocateFlags::empty(), size, piece) {
                Ok(()) => size += piece,
                Err(Errno::ENOSPC) => break,
                Err(error) => return Err(error).context("cannot fill the file system"),
            }
        }
    }
    Ok(())
}

/// Makes room again, as an operator would.
///
/// # Errors
/// If the file cannot be removed.
pub fn deflate() -> Result<()> {
    match fs::remove_file(path()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("cannot make room again")
        }
        _ => Ok(()),
    }
}
