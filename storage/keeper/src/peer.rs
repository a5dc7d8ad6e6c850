//! A keeper, as a writer or a takeover sees it: one connection, one request after the other.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Greeting, KEEPER_VERSION, Kind, Position, Refusal, State};
use thiserror::Error;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::holder::Holder;
use crate::keeper::Report;
use crate::meta::{Roster, Terms};
use crate::stream::Stream;
use crate::transport::Transport;
use crate::uuid::low_half;
use crate::wire::sealed;

/// What a keeper did not do.
#[derive(Debug, Error)]
pub enum PeerError {
    /// It is not reached, or was lost.
    #[error("keeper {address}: {error}")]
    Lost {
        /// Where.
        address: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// It refuses.
    #[error("keeper {address}: {why}")]
    Refused {
        /// Where.
        address: String,
        /// Why, for a program.
        refusal: Option<Refusal>,
        /// Why.
        why: String,
    },
    /// What it said is no answer.
    #[error("keeper {address}: its answer makes no sense: is it a keeper of this version?")]
    Nonsense {
        /// Where.
        address: String,
    },
}

impl PeerError {
    /// True if a newer writer has the promise.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Refused { refusal: Some(Refusal::Fenced), .. })
    }

    /// True if somebody took the log over since it was looked at.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Refused { refusal: Some(Refusal::Taken), .. })
    }
}

/// A connection.
pub struct Peer {
    address: String,
    stream: Stream,
    log: u64,
    epoch: Epoch,
    holder: Option<Holder>,
}

impl Peer {
    /// Connects to `HOST:PORT`, and waits so long for each answer.
    ///
    /// # Errors
    /// [`PeerError::Lost`].
    pub fn connect(address: &str, transport: &Transport, patience: Duration) -> Result<Self, PeerError> {
        let lost = |error| PeerError::Lost { address: address.to_owned(), error };
        let stream = transport.connect(address, patience).map_err(lost)?;
        Ok(Self { address: address.to_owned(), stream, log: 0, epoch: Epoch::default(), holder: None })
    }

    /// Waits so long for each answer from now on.
    ///
    /// # Errors
    /// [`PeerError::Lost`].
    pub fn has_patience(&self, patience: Duration) -> Result<(), PeerError> {
        self.stream.socket().set_read_timeout(Some(patience)).map_err(|error| self.lost(error))
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host that has the log's promise, as the keeper said last.
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// Says of which log it is about. `make`: the log is made there if it is not, with an image of so many bytes.
    /// `keeper`: who is expected there.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn greet(
        &mut self,
        log: [u8; 16],
        make: Option<u64>,
        keeper: Option<[u8; 16]>,
    ) -> Result<(State, Roster), PeerError> {
        let greeting = Greeting {
            version: KEEPER_VERSION,
            make: u32::from(make.is_some()),
            log,
            image: make.unwrap_or(0),
            keeper: keeper.unwrap_or_default(),
        };
        self.log = low_half(log);
        self.ask(Kind::Hello, (0, 0), greeting.as_bytes())?;
        self.state(Kind::Welcome)
    }

    /// Asks for the promise, and says who keeps the log; `None`: those who did so far.
    ///
    /// # Errors
    /// [`PeerError`]; [fenced](PeerError::is_fenced) if a newer writer has it.
    pub fn promise(&mut self, epoch: Epoch, roster: Option<&Roster>) -> Result<(State, Roster), PeerError> {
        self.promise_if(epoch, roster, None)
    }

    /// The same, if the copy there is of no newer epoch than `found`.
    ///
    /// # Errors
    /// [`PeerError`]; [taken](PeerError::is_taken) if it is.
    pub fn promise_if(
        &mut self,
        epoch: Epoch,
        roster: Option<&Roster>,
        found: Option<Epoch>,
    ) -> Result<(State, Roster), PeerError> {
        self.epoch = epoch;
        let found = found.map(|found| (found.counter, found.writer));
        let terms = |roster: &Roster| Terms { roster: roster.clone(), holder: Some(Holder::here()), found };
        let body = roster.map(terms).as_ref().map(serde_json::to_vec).transpose();
        let body = body.map_err(|e| self.lost(e.into()))?.unwrap_or_default();
        self.ask(Kind::Promise, (0, 0), &body)?;
        self.state(Kind::Promised)
    }

