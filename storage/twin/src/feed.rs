//! Redis's replication protocol as a primary speaks it: the twin is a replica of this thread.
//!
//! In: the primary's append-only file. Out: the twin has its snapshot and its commands, byte for byte. The file is the
//! buffer: a twin that is slow or gone keeps nobody but this thread waiting.
//!
//! A twin that connects is always given everything. What it is sent counts from 0, so the offset it says it has applied is a
//! place in [`Scan`](crate::scan::Scan)'s count.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::control::USER;
use crate::log::{Base, Log, Place};
use crate::resp::{command, words};
use crate::state::random_hex;

/// A snapshot of nothing: version, end, no checksum.
const EMPTY_RDB: &[u8] = b"REDIS0009\xff\0\0\0\0\0\0\0\0";
/// How long the end of the file is left alone before it is looked at again.
const PAUSE: Duration = Duration::from_millis(5);
/// A replica that hears nothing for a minute takes its primary for lost.
const PING: Duration = Duration::from_secs(10);
/// One that takes nothing for so long is connected anew.
const STUCK: Duration = Duration::from_secs(60);
/// So long whoever connects may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);
/// What of a snapshot is read in one go.
const PIECE: usize = 1 << 20;

/// How far it is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The synchronisation's name; empty while there is none.
    pub id: String,
    /// The commands since the snapshot are being sent.
    pub streams: bool,
    /// Bytes of commands that were sent, and that may be applied.
    pub passed: u64,
    /// Those of them that end with a whole command.
    pub whole: u64,
    /// The end of a file that nobody writes to any more was reached.
    pub ended: bool,
    /// How often everything was sent.
    pub synchronisations: u64,
    /// Why the last one ended.
    pub trouble: Option<String>,
}

#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
    orders: Mutex<Orders>,
    ordered: Condvar,
}

/// What the thread is to do.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// The primary is dead: what is read next is the end.
    finish: bool,
    stop: bool,
}

/// The thread and what it shares.
pub struct Feed {
    shared: Arc<Shared>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Listens for the twin on a port of this host's own. Whoever does not know the token gets nothing.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn start(place: Place, token: String) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen for the twin")?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared::default());
        let session = Session { shared: shared.clone(), place, token };
        let thread = thread::Builder::new().name("feed".into()).spawn(move || session.serve(&listener))?;
        Ok(Self { shared, port, thread: Some(thread) })
    }

    /// Where the twin connects.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// For whoever only looks.
    pub fn observer(&self) -> Observer {
        Observer(self.shared.clone())
    }

    /// Nobody writes to the file any more: reads it to its end. Returns how far the twin has to come.
    ///
    /// # Errors
    /// If the twin was not following, or the thread is lost.
    pub fn finish(&self, limit: Duration) -> Result<Progress> {
        locked(&self.shared.orders).finish = true;
        self.shared.ordered.notify_all();
        let end = Instant::now() + limit;
        let mut progress = locked(&self.shared.progress);
        while progress.streams && !progress.ended {
            let left = end.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "the file's tail was not sent within {limit:?}");
            progress =
                self.shared.changed.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        match &progress.trouble {
            _ if progress.streams => Ok(progress.clone()),
            Some(trouble) => bail!("{trouble}"),
            None => bail!("the twin was not following the server yet"),
        }
    }
}

/// Sees how far the thread is.
pub struct Observer(Arc<Shared>);

