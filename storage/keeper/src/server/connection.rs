//! One connection to a keeper: a frame, its answer, the next frame, until its end.

use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Mutex};

use seawall_media::LINE;
use seawall_media::locks::lock;
use seawall_wire::keeper::{Frame, Greeting, KEEPERS_MAX, Kind, Refusal, State};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::answer::{self, Answer};
use crate::copy::Turn;
use crate::guests::Guests;
use crate::keeper::Keeper;
use crate::log::{Log, Refused};
use crate::meta::Terms;
use crate::stream::Stream;
use crate::tls::files::Who;
use crate::wire::sealed;

/// The most bytes behind a frame of somebody who has not said which log it is about.
const STRANGERS_BODY: u32 = 1 << 10;
/// The longest name of a keeper, with its port.
const NAME_MAX: usize = 300;
/// Bytes of a piece of an image.
const PIECE: usize = 256 << 10;
/// Bytes that are read of a connection in one call, if they are there.
const READ_AT_ONCE: usize = 32 << 10;

/// One connection.
pub(super) struct Connection<'k> {
    keeper: &'k Keeper,
    guests: &'k Guests,
    guest: u64,
    stream: &'k Stream,
    /// By its certificate; `None`: what is spoken is clear text.
    who: Option<Who>,
    log: Option<(Arc<Mutex<Log>>, [u8; 16])>,
    turn: Option<Turn>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if let (Some((log, _)), Some(turn)) = (&self.log, self.turn) {
            lock(log).left(turn);
        }
    }
}

impl<'k> Connection<'k> {
    /// Somebody who has said nothing yet; `who` by its certificate.
    pub(super) fn new(
        keeper: &'k Keeper,
        guests: &'k Guests,
        guest: u64,
        stream: &'k Stream,
        who: Option<Who>,
    ) -> Self {
        Self { keeper, guests, guest, stream, who, log: None, turn: None }
    }

    /// Answers until the other end hangs up. What it was refused, if that is the end.
    pub(super) fn serve(&mut self) -> io::Result<Option<Refused>> {
        let mut body = Vec::new();
        // A batch is mostly there when its frame is: one call takes both.
        let mut stream = BufReader::with_capacity(READ_AT_ONCE, self.stream);
        loop {
            let mut line = [0; LINE];
            stream.read_exact(&mut line)?;
            let answered = match Frame::parse(&line) {
                None => Err(Refused::new(Refusal::Malformed, "this is not a frame of this version")),
                Some(frame) if !frame.makes_sense() => {
                    Err(Refused::new(Refusal::Malformed, "no turn and no batch has such a number"))
                }
                Some(frame) if self.log.is_none() && frame.len > STRANGERS_BODY => {
                    Err(Refused::new(Refusal::Malformed, "the request does not say which log it is for"))
                }
                Some(frame) => {
                    body.resize(frame.len as usize, 0);
                    stream.read_exact(&mut body)?;
                    self.answer(&frame, &body)?
                }
            };
            if let Err(refused) = answered {
                self.send(&answer::refused(refused.refusal), refused.why.as_bytes())?;
                return Ok(Some(refused));
            }
        }
    }

    /// By which name it owns logs.
    fn owner(&self) -> Result<&str, Refused> {
        match &self.who {
            None => Ok(""),
            Some(Who::Owner(name)) => Ok(name),
            Some(Who::Keeper(name)) => {
                let why = format!(
                    "the certificate of {name} is a keeper's, and a keeper owns no log: use an owner's"
                );
                Err(Refused::new(Refusal::Forbidden, why))
            }
        }
    }

    /// Answers a frame. The inner error ends the connection, and its text goes to the other end before.
    fn answer(&mut self, frame: &Frame, body: &[u8]) -> io::Result<Result<(), Refused>> {
        match frame.kind() {
            Some(Kind::Report) => {
                let mut report = self.keeper.report();
                if let Some(Who::Owner(name)) = &self.who {
                    report.logs.retain(|log| log.owner == *name);
                }
                let report = serde_json::to_vec(&report)?;
                return self.send(&Frame::new(Kind::Reported, 0, frame.epoch), &report).map(Ok);
            }
            Some(Kind::Hello) => return self.hello(frame, body),
            _ => {}
        }
        let Some((log, uuid)) = &self.log else {
            return Ok(Err(Refused::new(Refusal::Malformed, "the request does not say which log it is for")));
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
            return self.forget(uuid, turn, frame);
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
            return Ok(Err(Refused::new(Refusal::Version, "the greeting is of another version")));
        };
        let greeted = self.owner().and_then(|owner| {
            let log = self.keeper.greet(&greeting, owner)?;
            self.guests.knows(self.guest, greeting.log).map(|()| log)
        });
        let log = match greeted {
            Ok(log) => log,
            Err(refused) => return Ok(Err(refused)),
        };
        let state = self.state_of(&log)?;
        (self.log, self.turn) = (Some((log, greeting.log)), None);
        self.send(&Frame::new(Kind::Welcome, frame.log, frame.epoch), &state).map(Ok)
    }

    fn promise(&mut self, log: &Mutex<Log>, frame: &Frame, body: &[u8]) -> io::Result<Result<(), Refused>> {
        let terms = match body.is_empty() {
            true => None,
            false => match serde_json::from_slice::<Terms>(body) {
                Ok(terms) if is_sane(&terms) => Some(terms),
                Ok(_) => {
                    return Ok(Err(Refused::new(
                        Refusal::Malformed,
                        "the log's keepers, or its writer's host, make no sense",
                    )));
                }
                Err(e) => {
                    return Ok(Err(Refused::new(
                        Refusal::Malformed,
                        format!("cannot read the log's keepers: {e}"),
                    )));
                }
            },
        };
        let promised = lock(log).promise(frame.epoch, terms);
        match promised {
            Ok(turn) => self.turn = Some(turn),
            Err(refused) => return Ok(Err(refused)),
        }
        let state = self.state_of(log)?;
        self.send(&Frame::new(Kind::Promised, frame.log, frame.epoch), &state).map(Ok)
    }

    /// The state, and what was agreed with its writer behind it.
    fn state_of(&self, log: &Mutex<Log>) -> io::Result<Vec<u8>> {
        let log = lock(log);
        let state: State = self.keeper.state(&log);
        let mut bytes = state.as_bytes().to_vec();
        let meta = log.meta();
        let terms = Terms { roster: meta.roster.clone(), holder: meta.holder.clone(), found: None };
        serde_json::to_writer(&mut bytes, &terms)?;
        Ok(bytes)
    }

    fn forget(&mut self, uuid: [u8; 16], turn: Turn, frame: &Frame) -> io::Result<Result<(), Refused>> {
        if let Err(refused) = self.keeper.forget_if(uuid, |log| log.may_forget(turn)) {
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

    fn send(&self, frame: &Frame, body: &[u8]) -> io::Result<()> {
        (&mut &*self.stream).write_all(&sealed(frame, body))
    }
}

/// True for keepers that a log may have, and a host's names. They are written to the disk with each promise.
fn is_sane(terms: &Terms) -> bool {
    let (roster, members) = (&terms.roster, &terms.roster.members);
    let is_short = |text: &str| text.len() <= NAME_MAX;
    let is_name = |text: &str| is_short(text) && !text.chars().any(char::is_control);
    terms.holder.as_ref().is_none_or(|holder| is_name(&holder.machine) && is_name(&holder.host))
        && (1..=KEEPERS_MAX).contains(&members.len())
        && (1..=members.len()).contains(&roster.acks)
        && members.iter().all(|member| is_short(&member.id) && is_short(&member.address))
}
