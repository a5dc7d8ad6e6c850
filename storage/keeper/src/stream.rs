//! A connection, in clear text or by TLS, which the kernel or this process speaks: one type for both ends, whether it waits
//! or not.
//!
//! The socket says whether it waits: one with a timeout fails with `WouldBlock` after that, one that never waits at once.
//! Nobody else has a thread for it: what TLS has to send or to take is done by whoever sends or reads.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::Connection;
use seawall_media::locks::lock;

use crate::tls::{End, Records, TlsError, in_kernel};

/// A connection.
pub enum Stream {
    /// As it is.
    Clear(TcpStream),
    /// The kernel encrypts: it is used as one in clear text, by any process that has it.
    Kernel(TcpStream),
    /// This process encrypts.
    Tls(Box<Tls>),
}

/// One that this process encrypts.
pub struct Tls {
    socket: TcpStream,
    session: Mutex<Connection>,
    /// Whose certificate is at fault if the other one refuses.
    end: End,
}

impl Stream {
    /// What is below.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Clear(socket) | Self::Kernel(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    /// Bytes to read that the socket does not tell of: they were taken from it with others.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Clear(_) | Self::Kernel(_) => false,
            Self::Tls(tls) => {
                let state = lock(&tls.session).process_new_packets();
                // An error is there to be read.
                state.map_or(true, |state| state.plaintext_bytes_to_read() > 0)
            }
        }
    }

    /// Reads what is there; 0: the other end hung up.
    ///
    /// # Errors
    /// The kernel's; [`TlsError`] within.
    pub fn take(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => (&mut &*socket).read(bytes),
            Self::Kernel(socket) => (&mut &*socket).read(bytes).map_err(in_kernel::in_words),
            Self::Tls(tls) => tls.take(bytes),
        }
    }

    /// Sends all of it. `is_full`: the socket takes no more now; what to do then.
    ///
    /// # Errors
    /// The kernel's, or `is_full`'s.
    pub fn give(
        &self,
        bytes: &[u8],
        mut is_full: impl FnMut(&TcpStream) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Clear(socket) | Self::Kernel(socket) => {
                push(socket, bytes.len(), &mut is_full, |sent| (&mut &*socket).write(&bytes[sent..]))
            }
            Self::Tls(tls) => tls.give(bytes, &mut is_full),
        }
    }
}

/// Sends so many bytes, some at a time.
fn push(
    socket: &TcpStream,
    all: usize,
    is_full: &mut impl FnMut(&TcpStream) -> io::Result<()>,
    mut some: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<()> {
    let mut sent = 0;
    while sent < all {
        match some(sent) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(more) => sent += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_full(socket)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Tls {
    /// Agrees with the other end on keys, for at most so long.
    ///
    /// # Errors
    /// The kernel's; [`TlsError`] within.
    pub(crate) fn shake(
        socket: TcpStream,
        session: Connection,
        end: End,
        patience: Duration,
    ) -> io::Result<Self> {
        let tls = Self { socket, session: Mutex::new(session), end };
        let (begin, mut records) = (Instant::now(), Records::new(&tls.socket));
        loop {
            let mut session = lock(&tls.session);
            tls.flush(&mut session, &mut |_| Err(io::ErrorKind::TimedOut.into()))?;
            if !session.is_handshaking() {
                drop(session);
                return Ok(tls);
            }
            let left = patience.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
            tls.socket.set_read_timeout(Some(left))?;
            match tls.more(&mut session, &mut records) {
                Ok(0) => return Err(TlsError::HungUp.into()),
                Ok(_) if begin.elapsed() < patience => {}
                Ok(_) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The kernel encrypts from now on. What came behind the [handshake](Records) is still the socket's.
    ///
    /// # Errors
    /// [`TlsError`] within: the connection is of no use any more.
    pub(crate) fn into_kernel(self) -> io::Result<Stream> {
        let session = self.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        let secrets = session.dangerous_extract_secrets();
        in_kernel::take(&self.socket, secrets.map_err(|error| TlsError::of(error, &self.end))?)?;
        Ok(Stream::Kernel(self.socket))
    }

    /// The certificate of the other end, after the handshake.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        let session = lock(&self.session);
        session.peer_certificates().and_then(|chain| chain.first()).map(|first| first.to_vec())
    }

    fn take(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut session = lock(&self.session);
        loop {
            match session.reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It ended without saying so. Every frame says how long it is: nothing can be cut off unseen.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.more(&mut session, &mut &self.socket)?;
            // Keys are renewed now and then, and that is answered. What is not sent now goes with the next frame.
            let _ = self.flush(&mut session, &mut |_| Err(io::ErrorKind::WouldBlock.into()));
        }
    }

    /// Takes more from the socket; 0: the other end hung up.
    fn more(&self, session: &mut Connection, socket: &mut dyn Read) -> io::Result<usize> {
        let more = loop {
            match session.read_tls(socket) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                more => break more?,
            }
        };
        if let Err(error) = session.process_new_packets() {
            // The other end hears why, if it can.
            let _ = self.flush(session, &mut |_| Err(io::ErrorKind::WouldBlock.into()));
            return Err(TlsError::of(error, &self.end).into());
        }
        Ok(more)
    }

    fn give(&self, bytes: &[u8], is_full: &mut impl FnMut(&TcpStream) -> io::Result<()>) -> io::Result<()> {
        let mut session = lock(&self.session);
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = session.writer().write(rest)?;
            rest = &rest[taken..];
            self.flush(&mut session, is_full)?;
        }
        Ok(())
    }

    /// Sends what is encrypted.
    fn flush(
        &self,
        session: &mut Connection,
        is_full: &mut impl FnMut(&TcpStream) -> io::Result<()>,
    ) -> io::Result<()> {
        while session.wants_write() {
            push(&self.socket, 1, is_full, |_| session.write_tls(&mut &self.socket))?;
        }
        Ok(())
    }
}

/// One that waits: a socket that takes no more within its time has failed.
impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.give(bytes, |_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        Stream::take(self, bytes)
    }
}
