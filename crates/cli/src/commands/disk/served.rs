//! Which disks a pool has: `status` names them.
//!
//! Input: the pool's clients, which the daemon lists. Output: what those of them that serve a disk were started with.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Disk;

/// The command line of a process that serves a disk: as [`crate::Cli`] reads it, which knows more commands.
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
    /// How many queues a guest uses now; 0: there is no guest.
    pub queues: usize,
}

/// Those that these processes serve.
pub fn by(clients: &[u32]) -> Vec<Served> {
    clients.iter().filter_map(|pid| look(*pid)).collect()
}

fn look(pid: u32) -> Option<Served> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let from = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    understood(&line, &from, pid)
}

fn understood(line: &[u8], from: &Path, pid: u32) -> Option<Served> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    let words = line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let Line { command: Only::Disk(how) } = Line::try_parse_from(words).ok()?;
    let (image, socket) = (from.join(how.image), from.join(how.socket));
    Some(Served { image, socket, pid, queues: queues(pid) })
}

/// A queue that is served has a thread of its own, which is called so.
fn queues(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.starts_with("queue-")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_serves_a_disk_is_named() {
        let look = |line: &str| understood(line.replace(' ', "\0").as_bytes(), Path::new("/from"), u32::MAX);
        let served =
            Served { image: "/from/vm.img".into(), socket: "/run/s".into(), pid: u32::MAX, queues: 0 };
        assert_eq!(look("/bin/seawall disk vm.img --socket /run/s --pool /p"), Some(served));
        assert_eq!(look("/bin/seawall status"), None);
        assert_eq!(look("qemu-system-x86_64 -m 1G"), None);
    }
}