impl Observer {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        locked(&self.0.progress).clone()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        locked(&self.shared.orders).stop = true;
        self.shared.ordered.notify_all();
        self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread has.
struct Session {
    shared: Arc<Shared>,
    place: Place,
    token: String,
}

impl Session {
    fn serve(&self, listener: &TcpListener) {
        while !self.orders().stop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let ended = self.replica(&stream);
                    self.note(|progress| {
                        *progress = Progress {
                            trouble: ended.err().map(|e| format!("{e:#}")),
                            synchronisations: progress.synchronisations,
                            ..Progress::default()
                        };
                    });
                }
                Err(_) => self.pause(PAUSE),
            }
        }
    }

    fn orders(&self) -> Orders {
        *locked(&self.shared.orders)
    }

    /// A new order ends it early.
    fn pause(&self, time: Duration) {
        let orders = locked(&self.shared.orders);
        if !orders.finish && !orders.stop {
            drop(self.shared.ordered.wait_timeout(orders, time));
        } else {
            drop(orders);
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut locked(&self.shared.progress));
        self.shared.changed.notify_all();
    }

    /// Serves one connection to its end.
    fn replica(&self, stream: &TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GREETING))?;
        stream.set_write_timeout(Some(STUCK))?;
        self.greet(&mut BufReader::new(stream), stream)?;
        let (base, log) = Log::open(&self.place)?;
        let id = random_hex(40)?;
        self.note(|progress| {
            let synchronisations = progress.synchronisations + 1;
            *progress = Progress { id: id.clone(), synchronisations, ..Progress::default() };
        });
        (&*stream).write_all(format!("+FULLRESYNC {id} 0\r\n").as_bytes())?;
        self.snapshot(base, stream)?;
        self.note(|progress| progress.streams = true);
        self.stream(log, stream)
    }

    /// Answers until the twin wants to follow.
    fn greet(&self, from: &mut impl BufRead, mut to: &TcpStream) -> Result<()> {
        let mut known = false;
        loop {
            let words = words(from).context("cannot read the twin's greeting")?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let answer = match words[..] {
                ["AUTH", user, token] if user == USER && token == self.token => {
                    known = true;
                    "+OK"
                }
                ["PING"] => "+PONG",
                _ if !known => bail!("a client connected that does not know the token"),
                ["PSYNC", ..] => return Ok(()),
                ["REPLCONF", ..] => "+OK",
                _ => "-ERR unknown command",
            };
            to.write_all(format!("{answer}\r\n").as_bytes())?;
        }
    }

    fn snapshot(&self, base: Base, mut to: &TcpStream) -> Result<()> {
        let Base::Rdb(file) = base else {
            to.write_all(format!("${}\r\n", EMPTY_RDB.len()).as_bytes())?;
            return to.write_all(EMPTY_RDB).context("cannot send a snapshot");
        };
        let size = file.metadata()?.len();
        to.write_all(format!("${size}\r\n").as_bytes())?;
        let (mut piece, mut at) = (vec![0; PIECE], 0);
        while at < size && !self.orders().stop {
            let n = file.read_at(&mut piece, at).context("cannot read the snapshot")?;
            ensure!(n > 0, "the snapshot became shorter");
            to.write_all(&piece[..n]).context("cannot send the snapshot")?;
            at += n as u64;
        }
        Ok(())
    }

    fn stream(&self, mut log: Log, mut to: &TcpStream) -> Result<()> {
        let ping = command(&["PING"]);
        let (mut out, mut sent) = (Vec::new(), Instant::now());
        loop {
            // The order was given when nobody wrote any more, so an end that is reached after it is the end.
            let orders = self.orders();
            if orders.stop {
                return Ok(());
            }
            out.clear();
            let more = log.read(&mut out)?;
            if !more && !orders.finish && sent.elapsed() > PING && log.scan.is_whole() {
                log.scan.insert(&ping, &mut out)?;
            }
            if !out.is_empty() {
                to.write_all(&out).context("cannot send to the twin")?;
                sent = Instant::now();
                self.note(|progress| {
                    (progress.passed, progress.whole) = (log.scan.passed(), log.scan.whole())
                });
            }
            if !more && orders.finish {
                self.note(|progress| progress.ended = true);
                return self.hold();
            }
            if !more {
                listen(to)?;
                self.pause(PAUSE);
            }
        }
    }

    /// Keeps the connection: a twin that loses it would stop applying what it has not read yet.
    fn hold(&self) -> Result<()> {
        while !self.orders().stop {
            self.pause(PAUSE);
        }
        Ok(())
    }
}

/// What the twin says is not needed, since it is asked; but it must not fill the connection.
fn listen(mut from: &TcpStream) -> Result<()> {
    from.set_nonblocking(true)?;
    let said = from.read(&mut [0; 4096]);
    from.set_nonblocking(false)?;
    match said {
        Ok(0) => bail!("the twin closed the connection"),
        Err(e) if e.kind() != ErrorKind::WouldBlock => Err(e).context("the connection to the twin was lost"),
        _ => Ok(()),
    }
}
