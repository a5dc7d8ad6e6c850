//! Messages with descriptors over `SOCK_SEQPACKET` Unix sockets, and who is at the other end.

use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use seawall_wire::keeper::KEEPERS_MAX;
use seawall_wire::message::MESSAGE_MAX;

/// Connections that may wait to be accepted: a PostgreSQL with many backends starts many at once.
const BACKLOG: i32 = 512;

/// A message as it came.
pub struct Message {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The descriptors that came along.
    pub descriptors: Vec<OwnedFd>,
}

/// The process at the other end when it connected.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Process id.
    pub pid: u32,
    /// Effective user id.
    pub uid: u32,
}

/// Listens at `path`.
///
/// # Errors
/// What the kernel said.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    // Two processes may accept: the daemon, and its watchdog while it is stopped.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to `path`.
///
/// # Errors
/// What the kernel said.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Accepts one connection.
///
/// # Errors
/// What the kernel said.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::net::accept_with(listener, SocketFlags::CLOEXEC)?)
}

/// The same; connecting, sending and receiving end with WouldBlock after so long.
///
/// # Errors
/// What the kernel said.
pub fn connect_within(path: &Path, limit: Duration) -> io::Result<OwnedFd> {
    let socket = socket()?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(limit))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The process at the other end.
///
/// # Errors
/// What the kernel said.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(socket)?;
    let pid = credentials.pid.as_raw_nonzero().get();
    Ok(Peer { pid: pid.unsigned_abs(), uid: credentials.uid.as_raw() })
}

/// Most that come with a message: connections to a log's keepers.
const DESCRIPTORS: usize = KEEPERS_MAX;

/// Sends one message, the descriptors with it.
///
/// # Errors
/// What the kernel said.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_by(socket, bytes, descriptors, SendFlags::NOSIGNAL)
}

/// The same without descriptors, if there is room for it now.
///
/// # Errors
/// What the kernel said.
pub(crate) fn send_now(socket: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    send_by(socket, bytes, &[], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_by(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

/// Waits for one message; `None` when the other end has closed.
///
/// # Errors
/// What the kernel said.
pub fn receive(socket: impl AsFd) -> io::Result<Option<Message>> {
    thread_local! {
        /// To clear so much room for each message takes longer than to receive one.
        static ROOM: RefCell<Box<[u8]>> = RefCell::new(vec![0; MESSAGE_MAX].into_boxed_slice());
    }
    ROOM.with_borrow_mut(|room| receive_into(socket, room))
}

fn receive_into(socket: impl AsFd, room: &mut [u8]) -> io::Result<Option<Message>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        let mut into = [IoSliceMut::new(room)];
        rustix::net::recvmsg(&socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    Ok(Some(Message { bytes: room[..got.bytes].to_vec(), descriptors }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn messages_keep_their_borders_and_their_descriptors() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let listener = listen(&path).expect("a listener");
        let client = connect(&path).expect("a connection");
        let server = accept(&listener).expect("a peer");
        assert_eq!(peer(&server).expect("credentials").pid, std::process::id());
        std::fs::write(dir.path().join("f"), "content").expect("a file");
        let file = std::fs::File::open(dir.path().join("f")).expect("open");
        send(&client, b"one", &[file.as_fd()]).expect("sent");
        send(&client, b"two", &[]).expect("sent");
        let one = receive(&server).expect("received").expect("a message");
        assert_eq!(one.bytes, b"one");
        let mut same = std::fs::File::from(one.descriptors.into_iter().next().expect("a descriptor"));
        let ino = file.metadata().expect("stat").ino();
        assert_eq!(same.metadata().expect("stat").ino(), ino);
        let mut text = String::new();
        same.read_to_string(&mut text).expect("read");
        assert_eq!(text, "content");
        assert_eq!(receive(&server).expect("received").expect("a message").bytes, b"two");
        drop(client);
        assert!(receive(&server).expect("the end").is_none());
    }
}
