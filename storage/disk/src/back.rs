//! The way back to QEMU: it reads the disk's configuration again, and the guest hears of another size.
//!
//! The vhost crate takes the socket for that (VHOST_USER_SET_BACKEND_REQ_FD) and has no call that sends this message by it. So the
//! descriptor is looked at before the crate takes it off the connection.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use seawall_media::locks::lock;

/// Bytes of a message's head: its number, its flags, and how much follows.
const HEAD: usize = 12;
/// The message that brings the socket.
const SET_BACKEND_REQ_FD: u32 = 21;
/// What is sent by it, of the protocol's version 1, without a body.
const CONFIG_CHANGE: [u32; 3] = [2, 1, 0];

/// The socket, as long as a guest is connected that has one.
#[derive(Default)]
pub struct Back(Mutex<Option<OwnedFd>>);

impl Back {
    /// Keeps the socket that the next message on this connection brings, if it does.
    pub fn look(&self, connection: impl AsFd) {
        if let Some(socket) = next(connection) {
            *lock(&self.0) = Some(socket);
        }
    }

    /// Has the guest hear that its disk's configuration is another one.
    pub fn has_changed(&self) {
        if let Some(socket) = &*lock(&self.0) {
            let message = CONFIG_CHANGE.map(u32::to_le_bytes);
            // A guest that is gone reads it when it comes again.
            let _ =
                rustix::net::send(socket, message.as_flattened(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// The guest is gone.
    pub fn close(&self) {
        lock(&self.0).take();
    }
}

fn next(connection: impl AsFd) -> Option<OwnedFd> {
    let mut head = [0; HEAD];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got =
        rustix::net::recvmsg(connection, &mut [IoSliceMut::new(&mut head)], &mut control, flags).ok()?;
    let is_it = got.bytes == HEAD && head[..4] == SET_BACKEND_REQ_FD.to_le_bytes();
    // What came along is ours as well, and closed here.
    let brought = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    brought.filter(|_| is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_socket_is_found_and_stays_for_who_takes_it() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let way = Back::default();
        way.has_changed();
        let message = [SET_BACKEND_REQ_FD, 1, 0].map(u32::to_le_bytes);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let (raw, peer) = UnixStream::pair().expect("a pair");
        let given = [theirs.as_fd()];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&given)));
        let bytes = [std::io::IoSlice::new(message.as_flattened())];
        rustix::net::sendmsg(&raw, &bytes, &mut control, SendFlags::NOSIGNAL).expect("sent");
        way.look(&peer);
        way.has_changed();
        let mut told = [0; HEAD];
        (&ours).read_exact(&mut told).expect("told");
        assert_eq!(told, *CONFIG_CHANGE.map(u32::to_le_bytes).as_flattened());
        let mut left = [0; HEAD];
        (&peer).read_exact(&mut left).expect("still there");
        assert_eq!(left, *message.as_flattened());
        (&raw).write_all(&[0; HEAD]).expect("another message");
        way.look(&peer);
        way.has_changed();
        (&ours).read_exact(&mut told).expect("it is the one that came");
        way.close();
        drop((theirs, peer));
        assert_eq!((&ours).read(&mut told).expect("closed"), 0);
    }
}
