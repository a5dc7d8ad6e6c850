//! Which mounts a pool has: `status` names them.
//!
//! Input: the pool's clients, which the daemon lists. Output: what those of them that serve a mount were started with.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::super::command_line;
use super::Mount;

/// The command line of a process that serves a mount, read as by [`crate::Cli`], which knows more commands.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Only,
}

#[derive(clap::Subcommand)]
enum Only {
    Mount(Mount),
}

/// One mount.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Served {
    /// The directory that holds the files.
    #[serde(serialize_with = "seawall_core::path_text::serialize")]
    pub backing: PathBuf,
    /// Where programs use them.
    #[serde(serialize_with = "seawall_core::path_text::serialize")]
    pub mountpoint: PathBuf,
    /// The process that serves.
    pub pid: u32,
    /// By which way the kernel's requests come: `ring`, or `device`.
    pub requests: &'static str,
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
    let Line { command: Only::Mount(how) } = command_line::understood(line)?;
    how.serving.then(|| Served {
        backing: from.join(how.backing),
        mountpoint: from.join(how.mountpoint),
        pid,
        requests: way(pid),
    })
}

/// An io_uring of the mount has a thread of its own, which is called so.
fn way(pid: u32) -> &'static str {
    if command_line::threads(pid, "ring-") > 0 { "ring" } else { "device" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_serves_a_mount_is_named() {
        let look = |line: &str| understood(line.replace(' ', "\0").as_bytes(), Path::new("/from"), u32::MAX);
        let served =
            Served { backing: "/b".into(), mountpoint: "/from/at".into(), pid: u32::MAX, requests: "device" };
        assert_eq!(look("/bin/seawall mount --preset sqlite /b at --serving"), Some(served));
        assert_eq!(look("/bin/seawall mount --preset sqlite /b at"), None, "its supervisor");
        assert_eq!(look("postgres -D /data"), None);
        assert_eq!(look(""), None);
    }
}
