//! The command line's side of the socket: requests, and what comes back.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall_wire::message::{Kind, MAGIC, Reply, Request, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes;

use crate::{net, place, process, sys};

/// Body of a failed reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What failed, where, and what to do.
    pub error: String,
}

/// Body of AddRoot's reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Added {
    /// Number of the root.
    pub root: u32,
}

/// Body of Drain's reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Drained {
    /// Files that got new records meanwhile.
    pub dirty: u32,
}

/// Body of a Stop request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stop {
    /// Only if nobody else needs the daemon; then it is no error either. Whoever asks needs it no more, whatever the
    /// answer.
    pub if_idle: bool,
    /// Close the log, but let the daemon stay for whoever comes next.
    #[serde(default)]
    pub stay: bool,
}

/// Body of Stop's reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stopped {
    /// The log is closed: drained, guards down.
    pub ended: bool,
    /// The daemon goes on: it was asked to stay, or was started to.
    #[serde(default)]
    pub stays: bool,
    /// Processes that still use it.
    pub users: Vec<u32>,
}

/// Why a request brought no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum ControlError {
    #[error("cannot talk to the daemon: {0}")]
    Io(io::Error),
    #[error("the daemon ended in the middle of the request")]
    Gone,
    #[error(fmt = refused)]
    Refused(Status),
    #[error("{0}")]
    Failed(String),
}

fn refused(status: &Status, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match status {
        Status::BadVersion => f.write_str(
            "the daemon is of another version than this program: stop it with its own `seawall stop`",
        ),
        Status::Denied => {
            f.write_str("the daemon belongs to another user: run this as that user, or as root")
        }
        status => write!(f, "the daemon refused the request ({status:?})"),
    }
}

impl From<io::Error> for ControlError {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Gone,
            _ => Self::Io(e),
        }
    }
}

/// A connection to a pool's daemon.
pub struct Control {
    socket: OwnedFd,
    path: PathBuf,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Control {
    /// Connects to the pool's daemon; `None` if none listens.
    ///
    /// # Errors
    /// If the pool cannot be found.
    pub fn connect(pool: &Path) -> io::Result<Option<Self>> {
        let connected = place::candidates(pool)?.into_iter().find_map(|place| {
            let socket = net::connect(&place.socket).ok().filter(is_listening)?;
            Some(Self { socket, path: place.socket })
        });
        Ok(connected)
    }

    /// The same for a request that must not be waited for longer than `limit`, at each of its steps.
    ///
    /// # Errors
    /// The same, and WouldBlock if as many wait for the daemon already as can.
    pub fn connect_within(pool: &Path, limit: Duration) -> io::Result<Option<Self>> {
        for place in place::candidates(pool)? {
            match net::connect_within(&place.socket, limit) {
                Ok(socket) if is_listening(&socket) => return Ok(Some(Self { socket, path: place.socket })),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(e),
                _ => {}
            }
        }
        Ok(None)
    }

    /// True while the daemon's process is there, as far as that is to be seen from here.
    pub fn is_alive(&self) -> bool {
        sys::peer_pid(self.socket.as_fd()).is_some_and(process::is_alive)
    }

    /// The socket's path, for the preload.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One request and its answer.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn request<T: DeserializeOwned>(&self, kind: Kind, body: &impl Serialize) -> Result<T, ControlError> {
        let body = serde_json::to_vec(body)
            .map_err(|e| ControlError::Failed(format!("cannot encode the request to the daemon: {e}")))?;
        let mut bytes = Request::new(kind, body.len() as u32).as_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.exchange(kind, &bytes)
    }

    fn exchange<T: DeserializeOwned>(&self, kind: Kind, bytes: &[u8]) -> Result<T, ControlError> {
        net::send(&self.socket, bytes, &[])?;
        let message = net::receive(&self.socket)?.ok_or(ControlError::Gone)?;
        let reply = Reply::of(&message.bytes).ok_or_else(garbled)?;
        let mut body = message.bytes.get(size_of::<Reply>()..).unwrap_or_default().to_vec();
        if let Some(file) = message.descriptors.into_iter().next() {
            body.clear();
            let file = std::fs::File::from(file);
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).map_err(io::Error::from)?;
            (&file).read_to_end(&mut body)?;
        }
        match Status::from_u32(reply.status) {
            _ if reply.magic != MAGIC => Err(ControlError::Refused(Status::BadVersion)),
            Status::Ok => serde_json::from_slice(&body).map_err(|_| garbled()),
            // The daemon was stopped, and goes on. What belongs to the connection must be asked on another one by whoever
            // keeps it.
            Status::Later if matches!(kind, Kind::AddRoot | Kind::Freeze) => Err(ControlError::Gone),
            Status::Later => {
                let again = Self { socket: net::connect(&self.path)?, path: self.path.clone() };
                again.exchange(kind, bytes)
            }
            Status::Failed => {
                let failure: Option<Failure> = serde_json::from_slice(&body).ok();
                Err(failure.map_or(ControlError::Refused(Status::Failed), |f| ControlError::Failed(f.error)))
            }
            status => Err(ControlError::Refused(status)),
        }
    }
}

/// False if the daemon is dead: its watchdog, which has the listening socket too, is being ended.
fn is_listening(socket: &OwnedFd) -> bool {
    // Whoever listened first; 0 if that is not to be seen from here.
    sys::peer_pid(socket.as_fd()).is_none_or(|pid| pid == 0 || process::is_alive(pid))
}

fn garbled() -> ControlError {
    ControlError::Io(io::Error::other("its answer makes no sense: is it of another version?"))
}
