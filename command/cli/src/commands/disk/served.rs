//! Which disks a pool has: `status` names them.
//!
//! Input: the pool's clients, which the daemon lists. Output: what those of them that serve a disk were started with.

use std::path::{Path, PathBuf};

use clap::Parser;
use seawall_disk::Counted;
use seawall_disk::control::{Asked, Seen, ask};

use super::super::command_line;
use super::how::Disk;
use crate::size;

/// The command line of a process that serves a disk, read as by [`crate::Cli`], which knows more commands.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Only,
}

#[derive(clap::Subcommand)]
enum Only {
    Disk(Box<Disk>),
}

/// One disk.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Served {
    /// The image.
    #[serde(serialize_with = "seawall_core::path_text::serialize")]
    pub image: PathBuf,
    /// Where QEMU connects.
    #[serde(serialize_with = "seawall_core::path_text::serialize")]
    pub socket: PathBuf,
    /// The process that serves.
    pub pid: u32,
    /// How it is; `None`: it does not say.
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

/// Those that these processes serve.
pub fn by(clients: &[u32]) -> Vec<Served> {
    clients.iter().filter_map(|pid| look(*pid)).collect()
}

/// Where this image is served, whose path is a real one.
pub fn at(image: &Path) -> Option<PathBuf> {
    let is_it = |disk: &Served| std::fs::canonicalize(&disk.image).is_ok_and(|found| found == image);
    seawall_daemon::process::all().filter_map(understood).find(is_it).map(|disk| disk.socket)
}

fn look(pid: u32) -> Option<Served> {
    let disk = understood(pid)?;
    let seen = ask(&disk.socket, &Asked::Look).ok().and_then(Result::ok);
    Some(Served { seen, ..disk })
}

fn understood(pid: u32) -> Option<Served> {
    let (line, from) = command_line::of(pid)?;
    of_line(&line, &from, pid)
}

fn of_line(line: &[u8], from: &Path, pid: u32) -> Option<Served> {
    let Line { command: Only::Disk(how) } = command_line::understood(line)?;
    let (image, socket) = (from.join(how.image), from.join(how.socket?));
    Some(Served { image, socket, pid, seen: None })
}

/// For `top` and the metrics: those that answer.
pub fn disks(clients: &[u32]) -> Vec<seawall_awr::disks::Disk> {
    let disk = |disk: Served| {
        let Seen { bytes, queues, counted } = disk.seen?;
        let Counted { reads, read_bytes, writes, written_bytes, flushes, discards } = counted;
        let counts = [reads, read_bytes, writes, written_bytes, flushes, discards];
        Some(seawall_awr::disks::Disk { image: disk.image, bytes, queues, counts })
    };
    by(clients).into_iter().filter_map(disk).collect()
}

/// For `status`.
pub fn words(seen: &Seen) -> String {
    let guest = match seen.queues {
        0 => "no guest".to_owned(),
        1 => "a guest with 1 queue".to_owned(),
        n => format!("a guest with {n} queues"),
    };
    let Counted { reads, writes, flushes, .. } = seen.counted;
    format!("{}, {guest}, {reads} reads, {writes} writes, {flushes} flushes", size::human(seen.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_serves_a_disk_is_named() {
        let look = |line: &str| of_line(line.replace(' ', "\0").as_bytes(), Path::new("/from"), u32::MAX);
        let served =
            Served { image: "/from/vm.img".into(), socket: "/run/s".into(), pid: u32::MAX, seen: None };
        assert_eq!(look("/bin/seawall disk vm.img --socket /run/s --pool /p"), Some(served));
        assert_eq!(look("/bin/seawall status"), None);
        assert_eq!(look("qemu-system-x86_64 -m 1G"), None);
    }
}