    /// Has a copy that is at `from` be at this writer's `number`.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn adopt(&mut self, from: Position, number: u64) -> Result<(), PeerError> {
        self.ask(Kind::Adopt, (number, 0), from.as_bytes())?;
        self.answer(Kind::Ack).map(drop)
    }

    /// Begins an image of zeros beside the copy.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn begin(&mut self) -> Result<(), PeerError> {
        self.ask(Kind::Begin, (0, 0), &[])?;
        self.answer(Kind::Ack).map(drop)
    }

    /// Bytes of that image. Not answered.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn piece(&mut self, at: u64, bytes: &[u8]) -> Result<(), PeerError> {
        self.ask(Kind::Piece, (at, 0), bytes)
    }

    /// That image is the copy, at `number`.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn complete(&mut self, number: u64) -> Result<(), PeerError> {
        self.ask(Kind::Complete, (number, 0), &[])?;
        self.answer(Kind::Ack).map(drop)
    }

    /// A batch that follows `previous`; where the copy is then.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn batch(&mut self, number: u64, previous: u64, bytes: &[u8]) -> Result<u64, PeerError> {
        self.ask(Kind::Batch, (number, previous), bytes)?;
        self.answer(Kind::Ack).map(|(frame, _)| frame.number)
    }

    /// Reads the image: what is not of zeros, and where.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn fetch(&mut self, mut take: impl FnMut(u64, &[u8])) -> Result<(), PeerError> {
        self.ask(Kind::Fetch, (0, 0), &[])?;
        let mut next = 0;
        loop {
            let (frame, body) = self.hear()?;
            match frame.kind() {
                // In order, each with something in it: it comes to an end.
                Some(Kind::Piece) if frame.number >= next && !body.is_empty() => {
                    next = frame.number.saturating_add(body.len() as u64);
                    take(frame.number, &body);
                }
                Some(Kind::Complete) => return Ok(()),
                _ => return Err(self.nonsense()),
            }
        }
    }

    /// Has the keeper forget the log.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn forget(&mut self) -> Result<(), PeerError> {
        self.ask(Kind::Forget, (0, 0), &[])?;
        self.answer(Kind::Ack).map(drop)
    }

    /// All that it keeps.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn report(&mut self) -> Result<Report, PeerError> {
        self.ask(Kind::Report, (0, 0), &[])?;
        let (_, body) = self.answer(Kind::Reported)?;
        serde_json::from_slice(&body).map_err(|_| self.nonsense())
    }

    /// The connection, for whoever sends batches by itself.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    fn ask(&mut self, kind: Kind, (number, previous): (u64, u64), body: &[u8]) -> Result<(), PeerError> {
        let frame = Frame::new(kind, self.log, self.epoch).numbered(number, previous);
        (&self.stream).write_all(&sealed(&frame, body)).map_err(|e| self.lost(e))
    }

    fn state(&mut self, kind: Kind) -> Result<(State, Roster), PeerError> {
        let (_, body) = self.answer(kind)?;
        let (state, rest) = State::read_from_prefix(&body).map_err(|_| self.nonsense())?;
        if !state.makes_sense() {
            return Err(self.nonsense());
        }
        let terms: Terms = serde_json::from_slice(rest).map_err(|_| self.nonsense())?;
        self.holder = terms.holder;
        Ok((state, terms.roster))
    }

    fn answer(&mut self, kind: Kind) -> Result<(Frame, Vec<u8>), PeerError> {
        let (frame, body) = self.hear()?;
        if frame.kind() == Some(kind) { Ok((frame, body)) } else { Err(self.nonsense()) }
    }

    fn hear(&mut self) -> Result<(Frame, Vec<u8>), PeerError> {
        let mut line = [0; LINE];
        (&self.stream).read_exact(&mut line).map_err(|e| self.lost(e))?;
        let frame = Frame::parse(&line).ok_or_else(|| self.nonsense())?;
        let mut body = vec![0; frame.len as usize];
        (&self.stream).read_exact(&mut body).map_err(|e| self.lost(e))?;
        if frame.kind() == Some(Kind::Refused) {
            let (address, refusal) = (self.address.clone(), Refusal::from_word(frame.code));
            return Err(PeerError::Refused {
                address,
                refusal,
                why: String::from_utf8_lossy(&body).into_owned(),
            });
        }
        Ok((frame, body))
    }

    fn lost(&self, error: io::Error) -> PeerError {
        // What the kernel says of a wait that took too long is a word for programs.
        let error = match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time"),
            _ => error,
        };
        PeerError::Lost { address: self.address.clone(), error }
    }

    fn nonsense(&self) -> PeerError {
        PeerError::Nonsense { address: self.address.clone() }
    }
}
