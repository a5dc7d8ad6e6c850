//! Every other operation: fuser's, which reads requests from a socket as it would from /dev/fuse.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fuser::{Config, InitFlags, Session, SessionACL};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use zerocopy::{FromBytes, IntoBytes};

use super::abi::{DESTROY, INIT, InHeader, InitIn, OutHeader};
use super::hot::Answered;
use super::sys::Entry;
use super::{Desk, lock};
use crate::adapter::{Adapter, LONGEST_WRITE};
use crate::fs::Fs;

/// A socket that takes the longest request, and the longest answer, as one message.
pub struct Pair {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Pair {
    /// Makes one.
    ///
    /// # Errors
    /// What the kernel says: others than root may not have one that is large enough.
    pub fn new() -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        for end in [&ours, &theirs] {
            sockopt::set_socket_send_buffer_size_force(end, 4 * LONGEST_WRITE as usize)?;
        }
        Ok(Self { ours, theirs })
    }
}

/// The kernel's side of the socket.
pub struct Forward(OwnedFd);

impl Forward {
    /// Starts a session, and what takes its answers to the desk.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(Pair { ours, theirs }: Pair, fs: &Arc<Fs>, desk: &Arc<Desk>) -> io::Result<Self> {
        let all = InitFlags::all().bits();
        let (flags, flags2) = (all as u32, (all >> 32) as u32);
        let init = InitIn { major: 7, minor: 40, flags, flags2, ..InitIn::default() };
        let len = (size_of::<InHeader>() + size_of::<InitIn>()) as u32;
        let head = InHeader { len, opcode: INIT, unique: 1, ..InHeader::default() };
        send(&ours, &[head.as_bytes(), init.as_bytes()])?;
        let mut config = Config::default();
        config.n_threads = Some(1);
        let session = Session::from_fd(Adapter(Arc::clone(fs)), theirs, SessionACL::All, config)?;
        rustix::io::read(&ours, &mut [0u8; 256])?;
        std::thread::Builder::new().name("names".into()).spawn(move || session.run())?;
        let (replies, desk) = (ours.try_clone()?, Arc::clone(desk));
        std::thread::Builder::new().name("answers".into()).spawn(move || answers(&replies, &desk))?;
        Ok(Self(ours))
    }

    /// Passes a request on.
    pub fn send(&self, desk: &Desk, entry: &'static mut Entry) -> Answered {
        let head = entry.request();
        let fixed = (head.len as usize).saturating_sub(size_of::<InHeader>() + entry.data().len());
        let message =
            [head.as_bytes(), &entry.operation()[..fixed.min(entry.operation().len())], entry.data()]
                .concat();
        lock(&desk.away).insert(head.unique, entry);
        if let Err(error) = send(&self.0, &[&message]) {
            let entry = lock(&desk.away).remove(&head.unique)?;
            entry.answer(Err(error.raw_os_error().unwrap_or(5)));
            return Some(entry);
        }
        None
    }

    /// Ends the session.
    pub fn finish(&self) {
        let len = size_of::<InHeader>() as u32;
        let head = InHeader { len, opcode: DESTROY, ..InHeader::default() };
        let _ = send(&self.0, &[head.as_bytes()]);
    }
}

fn send(to: &OwnedFd, parts: &[&[u8]]) -> io::Result<usize> {
    let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    Ok(rustix::io::writev(to, &parts)?)
}

fn answers(from: &OwnedFd, desk: &Desk) {
    let mut room = vec![0; LONGEST_WRITE as usize + size_of::<OutHeader>()];
    loop {
        let len = match rustix::io::readv(from, &mut [IoSliceMut::new(&mut room)]) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return,
            Ok(len) => len,
        };
        let Ok((head, rest)) = OutHeader::read_from_prefix(&room[..len]) else { return };
        let Some(entry) = lock(&desk.away).remove(&head.unique) else { continue };
        entry.room()[..rest.len()].copy_from_slice(rest);
        entry.answer(if head.error == 0 { Ok(rest.len()) } else { Err(-head.error) });
        desk.hand_in(entry);
    }
}
