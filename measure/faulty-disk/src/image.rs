//! The bytes of a disk: sparse, and cheap to copy.
//!
//! Copies share their chunks until one of them is written: a freshly installed system is kept as a
//! template for hundreds of rounds at the price of a few pointers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

/// Bytes in a chunk.
const CHUNK: usize = 64 * 1024;

type Chunk = [u8; CHUNK];

/// What a disk holds; what was never written reads as zeros.
#[derive(Clone)]
pub struct Image {
    chunks: Vec<Option<Arc<Chunk>>>,
    size: u64,
}

impl Image {
    /// An empty one; `size` is rounded up to whole chunks.
    pub fn new(size: u64) -> Self {
        let chunks = size.div_ceil(CHUNK as u64);
        Image { chunks: vec![None; chunks as usize], size: chunks * CHUNK as u64 }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Copies bytes out; what lies behind the end is left away.
    pub fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let end = offset.saturating_add(length as u64).min(self.size);
        let mut bytes = Vec::with_capacity(end.saturating_sub(offset) as usize);
        for (chunk, from, to) in pieces(offset, end) {
            match &self.chunks[chunk] {
                Some(held) => bytes.extend_from_slice(&held[from..to]),
                None => bytes.resize(bytes.len() + (to - from), 0),
            }
        }
        bytes
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let read = || -> io::Result<Self> {
            let file = File::open(path)?;
            let mut image = Image::new(file.metadata()?.len());
            let (mut chunk, mut at) = ([0; CHUNK], 0);
            loop {
                let length = file.read_at(&mut chunk, at)?;
                if length == 0 {
                    return Ok(image);
                }
                // What is zeros takes no room.
                if chunk[..length].iter().any(|byte| *byte != 0) {
                    image.write(at, &chunk[..length]);
                }
                at += length as u64;
            }
        };
        read().with_context(|| format!("read the disk {}", path.display()))
    }

    /// Saves it as a sparse file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let write = || -> io::Result<()> {
            let file = File::create(path)?;
            file.set_len(self.size)?;
            for (index, chunk) in self.chunks.iter().enumerate() {
                if let Some(bytes) = chunk {
                    file.write_all_at(&bytes[..], (index * CHUNK) as u64)?;
                }
            }
            Ok(())
        };
        write().with_context(|| format!("save the disk to {}", path.display()))
    }

    /// Takes bytes in; what lies behind the end is left away.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64).min(self.size);
        let mut rest = bytes;
        for (chunk, from, to) in pieces(offset, end) {
            let (now, later) = rest.split_at(to - from);
            let held = self.chunks[chunk].get_or_insert_with(|| Arc::new([0; CHUNK]));
            Arc::make_mut(held)[from..to].copy_from_slice(now);
            rest = later;
        }
    }
}

/// The chunks of `offset..end`, each with the range inside it.
fn pieces(offset: u64, end: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let from = (at % CHUNK as u64) as usize;
            let length = (CHUNK - from).min((end - at) as usize);
            let piece = ((at / CHUNK as u64) as usize, from, from + length);
            at += length as u64;
            piece
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_over_chunk_borders_read_back_and_copies_are_apart() {
        let mut image = Image::new(200_000);
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
        image.write(60_000, &bytes);
        let copy = image.clone();
        image.write(60_000, &[255; 10]);
        assert_eq!(copy.read(60_000, 100_000), bytes);
        assert_eq!(image.read(60_000, 12)[8..], [255, 255, 10, 11]);
        assert_eq!(image.read(0, 4), [0; 4]);
        assert_eq!(image.read(image.size() - 2, 10).len(), 2, "nothing behind the end");
    }
}
