//! What others ask of a disk that is served: how it is, and that it becomes larger. A socket beside the one for QEMU; one question
//! and one answer for each connection, as JSON.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use seawall_daemon::{net, place};
use serde::{Deserialize, Serialize};

pub use crate::count::Seen;
use crate::disk::Disk;

/// Whoever says nothing for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(2);

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub enum Asked {
    /// How it is.
    Look,
    /// To have so many bytes.
    Resize(u64),
}

/// The answer: how it is now, or why it is not as it should be.
pub type Answer = Result<Seen, String>;

/// Where a disk that is served at `socket` is asked.
fn place(socket: &Path) -> PathBuf {
    place::beside(socket, ".control")
}

/// Asks.
///
/// # Errors
/// Nobody serves there, or makes sense.
pub fn ask(socket: &Path, asked: &Asked) -> io::Result<Answer> {
    let connection = net::connect(&place(socket))?;
    net::send(&connection, &serde_json::to_vec(asked)?, &[])?;
    let answer = net::receive(&connection)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(serde_json::from_slice(&answer.bytes)?)
}

/// Where questions come in.
pub struct Control {
    listener: OwnedFd,
    path: PathBuf,
}

impl AsFd for Control {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Control {
    /// For the disk at `socket`, whose place is the caller's alone.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(socket: &Path) -> io::Result<Self> {
        let path = place(socket);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        Ok(Self { listener: net::listen(&path)?, path })
    }

    /// Answers one question, of whoever may end this process.
    pub fn answer(&self, disk: &Disk) {
        let Ok(connection) = net::accept(&self.listener) else { return };
        let _ = set_socket_timeout(&connection, Timeout::Recv, Some(PATIENCE));
        let me = rustix::process::geteuid().as_raw();
        if !net::peer(&connection).is_ok_and(|peer| peer.uid == me || peer.uid == 0) {
            return;
        }
        let Ok(Some(message)) = net::receive(&connection) else { return };
        let answer: Answer = match serde_json::from_slice(&message.bytes) {
            Err(e) => Err(e.to_string()),
            Ok(Asked::Look) => Ok(disk.look()),
            Ok(Asked::Resize(bytes)) => {
                disk.resize(bytes).map(|()| disk.look()).map_err(|why| why.to_string())
            }
        };
        if let Ok(answer) = serde_json::to_vec(&answer) {
            let _ = net::send(&connection, &answer, &[]);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
