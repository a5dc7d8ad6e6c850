//! A connection to another host, as several processes of this one use it: frames of a line each, some with bytes behind
//! them, and answers of one line. Nobody sleeps in it.
//!
//! Whoever hears takes a whole line or nothing, in one call: so several may, and none takes a part of what another one needs.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::{LINE, Region};

/// Sends a line, and `len` bytes of memory behind it, as far as the connection takes more: `from` bytes of both are sent
/// already. How many are sent now.
///
/// # Errors
/// AGAIN: it takes no more now. Else the connection is of no use any more.
pub fn send(
    fd: BorrowedFd<'_>,
    line: &[u8; LINE],
    memory: &Region,
    (at, len): (usize, usize),
    from: usize,
) -> Result<usize, Errno> {
    // SAFETY: the caller has this stretch to itself (see `Draft`): nothing stores to it meanwhile.
    let body = unsafe { memory.bytes(at, len) };
    let (line, body) = (&line[from.min(LINE)..], &body[from.saturating_sub(LINE)..]);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        let parts = [IoSlice::new(line), IoSlice::new(body)];
        match sendmsg(fd, &parts, &mut SendAncillaryBuffer::default(), flags) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// How many records TLS makes of so many bytes that were sent in one call, at most.
pub const fn records(bytes: usize) -> u64 {
    const LONGEST: usize = 1 << 14;
    (bytes / LONGEST + 1) as u64
}

/// Looks at the next line, if all of it is there, and leaves it there.
///
/// # Errors
/// PIPE: the other end hung up. Else what the kernel said.
pub fn peek(fd: BorrowedFd<'_>) -> Result<Option<[u8; LINE]>, Errno> {
    line(fd, RecvFlags::PEEK)
}

/// Takes the next line, if all of it was there when it was [looked at](peek): somebody else may have taken that one.
///
/// # Errors
/// As for [`peek`].
pub fn take(fd: BorrowedFd<'_>) -> Result<Option<[u8; LINE]>, Errno> {
    line(fd, RecvFlags::empty())
}

fn line(fd: BorrowedFd<'_>, flags: RecvFlags) -> Result<Option<[u8; LINE]>, Errno> {
    let mut line = [0; LINE];
    loop {
        match recv(fd, &mut line, flags | RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Errno::PIPE),
            Ok((LINE, _)) => return Ok(Some(line)),
            Ok(_) | Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until one of these has something to hear, at most so many nanoseconds, less than a second. False: none has.
pub fn wait<const N: usize>(fds: &[Option<BorrowedFd<'_>>; N], ns: u32) -> bool {
    let mut there = fds.iter().flatten();
    let Some(first) = there.next() else { return false };
    let mut polled: [PollFd<'_>; N] =
        core::array::from_fn(|_| PollFd::from_borrowed_fd(*first, PollFlags::IN));
    let mut count = 1;
    for fd in there {
        polled[count] = PollFd::from_borrowed_fd(*fd, PollFlags::IN);
        count += 1;
    }
    let limit = Timespec { tv_sec: 0, tv_nsec: ns.into() };
    poll(&mut polled[..count], Some(&limit)) != Ok(0)
}

/// Waits until the connection takes more bytes, at most so many nanoseconds, less than a second.
pub fn wait_for_room(fd: BorrowedFd<'_>, ns: u32) {
    let limit = Timespec { tv_sec: 0, tv_nsec: ns.into() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], Some(&limit));
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_line_is_taken_whole_or_not_at_all() {
        let (mut far, near) = UnixStream::pair().expect("a pair");
        far.write_all(&[1; LINE / 2]).expect("sent");
        assert_eq!((peek(near.as_fd()), peek(near.as_fd())), (Ok(None), Ok(None)));
        far.write_all(&[1; LINE / 2]).expect("sent");
        far.write_all(&[2; LINE]).expect("sent");
        assert_eq!(peek(near.as_fd()), Ok(Some([1; LINE])));
        assert_eq!(take(near.as_fd()), Ok(Some([1; LINE])));
        assert_eq!(take(near.as_fd()), Ok(Some([2; LINE])));
        assert_eq!(take(near.as_fd()), Ok(None));
        drop(far);
        assert_eq!(peek(near.as_fd()), Err(Errno::PIPE));
    }

    #[test]
    fn what_is_sent_in_parts_arrives_as_one() {
        let (mut far, near) = UnixStream::pair().expect("a pair");
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(1 << 20).expect("room");
        let memory = Region::map(&file, 1 << 20, false).expect("a mapping");
        let body: Vec<u8> = (0..1 << 20).map(|i| (i / 64) as u8).collect();
        memory.copy_in(0, &body);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all)
        });
        let mut sent = 0;
        while sent < LINE + body.len() {
            match send(near.as_fd(), &[7; LINE], &memory, (0, body.len()), sent) {
                Ok(more) => sent += more,
                Err(Errno::AGAIN) => wait_for_room(near.as_fd(), 1_000_000),
                Err(error) => panic!("{error}"),
            }
        }
        drop(near);
        let all = reader.join().expect("no panic").expect("read");
        assert!(all[..LINE] == [7; LINE] && all[LINE..] == body[..]);
    }
}
