//! Which disks a pool has: `status` names them.
//!
//! Input: the pool's clients, which the daemon lists. Output: what those of them that serve a disk were started with.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::super::command_line;
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
    let (line, from) = command_line::of(pid)?;
    understood(&line, &from, pid)
}

fn understood(line: &[u8], from: &Path, pid: u32) -> Option<Served> {
    let Line { command: Only::Disk(how) } = command_line::understood(line)?;
    let (image, socket) = (from.join(how.image), from.join(how.socket));
    Some(Served { image, socket, pid, queues: queues(pid) })
}

/// A queue that is served has a thread of its own, which is called so.
fn queues(pid: u32) -> usize {
    command_line::threads(pid, "queue-")
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
