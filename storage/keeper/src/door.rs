//! How a keeper receives a connection: what is spoken, and who is there. And what it says of those it does not receive.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seawall_media::locks::lock;
use seawall_wire::keeper::Refusal;
use thiserror::Error;

use crate::answer::refused;
use crate::stream::Stream;
use crate::tls::files::Who;
use crate::tls::{Named, Server};
use crate::wire::sealed;

/// What TLS and what a frame begin with.
const TLS: u8 = 22;
const FRAME: u8 = b'S';
/// Lines about connections at once, and then one in so long: whoever connects again and again fills no disk.
const LINES: u32 = 20;
const QUIET: Duration = Duration::from_secs(1);
/// How long somebody who was refused has to read why, and how often that may take that long.
const PARTING: (Duration, usize) = (Duration::from_secs(1), 8);

/// Why a connection is not received.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    /// It failed.
    #[error("{0}")]
    Failed(#[from] io::Error),
    /// It ended before anything was sent on it.
    #[error("it hung up")]
    Gone,
    /// It speaks TLS, and clear text is spoken here.
    #[error("the client speaks TLS, and this keeper was started without --tls")]
    Tls,
    /// It speaks clear text, and TLS is spoken here.
    #[error("the client speaks clear text, and this keeper speaks TLS only")]
    ClearText,
}

/// A keeper's door.
pub(crate) struct Door {
    tls: Option<PathBuf>,
    patience: Duration,
    said: Mutex<Lines>,
}

/// How many lines may still be printed.
struct Lines {
    left: u32,
    /// Up to when they were counted.
    at: Instant,
    unsaid: u64,
}

impl Lines {
    /// If a line may be printed now: how many were not printed since the last one.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let more = now.duration_since(self.at).as_secs() / QUIET.as_secs();
        self.at += QUIET * u32::try_from(more).unwrap_or(0);
        self.left = LINES.min(self.left.saturating_add(u32::try_from(more).unwrap_or(LINES)));
        if self.left == 0 {
            self.unsaid += 1;
            return None;
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

impl Door {
    pub fn new(tls: Option<PathBuf>, patience: Duration) -> Self {
        let said = Mutex::new(Lines { left: LINES, at: Instant::now(), unsaid: 0 });
        Self { tls, patience, said }
    }

    /// Receives a connection: what to use it by, and who is there, as far as a certificate says so.
    pub fn open(&self, socket: TcpStream) -> Result<(Stream, Option<Who>), Trouble> {
        let mut first = [0];
        if socket.peek(&mut first)? == 0 {
            return Err(Trouble::Gone);
        }
        let Some(directory) = &self.tls else {
            if first[0] == TLS {
                // Its end of TLS takes that for what it is.
                turn_away(&socket, "this keeper speaks clear text");
                return Err(Trouble::Tls);
            }
            return Ok((Stream::Clear(socket), None));
        };
        if first[0] != TLS {
            if first[0] == FRAME {
                turn_away(
                    &socket,
                    "this keeper speaks TLS only: name the directory of the certificates with --tls",
                );
            }
            return Err(Trouble::ClearText);
        }
        let again = socket.try_clone()?;
        // Its files are read anew: a certificate that was renewed counts from now on.
        let server = Server::new(directory).map_err(io::Error::from);
        match server.and_then(|server| server.shake(socket, self.patience)) {
            Ok(Named { stream, who }) => Ok((stream, Some(who))),
            Err(error) => {
                part(&again);
                Err(error.into())
            }
        }
    }

    /// Says what was wrong with a connection, now and then.
    pub fn say(&self, from: SocketAddr, trouble: &Trouble) {
        if matches!(trouble, Trouble::Gone) {
            return;
        }
        let Some(unsaid) = lock(&self.said).take(Instant::now()) else { return };
        let others = if unsaid == 0 { String::new() } else { format!(" (and {unsaid} others before)") };
        seawall_media::errln!("seawall: refused {from}: {trouble}{others}");
    }
}

fn turn_away(socket: &TcpStream, why: &str) {
    // Or there is nobody to hear it.
    let _ = (&mut &*socket).write_all(&sealed(&refused(Refusal::Forbidden), why.as_bytes()));
    part(socket);
}

/// Leaves the other end the time to read the last message: a connection that ends with unread bytes takes that away.
pub(crate) fn part(socket: &TcpStream) {
    let (each, times) = PARTING;
    let ready = socket.shutdown(Shutdown::Write).and_then(|()| socket.set_read_timeout(Some(each)));
    let mut rest = [0; 4096];
    let mut left = times;
    while ready.is_ok() && left > 0 && (&mut &*socket).read(&mut rest).is_ok_and(|read| read > 0) {
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_counted_and_not_listed() {
        let at = Instant::now();
        let mut lines = Lines { left: LINES, at, unsaid: 0 };
        let said = (0..1000).filter(|_| lines.take(at).is_some()).count();
        assert_eq!(said, LINES as usize);
        assert_eq!(lines.take(at + QUIET / 2), None);
        assert_eq!(lines.take(at + QUIET), Some(1000 - u64::from(LINES) + 1));
        assert_eq!((lines.take(at + QUIET), lines.take(at + QUIET * 3)), (None, Some(1)));
    }
}
