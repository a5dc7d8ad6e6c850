//! Replay: live records in LSN order, then a real fsync of every file they touched.

use std::collections::BTreeMap;
use std::io;

use super::scan::{Found, payload};
use super::target::{Sink, Target};
use super::{RecoverError, Report, Scan};
use crate::format::{RecordHeader, RecordKind};
use crate::pool::Pool;

/// Applies every live record whose file was resolved.
pub(super) fn replay(
    pool: &Pool,
    scan: &Scan,
    targets: &BTreeMap<u32, Target<impl Sink>>,
    report: &mut Report,
) -> Result<(), RecoverError> {
    for parts in scan.live.records() {
        let Some(target) = targets.get(&parts[0].header.slot) else { continue };
        for part in parts {
            report.bytes += apply(pool, part, target).map_err(|error| RecoverError::Io {
                file: target.path.clone(),
                doing: "replay records into",
                error,
            })?;
        }
        report.live += 1;
    }
    Ok(())
}

fn apply(pool: &Pool, part: &Found, target: &Target<impl Sink>) -> io::Result<u64> {
    let h = &part.header;
    match h.kind() {
        Some(RecordKind::Write) => write(pool, part, target).map(|()| u64::from(h.length)),
        Some(RecordKind::Truncate) => target.file.set_len(h.offset).map(|()| 0),
        Some(RecordKind::Names) => {
            Err(io::Error::other("the record changes the names in a directory, and this is a file"))
        }
        None => Err(io::Error::other("the record is from a later version")),
    }
}

/// The stored bytes, then the zeros behind them.
fn write(pool: &Pool, part: &Found, target: &Target<impl Sink>) -> io::Result<()> {
    let RecordHeader { offset, length, stored, .. } = part.header;
    let bytes = payload(pool, part)?;
    target.file.write_all_at(&bytes, offset)?;
    let zeros = [0; 64 << 10];
    let (mut at, end) = (offset + u64::from(stored), offset + u64::from(length));
    while at < end {
        let n = zeros.len().min((end - at) as usize);
        target.file.write_all_at(&zeros[..n], at)?;
        at += n as u64;
    }
    Ok(())
}

/// Makes everything durable where it belongs.
pub(super) fn sync(targets: &BTreeMap<u32, Target<impl Sink>>) -> Result<(), RecoverError> {
    targets.values().try_for_each(|target| {
        target.file.sync_all().map_err(|error| RecoverError::Io {
            file: target.path.clone(),
            doing: "sync",
            error,
        })
    })
}
