//! Every other operation: fuser's, which reads requests from a socket as it would from /dev/fuse.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use fuser::{Config, InitFlags, Session, SessionACL};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::net::{send, shutdown, socketpair, sockopt};
use seawall_media::locks::lock;
use zerocopy::{FromBytes, IntoBytes};

use super::abi::{INIT, InHeader, InitIn, OutHeader};
use super::desk::{Answered, Desk};
use super::sys::UringEntry;
use crate::adapter::{Adapter, LONGEST_WRITE};
use crate::fs::Fs;
use seawall_daemon::workers::Workers;

/// Threads that read from the socket. One that waits for the daemon, which asks the kernel about our files, must not
/// keep the answer from it.
const THREADS: usize = 2;
const EIO: i32 = 5;

/// The kernel's side of the socket.
pub struct Forward {
    ours: Arc<OwnedFd>,
    late: Arc<Late>,
    workers: Workers,
    ends: Vec<JoinHandle<()>>,
}

/// Requests that the socket has no room for, in their order. `None`: nobody sends any.
type Late = Mutex<Option<VecDeque<(u64, Vec<u8>)>>>;

impl Forward {
    /// Starts a session, and what takes its answers to the desk.
    ///
    /// # Errors
    /// What the kernel says: a process that lacks CAP_NET_ADMIN may not have a socket that is long enough.
    pub fn new(fs: &Arc<Fs>, desk: &Arc<Desk>) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        let mut forward = Self::on(ours, fs.workers.clone());
        let session = forward.session(fs, theirs)?;
        let names = std::thread::Builder::new().name("names".into());
        forward.ends.push(names.spawn(move || drop(session.run()))?);
        let (replies, desk) = (Arc::clone(&forward.ours), Arc::clone(desk));
        let answers = std::thread::Builder::new().name("answers".into());
        forward.ends.push(answers.spawn(move || {
            take_answers(&replies, &desk);
            desk.give_up();
        })?);
        Ok(forward)
    }

    fn on(ours: OwnedFd, workers: Workers) -> Self {
        Self { ours: Arc::new(ours), late: Arc::default(), workers, ends: Vec::new() }
    }

    /// Greets it as the kernel would: with everything that it may want.
    fn session(&self, fs: &Arc<Fs>, theirs: OwnedFd) -> io::Result<Session<Adapter>> {
        let all = InitFlags::all().bits();
        let (flags, flags2) = (all as u32, (all >> 32) as u32);
        let init = InitIn { major: 7, minor: 40, flags, flags2, ..InitIn::default() };
        let len = (size_of::<InHeader>() + size_of::<InitIn>()) as u32;
        let head = InHeader { len, opcode: INIT, unique: 1, ..InHeader::default() };
        rustix::io::writev(&self.ours, &[IoSlice::new(head.as_bytes()), IoSlice::new(init.as_bytes())])?;
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        let session = Session::from_fd(Adapter(Arc::clone(fs)), theirs, SessionACL::All, config)?;
        rustix::io::read(&self.ours, &mut [0u8; 256])?;
        Ok(session)
    }

    /// Passes a request on. It never waits for the thread that reads it, which may wait for what the queue has to give back.
    pub fn send(&self, desk: &Arc<Desk>, entry: &'static mut UringEntry) -> Answered {
        let head = entry.request();
        let fixed = (head.len as usize).saturating_sub(size_of::<InHeader>() + entry.data().len());
        let message =
            [head.as_bytes(), &entry.operation()[..fixed.min(entry.operation().len())], entry.data()]
                .concat();
        lock(&desk.away).insert(head.unique, entry);
        let mut late = lock(&self.late);
        if let Some(late) = &mut *late {
            late.push_back((head.unique, message));
            return None;
        }
        match send(&self.ours, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) => None,
            Err(Errno::AGAIN) => {
                *late = Some(VecDeque::from([(head.unique, message)]));
                let (ours, late, desk) = (Arc::clone(&self.ours), Arc::clone(&self.late), Arc::clone(desk));
                self.workers.run(move || send_late(&ours, &late, &desk));
                None
            }
            Err(error) => refused(desk, head.unique, error),
        }
    }

    /// Ends the session.
    pub fn finish(&mut self) {
        let _ = shutdown(&*self.ours, Shutdown::Both);
        self.ends.drain(..).for_each(|end| drop(end.join()));
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A socket that takes the longest request, and the longest answer, as one message.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for end in [&ours, &theirs] {
        sockopt::set_socket_send_buffer_size_force(end, 4 * LONGEST_WRITE as usize).map_err(|error| {
            io::Error::other(format!("a large socket buffer needs CAP_NET_ADMIN: {error}"))
        })?;
    }
    Ok((ours, theirs))
}

