//! Serves a keeper's logs to whoever connects: a thread for each connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use seawall_media::LINE;
use seawall_media::locks::lock;
use seawall_wire::keeper::{Frame, Greeting, Kind, Refusal, State};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::answer::{self, Answer};
use crate::copy::Turn;
use crate::keeper::Keeper;
use crate::log::{Log, Refused};
use crate::meta::Roster;
use crate::wire::sealed;

/// The most connections at a time.
const CONNECTIONS_MAX: usize = 256;
/// Somebody who connects and says nothing is waited for as long.
const GREETING: Duration = Duration::from_secs(10);
/// Bytes of a piece of an image.
const PIECE: usize = 256 << 10;
/// Time between two looks for what is not durable.
const TIDY: Duration = Duration::from_millis(50);

/// A keeper that is served.
pub struct Server {
    keeper: Arc<Keeper>,
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
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
    /// Listens.
    ///
    /// # Errors
    /// The address is in use, or is none of this host.
    pub fn bind(keeper: Arc<Keeper>, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        Ok(Self { keeper, listener, stop: Arc::default(), connections: Arc::default() })
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
        let tidier = {
            let (keeper, stop) = (Arc::clone(&self.keeper), Arc::clone(&self.stop));
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    if !keeper.tidy() {
                        thread::sleep(TIDY);
                    }
                }
            })
        };
        let mut threads = Vec::new();
        while !self.stop.load(SeqCst) {
            let Ok((stream, _)) = self.listener.accept() else {
                // Out of descriptors: some come back when somebody leaves.
                thread::sleep(TIDY);
                continue;
            };
            threads.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
            if self.stop.load(SeqCst) || threads.len() >= CONNECTIONS_MAX {
                continue;
            }
            let Ok(again) = stream.try_clone() else { continue };
            lock(&self.connections).push(again);
            let (keeper, connections) = (Arc::clone(&self.keeper), Arc::clone(&self.connections));
            threads.push(thread::spawn(move || {
                let peer = stream.peer_addr();
                // What went wrong was said to whoever is there, or there is nobody to say it to.
                let _ = Connection { keeper: &keeper, stream: &stream, log: None, turn: None }.serve();
                let _ = stream.shutdown(Shutdown::Both);
                lock(&connections).retain(|other| other.peer_addr().ok() != peer.as_ref().ok().copied());
            }));
        }
        for connection in lock(&self.connections).iter() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        threads.into_iter().chain([tidier]).for_each(|thread| {
            let _ = thread.join();
        });
        self.keeper.close()
    }
}

/// One connection.
struct Connection<'k> {
    keeper: &'k Keeper,
    stream: &'k TcpStream,
    log: Option<(Arc<Mutex<Log>>, [u8; 16])>,
    turn: Option<Turn>,
}

