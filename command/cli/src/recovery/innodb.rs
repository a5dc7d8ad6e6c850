//! InnoDB's redo log, as far as it tells what a crash recovery replays.
//!
//! ```text
//!      0  "Phys"; at 8 the LSN of the first byte of the ring
//!   4096  two checkpoints, 4096 bytes apart: at 0 an LSN, at 60 the CRC-32C of what is before it
//!  12288  the ring, to the end of the file: mini-transactions. Each is records, a byte that alternates between 0 and 1
//!         with each pass of the ring, and the CRC-32C of the records
//! ```
//!
//! All numbers are big-endian. Source: MariaDB 10.8 and later, `log0log.h` and `log0recv.cc` in `storage/innobase`.
//!
//! Nothing may be trusted. A log of another format, an encrypted one for instance, tells nothing; and the redo
//! ends where a mini-transaction is not whole, as it does for InnoDB.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use seawall_core::stand_in::{OWN_SUFFIX, REDO_LOG};
use seawall_media::crc32c;

const FORMAT: &[u8] = b"Phys";
const CHECKPOINTS: [u64; 2] = [4096, 8192];
const CHECKPOINT: usize = 64;
const RING_AT: u64 = 12288;
/// Longest mini-transaction, bytes.
const LONGEST: usize = 1 << 20;
/// Read at a time: several of these.
const WINDOW: usize = 8 * LONGEST;
/// Longest redo that is looked through, bytes: more need not be known, and takes time that the server has by then.
const MOST: u64 = 256 << 20;

/// Redo from the last checkpoint of the server with this data on, bytes; [`MOST`] stands for more. `None`: it is
/// unknown.
pub fn redo(data: &Path) -> Option<u64> {
    let name = data.join(REDO_LOG);
    // While its guard is up, the log is beside that.
    let mut beside = name.clone().into_os_string();
    beside.push(OsStr::from_bytes(OWN_SUFFIX));
    let log = [name, beside.into()].iter().find_map(|path| Log::open(path).ok().flatten())?;
    log.redo().ok()
}

/// A redo log of the known format.
struct Log {
    file: File,
    /// The LSN of the first byte of the ring.
    first: u64,
    /// Bytes of the ring.
    ring: u64,
    checkpoint: u64,
}

impl Log {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let ring = file.metadata()?.len().saturating_sub(RING_AT);
        let mut head = [0; 16];
        file.read_exact_at(&mut head, 0)?;
        let first = number(&head[8..]);
        let mut last = None;
        for at in CHECKPOINTS {
            let mut block = [0; CHECKPOINT];
            file.read_exact_at(&mut block, at)?;
            let (fields, sum) = block.split_at(CHECKPOINT - 4);
            let is_whole = crc32c(fields).to_be_bytes() == sum;
            last = last.max(Some(number(fields)).filter(|lsn| is_whole && *lsn >= first));
        }
        let is_known = head.starts_with(FORMAT) && ring >= 2 * LONGEST as u64;
        Ok(last.filter(|_| is_known).map(|checkpoint| Self { file, first, ring, checkpoint }))
    }

    fn redo(&self) -> io::Result<u64> {
        let (mut lsn, most) = (self.checkpoint, MOST.min(self.ring));
        while lsn - self.checkpoint < most {
            let window = self.read(lsn)?;
            let mut at = 0;
            // The next one may not be whole in this window.
            while window.len() - at > LONGEST {
                match self.mini_transaction(&window[at..], lsn) {
                    Some(length) => (at, lsn) = (at + length, lsn + length as u64),
                    None => return Ok(lsn - self.checkpoint),
                }
            }
        }
        Ok(most)
    }

    /// The bytes from this position on, around the end of the ring.
    fn read(&self, lsn: u64) -> io::Result<Vec<u8>> {
        let length = (WINDOW as u64).min(self.ring);
        let mut window = vec![0; length as usize];
        let offset = (lsn - self.first) % self.ring;
        let (before, behind) = window.split_at_mut((self.ring - offset).min(length) as usize);
        self.file.read_exact_at(before, RING_AT + offset)?;
        self.file.read_exact_at(behind, RING_AT)?;
        Ok(window)
    }

    /// Bytes of the mini-transaction at this position. `None`: none is there that is whole.
    fn mini_transaction(&self, bytes: &[u8], lsn: u64) -> Option<usize> {
        let end = records(bytes)?;
        let pass = (lsn + end as u64 - self.first) / self.ring;
        let sum = bytes.get(end + 1..end + 5)?;
        let is_whole =
            bytes[end] == u8::from(pass.is_multiple_of(2)) && crc32c(&bytes[..end]).to_be_bytes() == sum;
        is_whole.then_some(end + 5)
    }
}

