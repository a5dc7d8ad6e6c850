//! A SOCK_SEQPACKET connection that lives for one request, and descriptors by SCM_RIGHTS.

use core::ffi::c_int;
use core::mem::{offset_of, size_of, zeroed};
use core::ptr;

use libc::{cmsghdr, iovec, msghdr, sockaddr_un, timeval};
use seawall_core::Errno;
use seawall_wire::keeper::KEEPERS_MAX;
use seawall_wire::message::Reply;

use crate::sys::{self, unsafe_call};

/// Most that come with a reply: a log's keepers.
const DESCRIPTORS: usize = KEEPERS_MAX;

/// A connection; closed when dropped.
pub struct Connection(c_int);

/// What came along with a reply, in its order: pool, run-time memory, journal, its mirror, the block cache's zone, without
/// those that there are not; or connections to keepers. Closed when dropped.
pub struct Descriptors([Option<c_int>; DESCRIPTORS]);

impl Descriptors {
    /// One of them.
    pub fn get(&self, i: usize) -> Option<c_int> {
        self.0[i]
    }

    /// Which of them is the zone's, if the answer says that there is one.
    pub fn zone(&self, reply: &Reply) -> Option<usize> {
        self.0.iter().rposition(Option::is_some).filter(|at| reply.cache_len > 0 && *at >= 2)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(|fd| sys::close(*fd));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

/// Room for the control message.
#[repr(C, align(8))]
struct Control([u8; 64]);

const _: () = assert!(cmsg_len(DESCRIPTORS) <= size_of::<Control>());

const fn cmsg_len(fds: usize) -> usize {
    size_of::<cmsghdr>() + fds * size_of::<c_int>()
}

impl Connection {
    /// Connects to the socket at `path`; every step ends after so many microseconds, less than a second.
    pub fn open(path: &[u8], limit_us: u32) -> Result<Self, Errno> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        let connection = Self(unsafe_call!(SYS_socket, libc::AF_UNIX, kind, 0)? as c_int);
        for option in [libc::SO_SNDTIMEO, libc::SO_RCVTIMEO] {
            let limit = timeval { tv_sec: 0, tv_usec: limit_us as _ };
            let len = size_of::<timeval>();
            unsafe_call!(SYS_setsockopt, connection.0, libc::SOL_SOCKET, option, &raw const limit, len)?;
        }
        // SAFETY: all-zero is a valid address structure.
        let mut address: sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as _;
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = *from as _;
        }
        let len = offset_of!(sockaddr_un, sun_path) + path.len() + 1;
        again(|| unsafe_call!(SYS_connect, connection.0, &raw const address, len))?;
        Ok(connection)
    }

    /// Sends one message, perhaps with a descriptor.
    pub fn send(&self, parts: [&[u8]; 2], fd: Option<c_int>) -> Result<(), Errno> {
        let mut iov = parts.map(|p| iovec { iov_base: p.as_ptr().cast_mut().cast(), iov_len: p.len() });
        let mut control = Control([0; 64]);
        let mut message = header(&mut iov, &mut control);
        message.msg_controllen = 0;
        if let Some(fd) = fd {
            message.msg_controllen = cmsg_len(1) as _;
            let head = control.0.as_mut_ptr().cast::<cmsghdr>();
            // SAFETY: `control` is aligned and has room for a header and a descriptor.
            unsafe {
                (*head).cmsg_len = cmsg_len(1) as _;
                (*head).cmsg_level = libc::SOL_SOCKET;
                (*head).cmsg_type = libc::SCM_RIGHTS;
                head.add(1).cast::<c_int>().write(fd);
            }
        }
        again(|| unsafe_call!(SYS_sendmsg, self.0, &raw const message, libc::MSG_NOSIGNAL)).map(drop)
    }

    /// Receives one message; returns its length and the descriptors that came along.
    pub fn receive(&self, into: &mut [u8]) -> Result<(usize, Descriptors), Errno> {
        let mut iov = [iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() }];
        let mut control = Control([0; 64]);
        let mut message = header(&mut iov, &mut control);
        let len = again(|| unsafe_call!(SYS_recvmsg, self.0, &raw mut message, libc::MSG_CMSG_CLOEXEC))?;
        let mut found = [None; DESCRIPTORS];
        // SAFETY: the kernel filled `message`.
        unsafe {
            rights(
                &message,
                |i, fd| if let Some(f) = found.get_mut(i) { *f = Some(fd) } else { sys::close(fd) },
            )
        };
        Ok((len, Descriptors(found)))
    }
}

fn header(iov: &mut [iovec], control: &mut Control) -> msghdr {
    // SAFETY: all-zero is a valid message header.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = iov.as_mut_ptr();
    message.msg_iovlen = iov.len() as _;
    message.msg_control = ptr::from_mut(control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    message
}

fn again(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Calls `each` with the descriptors that a received message carries, counted from 0.
///
/// # Safety
/// `message` was filled by recvmsg(2), and its control buffer is still there.
pub unsafe fn rights(message: &msghdr, mut each: impl FnMut(usize, c_int)) {
    let (base, total) = (message.msg_control as usize, message.msg_controllen);
    let (mut at, mut n) = (0usize, 0);
    while !message.msg_control.is_null() && at + size_of::<cmsghdr>() <= total {
        let head = (base + at) as *const cmsghdr;
        // SAFETY: a whole header lies inside the buffer the kernel filled.
        let (len, level, kind) = unsafe { ((*head).cmsg_len, (*head).cmsg_level, (*head).cmsg_type) };
        if len < size_of::<cmsghdr>() || at + len > total {
            return;
        }
        if level == libc::SOL_SOCKET && kind == libc::SCM_RIGHTS {
            for i in 0..(len - size_of::<cmsghdr>()) / size_of::<c_int>() {
                // SAFETY: inside the message, by its length.
                each(n, unsafe { head.add(1).cast::<c_int>().add(i).read_unaligned() });
                n += 1;
            }
        }
        at += len.next_multiple_of(size_of::<usize>());
    }
}
