//! How requests travel to the daemon: one connection each, so that no descriptor of ours stays among the application's.
//! What is asked, and what the answers mean, is every front's: [`seawall_core::client`].

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fd::{AsRawFd, BorrowedFd};
use seawall_core::client::{Client, Received, Synced, Transport};
use seawall_core::{Errno, FileRef};
use seawall_wire::message::Reply;
use zerocopy::{FromZeros, IntoBytes};

use crate::environment::{self, SOCKET_PATH_MAX};
use crate::socket::{Connection, Descriptors};
use crate::sys::{self, unsafe_call};

/// The daemon of this process.
pub static DAEMON: Client<Socket> = Client::new(Socket);

/// The socket that the environment names.
pub struct Socket;

impl Transport for Socket {
    type Connection = Connection;
    type Descriptors = Descriptors;

    fn now_ns(&self) -> u64 {
        sys::now_ns(libc::CLOCK_MONOTONIC)
    }

    fn nap_ns(&self, ns: u64) {
        sys::nap_ns(ns);
    }

    fn send(
        &self,
        parts: [&[u8]; 2],
        fd: Option<BorrowedFd<'_>>,
        limit_us: u32,
    ) -> Result<Connection, Errno> {
        let mut room = [0; SOCKET_PATH_MAX];
        let path = environment::socket(&mut room).ok_or(Errno::NOENT)?;
        let connection = Connection::open(path, limit_us)?;
        connection.send(parts, fd.map(|fd| fd.as_raw_fd()))?;
        Ok(connection)
    }

    fn receive(&self, connection: &Connection) -> Result<Received<Descriptors>, Errno> {
        let mut reply = Reply::new_zeroed();
        let (len, descriptors) = connection.receive(reply.as_mut_bytes())?;
        match (len, Reply::of(&reply.as_bytes()[..len])) {
            (0, _) => Err(Errno::CONNRESET),
            (_, None) => Err(Errno::PROTO),
            (_, Some(reply)) => Ok(Received { reply, descriptors }),
        }
    }

    fn say(&self, what: &'static str) {
        sys::say(&[what]);
    }

    #[cold]
    fn not_served(&self) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if !TOLD.swap(true, Relaxed) {
            sys::say(&[
                "not active in this process: it became another user than the daemon's (setuid, gosu, su); \
                 start it with `seawall run --user NAME`",
            ]);
        }
    }
}

/// A real fdatasync of a managed file of which we have no descriptor. Without a daemon, of everything: we
/// must not open and close such a file ourselves, or the process would lose its POSIX locks on it.
pub fn sync_file(file: FileRef) -> Result<(), Errno> {
    match DAEMON.sync_file(file) {
        Synced::Done => Ok(()),
        Synced::Failed => Err(Errno::IO),
        Synced::Not => unsafe_call!(SYS_sync).map(drop),
    }
}
