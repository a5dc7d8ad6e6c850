//! The label of a mirrored log's copy: where the other copy is. It lies behind the ring, and is written when a copy joins.
//!
//! It is only a hint: the anchors at that place decide.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use seawall_media::crc32c;

/// Bytes it occupies.
pub const BYTES: u64 = 4096;
const MAGIC: [u8; 8] = *b"SEAWALLM";
const PATH_AT: usize = 16;

/// Writes the path of the other copy behind a ring that ends at `at`. Durable when this returns.
///
/// # Errors
/// The device's error; EINVAL for a path of more than 4080 bytes.
pub fn write(file: &File, at: u64, path: &Path) -> io::Result<()> {
    let path = path.as_os_str().as_bytes();
    let mut page = [0; BYTES as usize];
    let place = page[PATH_AT..].get_mut(..path.len());
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(path);
    page[..8].copy_from_slice(&MAGIC);
    page[8..12].copy_from_slice(&(path.len() as u32).to_le_bytes());
    page[12..16].copy_from_slice(&crc32c(path).to_le_bytes());
    file.write_all_at(&page, at)?;
    file.sync_data()
}

/// The path of the other copy.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub fn read(file: &File, at: u64) -> io::Result<PathBuf> {
    let mut page = [0; BYTES as usize];
    file.read_exact_at(&mut page, at)?;
    let number = |i: usize| page[i..i + 4].iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let path = page[PATH_AT..].get(..number(8) as usize);
    let whole = path.filter(|path| page.starts_with(&MAGIC) && crc32c(path) == number(12));
    let damaged = || io::Error::other("the name of the log's other copy is damaged");
    whole.map(|path| OsStr::from_bytes(path).into()).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_back_or_said_to_be_damaged() {
        let file = tempfile::tempfile_in("/var/tmp").expect("a file");
        write(&file, 8192, Path::new("/dev/disk/by-id/x")).expect("written");
        assert_eq!(read(&file, 8192).expect("a path"), Path::new("/dev/disk/by-id/x"));
        file.write_all_at(b"y", 8192 + PATH_AT as u64 + 3).expect("written");
        assert!(read(&file, 8192).expect_err("damaged").to_string().contains("damaged"));
        assert!(read(&file, 0).is_err());
        assert!(write(&file, 0, Path::new(&"x".repeat(4081))).is_err());
    }
}
