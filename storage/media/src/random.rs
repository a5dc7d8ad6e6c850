//! Numbers that nobody else draws.

use std::fs::File;
use std::io::{self, Read as _};

/// A new UUID: sixteen random bytes.
///
/// # Errors
/// If the kernel gives none.
pub fn random_uuid() -> io::Result<[u8; 16]> {
    let mut uuid = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut uuid)?;
    Ok(uuid)
}