/// Bytes of the records, up to the byte behind them.
fn records(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while *bytes.get(at)? > 1 {
        let length = usize::from(bytes[at] & 15);
        at += 1 + if length > 0 { length } else { 15 + more(bytes.get(at + 1..)?)? };
        if at > LONGEST {
            return None;
        }
    }
    Some(at)
}

/// By how much a record is longer than its first byte can say. `None`: longer than a mini-transaction.
fn more(bytes: &[u8]) -> Option<usize> {
    let byte = |at: usize| bytes.get(at).map(|byte| usize::from(*byte));
    match byte(0)? {
        length @ ..0x80 => Some(length),
        high @ 0x80..0xc0 => Some(0x80 + ((high & 0x3f) << 8 | byte(1)?)),
        high @ 0xc0..0xe0 => Some(0x4080 + ((high & 0x1f) << 16 | byte(1)? << 8 | byte(2)?)),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 100;
    const RING: usize = 2 * LONGEST + 1000;

    /// A ring in which mini-transactions follow each other from this position on.
    struct Made {
        ring: Vec<u8>,
        lsn: u64,
    }

    impl Made {
        fn from(lsn: u64) -> Self {
            Self { ring: vec![0xff; RING], lsn }
        }

        /// One of records with these lengths behind their first bytes.
        fn add(&mut self, lengths: &[usize]) {
            let mut bytes = Vec::new();
            for length in lengths {
                match length {
                    1..16 => bytes.push(0x30 | *length as u8),
                    _ => bytes.extend([&[0x30][..], &prefix(length - 15)[..]].concat()),
                }
                let said = if *length < 16 { 0 } else { prefix(length - 15).len() };
                bytes.extend(vec![7; length - said]);
            }
            let end = self.lsn + bytes.len() as u64;
            let pass = (end - FIRST) / RING as u64;
            let sum = crc32c(&bytes);
            bytes.push(u8::from(pass.is_multiple_of(2)));
            bytes.extend(sum.to_be_bytes());
            for byte in bytes {
                self.ring[((self.lsn - FIRST) % RING as u64) as usize] = byte;
                self.lsn += 1;
            }
        }

        fn write(&self, path: &Path, checkpoint: u64) {
            let mut log = vec![0; RING_AT as usize];
            log[..4].copy_from_slice(FORMAT);
            log[8..16].copy_from_slice(&FIRST.to_be_bytes());
            log[8192..8200].copy_from_slice(&checkpoint.to_be_bytes());
            let sum = crc32c(&log[8192..8252]).to_be_bytes();
            log[8252..8256].copy_from_slice(&sum);
            log.extend(&self.ring);
            std::fs::write(path, log).expect("written");
        }
    }

    /// InnoDB's form of a number, in one to three bytes.
    fn prefix(number: usize) -> Vec<u8> {
        match number {
            ..0x80 => vec![number as u8],
            0x80..0x4080 => vec![0x80 | ((number - 0x80) >> 8) as u8, (number - 0x80) as u8],
            _ => {
                let number = number - 0x4080;
                vec![0xc0 | (number >> 16) as u8, (number >> 8) as u8, number as u8]
            }
        }
    }

    #[test]
    fn the_redo_ends_where_a_mini_transaction_is_not_whole() {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().join(REDO_LOG);
        assert_eq!(redo(data.path()), None, "no log");
        let begin = FIRST + 10;
        let mut made = Made::from(begin);
        for lengths in [&[1, 15][..], &[16, 142, 143], &[16_000, 17_000], &[900_000]] {
            made.add(lengths);
        }
        let whole = made.lsn - begin;
        made.add(&[3]);
        let at = (made.lsn - FIRST) as usize - 1;
        made.ring[at] ^= 1;
        made.write(&path, begin);
        assert_eq!(redo(data.path()), Some(whole));
        std::fs::rename(&path, data.path().join("ib_logfile0.seawall")).expect("beside its guard");
        std::fs::write(&path, "a guard's text").expect("written");
        assert_eq!(redo(data.path()), Some(whole));
    }

    #[test]
    fn the_redo_goes_around_the_end_of_the_ring() {
        let data = tempfile::tempdir().expect("a directory");
        let begin = FIRST + 2 * RING as u64 - 700_000;
        let mut made = Made::from(begin);
        for _ in 0..4 {
            made.add(&[400_000]);
        }
        made.write(&data.path().join(REDO_LOG), begin);
        assert_eq!(redo(data.path()), Some(made.lsn - begin));
    }

    #[test]
    fn another_format_tells_nothing() {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().join(REDO_LOG);
        Made::from(FIRST).write(&path, FIRST);
        assert_eq!(redo(data.path()), Some(0));
        let mut log = std::fs::read(&path).expect("read");
        log[0] |= 0x80;
        std::fs::write(&path, log).expect("written");
        assert_eq!(redo(data.path()), None, "encrypted");
    }
}
