//! Serves a keeper's logs to whoever connects: a thread for each connection.

mod connection;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use seawall_wire::keeper::Refusal;

use crate::door::{Door, Trouble, part};
use crate::guests::{Guests, Limits};
use crate::keeper::Keeper;
use crate::log::Refused;
use connection::Connection;

/// Somebody who takes nothing of an answer for as long is gone.
const TAKING: Duration = Duration::from_secs(30);
/// A host that vanished is noticed after about a minute.
const SILENT: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// Time between two looks for what is not durable.
const TIDY: Duration = Duration::from_millis(50);

/// A keeper that is served.
pub struct Server {
    keeper: Arc<Keeper>,
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    limits: Limits,
    tls: Option<PathBuf>,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct Stop {
    stop: Arc<AtomicBool>,
    address: SocketAddr,
}

impl Stop {
    /// Ends it: nobody is served any more when [`Server::run`] has returned.
    pub fn stop(&self) {
        self.stop.store(true, SeqCst);
        // It waits for somebody to connect.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl Server {
    /// Listens. What is spoken is clear text.
    ///
    /// # Errors
    /// The address is in use, or is none of this host.
    pub fn bind(keeper: Arc<Keeper>, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        Ok(Self { keeper, listener, stop: Arc::default(), limits: Limits::default(), tls: None })
    }

    /// The same by TLS alone, with the [files](crate::tls::files) of a directory.
    pub fn with_tls(mut self, directory: PathBuf) -> Self {
        self.tls = Some(directory);
        self
    }

    /// The same with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What ends it.
    ///
    /// # Errors
    /// As for [`address`](Self::address).
    pub fn stop(&self) -> io::Result<Stop> {
        Ok(Stop { stop: Arc::clone(&self.stop), address: self.address()? })
    }

    /// Serves until it is stopped, and closes the keeper's logs.
    ///
    /// # Errors
    /// What keeps it from serving; a disk at its end.
    pub fn run(self) -> Result<(), Refused> {
        let guests = Arc::new(Guests::new(self.limits));
        let door = Arc::new(Door::new(self.tls, self.limits.greeting));
        let tidier = {
            let (keeper, stop, guests) =
                (Arc::clone(&self.keeper), Arc::clone(&self.stop), Arc::clone(&guests));
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    guests.cut_late();
                    if !keeper.tidy() {
                        thread::sleep(TIDY);
                    }
                }
            })
        };
        let mut threads = Vec::new();
        while !self.stop.load(SeqCst) {
            let Ok((socket, from)) = self.listener.accept() else {
                // Out of descriptors: some come back when somebody leaves.
                thread::sleep(TIDY);
                continue;
            };
            threads.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
            if self.stop.load(SeqCst) {
                continue;
            }
            let Ok(Some(guest)) = guests.admit(&socket, from.ip()) else { continue };
            let (keeper, guests, door) = (Arc::clone(&self.keeper), Arc::clone(&guests), Arc::clone(&door));
            threads.push(thread::spawn(move || {
                receive(&keeper, &guests, &door, (guest, socket, from));
                guests.leaves(guest);
            }));
        }
        guests.cut_all();
        threads.into_iter().chain([tidier]).for_each(|thread| {
            let _ = thread.join();
        });
        self.keeper.close()
    }
}

/// Serves one connection to its end.
fn receive(
    keeper: &Keeper,
    guests: &Guests,
    door: &Door,
    (guest, socket, from): (u64, TcpStream, SocketAddr),
) {
    let prepared = prepare(&socket);
    let (stream, who) = match prepared.map_err(Trouble::from).and_then(|()| door.open(socket)) {
        Ok(opened) => opened,
        Err(trouble) => return door.say(from, &trouble),
    };
    // The socket has no time limit from here on: the guests' limits cut off whoever is late.
    let ready = stream.socket().set_read_timeout(None);
    let mut connection = Connection::new(keeper, guests, guest, &stream, who);
    // Else it hung up, or was cut off.
    if let Ok(Some(refused)) = ready.and_then(|()| connection.serve()) {
        if refused.refusal == Refusal::Forbidden {
            door.say(from, &Trouble::from(io::Error::other(refused.why)));
        }
        part(stream.socket());
    }
    let _ = stream.socket().shutdown(Shutdown::Both);
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    let (after, between, times) = SILENT;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(TAKING))?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, after)?;
    sockopt::set_tcp_keepintvl(socket, between)?;
    Ok(sockopt::set_tcp_keepcnt(socket, times)?)
}