/// Waits until the socket takes them, all that there are.
fn send_late(to: &OwnedFd, late: &Late, desk: &Desk) {
    loop {
        let mut left = lock(late);
        let Some((unique, message)) = left.as_mut().and_then(VecDeque::pop_front) else {
            *left = None;
            return;
        };
        drop(left);
        if let Err(error) = send(to, &message, SendFlags::NOSIGNAL)
            && let Some(entry) = refused(desk, unique, error)
        {
            desk.hand_in(entry);
        }
    }
}

/// Takes back what could not be sent.
fn refused(desk: &Desk, unique: u64, error: Errno) -> Answered {
    let entry = lock(&desk.away).remove(&unique)?;
    entry.answer(Err(error.raw_os_error()));
    Some(entry)
}

/// Until the session has ended.
fn take_answers(from: &OwnedFd, desk: &Desk) {
    // One byte more than there can be: a longer one would be cut, and taken for whole.
    let mut room = vec![0; LONGEST_WRITE as usize + size_of::<OutHeader>() + 1];
    loop {
        let len = match rustix::io::readv(from, &mut [IoSliceMut::new(&mut room)]) {
            Err(Errno::INTR) => continue,
            Ok(0) | Err(_) => return,
            Ok(len) => len,
        };
        let Ok((head, rest)) = OutHeader::read_from_prefix(&room[..len]) else { return };
        let Some(entry) = lock(&desk.away).remove(&head.unique) else { continue };
        let done = match entry.room().get_mut(..rest.len()) {
            Some(into) if head.error == 0 => {
                into.copy_from_slice(rest);
                Ok(rest.len())
            }
            Some(_) => Err(-head.error),
            None => Err(EIO),
        };
        entry.answer(done);
        desk.hand_in(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// More than a socket takes: fuser's threads wait for the daemon, say.
    const MANY: usize = 400;

    fn desk() -> Arc<Desk> {
        Desk::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd"))
    }

    /// Nobody reads what comes out at the other end.
    fn unread() -> (Forward, OwnedFd) {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        (Forward::on(ours, Workers::new("slow", 256 << 10, 16)), theirs)
    }

    fn request(unique: u64) -> &'static mut UringEntry {
        let entry = UringEntry::new(4096);
        entry.ask(InHeader { len: size_of::<InHeader>() as u32, unique, ..InHeader::default() });
        entry
    }

    #[test]
    fn a_queue_waits_for_nobody_who_reads_what_it_passes_on() {
        let (forward, theirs) = unread();
        let (tell, told) = channel();
        let desk = desk();
        let there = Arc::clone(&desk);
        std::thread::spawn(move || {
            let refused =
                (1..=MANY as u64).filter_map(|unique| forward.send(&there, request(unique))).count();
            let _ = tell.send((forward, refused));
        });
        let sent = told.recv_timeout(Duration::from_secs(20)).expect("it did not wait");
        assert_eq!((sent.1, lock(&desk.away).len()), (0, MANY));
        // All arrive when somebody reads.
        let mut seen: Vec<u64> = Vec::new();
        while seen.len() < MANY {
            let mut head = [0; size_of::<InHeader>()];
            rustix::io::read(&theirs, &mut head).expect("a request");
            seen.push(InHeader::read_from_bytes(&head).expect("whole").unique);
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=MANY as u64), "each once");
    }

    #[test]
    fn requests_are_answered_when_nobody_is_left_to_answer_them() {
        let (desk, (forward, theirs)) = (desk(), unread());
        assert!(forward.send(&desk, request(1)).is_none());
        drop(theirs);
        take_answers(&forward.ours, &desk);
        desk.give_up();
        assert!(lock(&desk.away).is_empty());
        assert!(forward.send(&desk, request(2)).is_some(), "refused at once");
        assert_eq!(lock(&desk.done).len(), 1);
    }

    #[test]
    fn an_answer_that_is_too_long_is_an_error() {
        let (desk, (forward, theirs)) = (desk(), unread());
        forward.send(&desk, request(7));
        rustix::io::read(&theirs, &mut [0; 100]).expect("the request");
        let head = OutHeader { len: 0, error: 0, unique: 7 };
        send(&theirs, &[head.as_bytes(), &[0; 5000]].concat(), SendFlags::empty()).expect("sent");
        drop(theirs);
        take_answers(&forward.ours, &desk);
        let done = std::mem::take(&mut *lock(&desk.done));
        let said: Vec<_> = done.iter().map(|entry| entry.said().error).collect();
        assert_eq!(said, [-EIO]);
    }
}
