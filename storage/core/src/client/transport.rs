//! What a front brings: the way to the daemon and back, and its own ways to wait and to speak.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_wire::message::Reply;

/// How messages travel, and what each front provides: clocks, and a place for messages to people.
pub trait Transport {
    /// A connection, for one request.
    type Connection;
    /// The descriptors that came with an answer; closed with it.
    type Descriptors;

    /// Nanoseconds of CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64;

    /// Sleeps.
    fn nap_ns(&self, ns: u64);

    /// Connects, and sends a request. Each step may take this many microseconds, less than a second.
    ///
    /// # Errors
    /// AGAIN if the daemon's queue is full; other errors if there is no daemon.
    fn send(
        &self,
        parts: [&[u8]; 2],
        fd: Option<BorrowedFd<'_>>,
        limit_us: u32,
    ) -> Result<Self::Connection, Errno>;

    /// Receives the answer.
    ///
    /// # Errors
    /// AGAIN if none comes within the connection's limit, CONNRESET if the daemon hung up, PROTO if it is not an
    /// answer.
    fn receive(&self, connection: &Self::Connection) -> Result<Received<Self::Descriptors>, Errno>;

    /// Shows a message to the person who runs the database.
    fn say(&self, what: &'static str);

    /// The daemon does not serve this process's user. Called every time a request finds that out.
    fn not_served(&self);
}

/// An answer.
pub struct Received<D> {
    /// The fixed part.
    pub reply: Reply,
    /// The descriptors that came with it, in their order.
    pub descriptors: D,
}
