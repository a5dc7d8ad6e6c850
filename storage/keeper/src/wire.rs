//! A connection to a keeper, as a writer uses it. Nobody sleeps in it for what has not come yet.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use seawall_media::{LINE, connection};
use seawall_wire::keeper::Frame;

use crate::stream::Stream;
use crate::tls::in_kernel;

/// A keeper whose connection takes no more bytes for as long is lost.
const STALL: Duration = Duration::from_millis(40);
/// Bytes that a connection takes while its keeper is busy.
const SEND_BUFFER: usize = 8 << 20;

/// A connection.
pub trait Wire {
    /// Sends these bytes.
    ///
    /// # Errors
    /// The connection is lost, or takes no more.
    fn send_all(&self, bytes: &[u8]) -> io::Result<()>;

    /// Reads what has come, at most what is wanted of a line; 0: the other end hung up.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing yet; else the connection is lost.
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// What to wait on for something to read, if there is such a thing.
    fn as_fd(&self) -> Option<BorrowedFd<'_>>;

    /// True if there is something to read of which that does not tell.
    fn has_more(&self) -> bool {
        false
    }

    /// The connection, if other processes may send on it and hear from it as well: then [`read`](Self::read) takes whole
    /// lines.
    fn shared(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// True if its keys are good for so many records only, and nobody renews them on it.
    fn wears(&self) -> bool {
        false
    }

    /// True if it takes a good deal more without anybody waiting.
    fn takes_more(&self) -> bool {
        true
    }

    /// It is of no use any more, whoever else has it.
    fn hang_up(&self) {}
}

/// A frame with what is behind it, as it is sent: in one piece, or whoever waits for it is woken twice.
pub fn sealed(frame: &Frame, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LINE + body.len());
    bytes.extend_from_slice(&frame.followed_by(body.len()).seal());
    bytes.extend_from_slice(body);
    bytes
}

/// Makes a connection one that a writer can use.
pub(crate) fn prepare(stream: &Stream) -> io::Result<()> {
    let socket = stream.socket();
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    rustix::net::sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER).map_err(io::Error::from)
}

/// Waits until one of these has something to read, or for so long.
pub(crate) fn wait<'w>(wires: impl Iterator<Item = &'w (impl Wire + 'w)>, limit: Duration) {
    let mut polled = Vec::new();
    for wire in wires {
        if wire.has_more() {
            return;
        }
        polled.extend(wire.as_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    }
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    // Whatever comes of it, the next look is due.
    let _ = poll(&mut polled, Some(&limit));
}

impl Wire for Stream {
    fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        let begin = Instant::now();
        self.give(bytes, |socket| {
            if begin.elapsed() > STALL {
                return Err(io::Error::other("it takes no more bytes"));
            }
            let nap = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let _ = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&nap));
            Ok(())
        })
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => whole_line(socket, bytes),
            Self::Kernel(socket) => whole_line(socket, bytes).map_err(in_kernel::in_words),
            Self::Tls(_) => self.take(bytes),
        }
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket().as_fd())
    }

    fn has_more(&self) -> bool {
        Self::has_more(self)
    }

    fn shared(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Clear(_) | Self::Kernel(_) => self.as_fd(),
            // What was encrypted before is this process's to know.
            Self::Tls(_) => None,
        }
    }

    fn wears(&self) -> bool {
        matches!(self, Self::Kernel(_))
    }

    fn takes_more(&self) -> bool {
        // The kernel says so when a third of the buffer is free.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(self.socket(), PollFlags::OUT)], Some(&now)) != Ok(0)
    }

    fn hang_up(&self) {
        // It may be down already.
        let _ = self.socket().shutdown(Shutdown::Both);
    }
}

/// Reads a line if all of it is there, and nothing else: others may read here as well.
fn whole_line(socket: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    let fd = socket.as_fd();
    let next =
        connection::peek(fd).and_then(|there| if there.is_some() { connection::take(fd) } else { Ok(None) });
    match (next, into.first_chunk_mut()) {
        (Ok(Some(line)), Some(into)) => {
            *into = line;
            Ok(LINE)
        }
        (Err(Errno::PIPE), _) => Ok(0),
        (Err(error), _) => Err(error.into()),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}
