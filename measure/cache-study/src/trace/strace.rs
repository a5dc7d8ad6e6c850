//! A trace out of what `strace -f -y -s 0 -e trace=pread64,pwrite64` wrote: the reads and writes a database made.
//!
//! Calls that were interrupted by another thread's come in two pieces, which are put together. Calls that failed,
//! and lines that are none of these calls, are left out.

use std::collections::HashMap;

use seawall_cache::access::Access;
use seawall_cache::key::Block;

/// What to take of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// Only files whose path has this in it.
    pub path_part: &'a str,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How many accesses at most.
    pub limit: usize,
}

/// A line that begins like a call and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: a call that cannot be read; was it recorded with -y -s 0?")]
pub struct RecordingError {
    /// Counted from 1.
    pub line: usize,
}

struct Call<'a> {
    is_write: bool,
    path: &'a str,
    offset: u64,
    bytes: u64,
}

impl Recording<'_> {
    /// The accesses in it. Files are numbered in the order in which they appear.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn accesses(&self, text: &str) -> Result<Vec<Access>, RecordingError> {
        let (mut begun, mut files, mut accesses) = (HashMap::new(), HashMap::new(), Vec::new());
        for (i, line) in text.lines().enumerate() {
            let Some(whole) = whole(line, &mut begun) else { continue };
            let Ok(call) = call(&whole) else { return Err(RecordingError { line: i + 1 }) };
            let Some(call) = call.filter(|call| call.path.contains(self.path_part)) else { continue };
            let next = files.len() as u32;
            let file = *files.entry(call.path.to_owned()).or_insert(next);
            let blocks =
                call.offset / self.block_bytes..(call.offset + call.bytes).div_ceil(self.block_bytes);
            for number in blocks {
                let block = Block { file, number: number as u32 };
                accesses.push(if call.is_write { Access::Write(block) } else { Access::Read(block) });
                if accesses.len() == self.limit {
                    return Ok(accesses);
                }
            }
        }
        Ok(accesses)
    }
}

/// The call on a line, put together if it came in two pieces, without the process id in front.
fn whole<'a>(line: &'a str, begun: &mut HashMap<&'a str, &'a str>) -> Option<String> {
    let (process, rest) = line.split_once(' ')?;
    let rest = rest.trim_start();
    if let Some(first) = rest.strip_suffix("<unfinished ...>") {
        begun.insert(process, first.trim_end());
        return None;
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let (_, second) = resumed.split_once(" resumed>")?;
        return begun.remove(process).map(|first| format!("{first} {second}"));
    }
    Some(rest.to_owned())
}

/// `pread64(5</path>, ""..., 8192, 16384) = 8192`. `None` for another call, or one that failed.
fn call(text: &str) -> Result<Option<Call<'_>>, ()> {
    let (is_write, rest) = match (text.strip_prefix("pread64("), text.strip_prefix("pwrite64(")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Ok(None),
    };
    let (arguments, result) = rest.rsplit_once(" = ").ok_or(())?;
    let arguments = arguments.trim_end().strip_suffix(')').ok_or(())?;
    let Ok(bytes) = result.split(' ').next().unwrap_or_default().parse::<u64>() else { return Ok(None) };
    let (_, path) = arguments.split_once('<').ok_or(())?;
    let (path, rest) = path.rsplit_once(">,").ok_or(())?;
    let (_, offset) = rest.rsplit_once(", ").ok_or(())?;
    Ok(Some(Call { is_write, path, offset: offset.trim().parse().map_err(|_| ())?, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7  pread64(5</d/base/1>, \"\"..., 8192, 16384) = 8192
7  pread64(6</d/pg_wal/1>, \"\"..., 8192, 0) = 8192
8  pread64(5</d/base/2>,  <unfinished ...>
7  pwrite64(5</d/base/1>, \"\"..., 16384, 8192 <unfinished ...>
8  <... pread64 resumed>\"\"..., 8192, 0) = 8192
7  <... pwrite64 resumed>)           = 16384
8  pread64(5</d/base/2>, \"\"..., 8192, 8192) = -1 EIO (Input/output error)
7  +++ exited with 0 +++
";

    #[test]
    fn calls_are_put_together_and_cut_into_blocks() {
        let block = |file, number| Block { file, number };
        let of = Recording { path_part: "/base/", block_bytes: 8192, limit: 100 };
        let expected = [
            Access::Read(block(0, 2)),
            Access::Read(block(1, 0)),
            Access::Write(block(0, 1)),
            Access::Write(block(0, 2)),
        ];
        assert_eq!(of.accesses(TEXT), Ok(expected.to_vec()));
        assert_eq!(of.accesses("7  pread64(5, 8192, 0) = 8192\n"), Err(RecordingError { line: 1 }));
    }
}
