//! What a process was started with, and what it calls its threads: how `status` knows who serves what.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use clap::Parser;
use seawall_media::process;

/// The words of a process, as the kernel keeps them, and the directory from which it was started.
pub fn of(pid: u32) -> Option<(Vec<u8>, PathBuf)> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some((line, fs::read_link(format!("/proc/{pid}/cwd")).ok()?))
}

/// These words, if they are such a command's.
pub fn understood<L: Parser>(line: &[u8]) -> Option<L> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    let words = line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    L::try_parse_from(words).ok()
}

/// How many threads of a process have names that begin so.
pub fn threads(pid: u32, name: &str) -> usize {
    let comm = |thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm")).ok();
    let names = process::threads(pid).filter_map(comm);
    names.filter(|found| found.starts_with(name)).count()
}