impl Connection<'_> {
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(GREETING))?;
        rustix::net::sockopt::set_socket_keepalive(self.stream, true)?;
        let mut body = Vec::new();
        loop {
            let mut line = [0; LINE];
            self.stream.read_exact(&mut line)?;
            let Some(frame) = Frame::parse(&line) else {
                return self.refuse(&Refused::new(Refusal::Malformed, "that is no frame of this version"));
            };
            body.resize(frame.len as usize, 0);
            self.stream.read_exact(&mut body)?;
            if let Err(refused) = self.answer(&frame, &body)? {
                return self.refuse(&refused);
            }
        }
    }

    /// Answers a frame. The inner error ends the connection, and is said before.
    fn answer(&mut self, frame: &Frame, body: &[u8]) -> io::Result<Result<(), Refused>> {
        match frame.kind() {
            Some(Kind::Report) => {
                let report = serde_json::to_vec(&self.keeper.report())?;
                return self.send(&Frame::new(Kind::Reported, 0, frame.epoch), &report).map(Ok);
            }
            Some(Kind::Hello) => return self.hello(frame, body),
            _ => {}
        }
        let Some((log, uuid)) = &self.log else {
            return Ok(Err(Refused::new(Refusal::Malformed, "nobody said of which log")));
        };
        let (log, uuid) = (Arc::clone(log), *uuid);
        if frame.kind() == Some(Kind::Promise) {
            return self.promise(&log, frame, body);
        }
        if frame.kind() == Some(Kind::Fetch) && self.turn.is_none() {
            return self.image(&log, None, frame);
        }
        let Some(turn) = self.turn else {
            return Ok(Err(Refused::new(Refusal::Malformed, "nothing was promised on this connection")));
        };
        if frame.kind() == Some(Kind::Forget) {
            return self.forget(&log, uuid, turn, frame);
        }
        let answer = lock(&log).answer(turn, frame, body);
        match answer {
            Ok(Answer::Ack(ack)) => self.send(&ack, &[])?,
            Ok(Answer::None) => {}
            Ok(Answer::Image) => return self.image(&log, Some(turn), frame),
            Err(refused) => return Ok(Err(refused)),
        }
        lock(&log).answered();
        Ok(Ok(()))
    }

    fn hello(&mut self, frame: &Frame, body: &[u8]) -> io::Result<Result<(), Refused>> {
        let Ok(greeting) = Greeting::read_from_bytes(body) else {
            return Ok(Err(Refused::new(Refusal::Version, "a greeting of another version")));
        };
        let log = match self.keeper.greet(&greeting, "") {
            Ok(log) => log,
            Err(refused) => return Ok(Err(refused)),
        };
        let state = self.state_of(&log)?;
        self.stream.set_read_timeout(None)?;
        (self.log, self.turn) = (Some((log, greeting.log)), None);
        self.send(&Frame::new(Kind::Welcome, frame.log, frame.epoch), &state).map(Ok)
    }

    fn promise(&mut self, log: &Mutex<Log>, frame: &Frame, body: &[u8]) -> io::Result<Result<(), Refused>> {
        let roster = match body.is_empty() {
            true => None,
            false => match serde_json::from_slice::<Roster>(body) {
                Ok(roster) => Some(roster),
                Err(e) => {
                    return Ok(Err(Refused::new(Refusal::Malformed, format!("the log's keepers: {e}"))));
                }
            },
        };
        let promised = lock(log).promise(frame.epoch, roster);
        match promised {
            Ok(turn) => self.turn = Some(turn),
            Err(refused) => return Ok(Err(refused)),
        }
        let state = self.state_of(log)?;
        self.send(&Frame::new(Kind::Promised, frame.log, frame.epoch), &state).map(Ok)
    }

    /// The state, and the log's keepers behind it.
    fn state_of(&self, log: &Mutex<Log>) -> io::Result<Vec<u8>> {
        let log = lock(log);
        let state: State = self.keeper.state(&log);
        let mut bytes = state.as_bytes().to_vec();
        serde_json::to_writer(&mut bytes, &log.meta().roster)?;
        Ok(bytes)
    }

    fn forget(
        &mut self,
        log: &Mutex<Log>,
        uuid: [u8; 16],
        turn: Turn,
        frame: &Frame,
    ) -> io::Result<Result<(), Refused>> {
        let may = lock(log).may_forget(turn);
        if let Err(refused) = may.and_then(|()| self.keeper.forget(uuid)) {
            return Ok(Err(refused));
        }
        (self.log, self.turn) = (None, None);
        self.send(&Frame::new(Kind::Ack, frame.log, frame.epoch), &[]).map(Ok)
    }

    /// Sends the image: to whoever has the turn one that nobody changes, to anybody else what is there.
    fn image(&self, log: &Mutex<Log>, turn: Option<Turn>, frame: &Frame) -> io::Result<Result<(), Refused>> {
        let mut at = 0;
        loop {
            let stretch = lock(log).stretch(turn, at, PIECE);
            match stretch {
                Err(refused) => return Ok(Err(refused)),
                Ok(Some((from, bytes))) => {
                    self.send(&Frame::new(Kind::Piece, frame.log, frame.epoch).numbered(from, 0), &bytes)?;
                    at = from + bytes.len() as u64;
                }
                Ok(None) => {
                    let number = lock(log).copy().position().number;
                    let end = Frame::new(Kind::Complete, frame.log, frame.epoch).numbered(number, 0);
                    return self.send(&end, &[]).map(Ok);
                }
            }
        }
    }

    fn refuse(&self, refused: &Refused) -> io::Result<()> {
        self.send(&answer::refused(refused.refusal), refused.why.as_bytes())
    }

    fn send(&self, frame: &Frame, body: &[u8]) -> io::Result<()> {
        (&mut &*self.stream).write_all(&sealed(frame, body))
    }
}
