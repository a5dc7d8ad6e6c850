//! A simulated keeper: production's copy, a promise that survives, and connections that nobody closes in time.

use std::collections::VecDeque;

use seawall_keeper::copy::{Copy, Taken, Turn};
use seawall_wire::keeper::{Epoch, Position, Refusal, State, state};
use zerocopy::FromZeros as _;

use crate::scratch::{IMAGE, LOG};

#[derive(Clone, Debug)]
pub enum Request {
    Promise(Epoch),
    Adopt(Position, u64),
    Batch { number: u64, previous: u64, bytes: Vec<u8> },
    Begin,
    Piece(u64, Vec<u8>),
    Complete(u64),
    Fetch,
}

#[derive(Clone, Debug)]
pub enum Answer {
    Promised(State),
    Ack { number: u64, counts: bool },
    Image(Vec<u8>),
    Refused(Refusal),
}

/// One connection as the keeper has it.
#[derive(Default)]
pub struct Conn {
    pub requests: VecDeque<Request>,
    pub answers: VecDeque<Answer>,
    turn: Option<Turn>,
    pub is_broken: bool,
}

pub struct Keeper {
    pub copy: Copy,
    pub is_witness: bool,
    /// It confirms only what survives its end.
    pub affirms: bool,
}

impl Keeper {
    pub fn new(is_witness: bool, affirms: bool) -> Self {
        Self { copy: Copy::new(LOG, IMAGE as u64, is_witness), is_witness, affirms }
    }

    /// It ends, and begins anew.
    pub fn restart(&mut self) {
        let promised = self.copy.promised();
        if !self.affirms {
            self.copy = Copy::new(LOG, IMAGE as u64, self.is_witness).lost(promised);
        }
    }

    pub fn state(&self) -> State {
        let mut state = State::new_zeroed();
        (state.promised, state.position) = (self.copy.promised(), self.copy.position());
        state.flags = if self.copy.is_kept() { state::KEPT } else { 0 }
            | if self.copy.is_witness() { state::WITNESS } else { 0 };
        state
    }

    /// Serves the next request of a connection.
    pub fn serve(&mut self, conn: &mut Conn) {
        let Some(request) = conn.requests.pop_front() else { return };
        match self.answer(conn, request) {
            Ok(Some(answer)) => conn.answers.push_back(answer),
            Ok(None) => {}
            Err(refusal) => {
                conn.answers.push_back(Answer::Refused(refusal));
                conn.requests.clear();
                conn.is_broken = true;
            }
        }
    }

    fn answer(&mut self, conn: &mut Conn, request: Request) -> Result<Option<Answer>, Refusal> {
        let copy = &mut self.copy;
        if let Request::Promise(epoch) = request {
            copy.may_promise(epoch)?;
            conn.turn = Some(copy.promise(epoch));
            return Ok(Some(Answer::Promised(self.state())));
        }
        let turn = conn.turn.ok_or(Refusal::Malformed)?;
        let number = match request {
            Request::Promise(_) => unreachable!("above"),
            Request::Adopt(from, number) => copy.adopt(turn, from, number).map(|()| number)?,
            Request::Begin => copy.begin(turn).map(|()| 0)?,
            Request::Complete(number) => copy.complete(turn, number).map(|()| number)?,
            Request::Piece(at, bytes) => {
                copy.piece(turn, at, &bytes)?;
                return Ok(None);
            }
            Request::Batch { number, previous, bytes } => {
                let bytes = if copy.is_witness() { &[] } else { &bytes[..] };
                let counts = copy.batch(turn, number, previous, bytes)? != Taken::Second;
                return Ok(Some(Answer::Ack { number: copy.position().number, counts }));
            }
            Request::Fetch => {
                copy.may_fetch(turn)?;
                let (mut image, mut at) = (vec![0; IMAGE], 0);
                while let Some((begin, bytes)) = copy.stretch(at, IMAGE) {
                    image[begin as usize..][..bytes.len()].copy_from_slice(bytes);
                    at = begin + bytes.len() as u64;
                }
                return Ok(Some(Answer::Image(image)));
            }
        };
        Ok(Some(Answer::Ack { number, counts: true }))
    }
}
