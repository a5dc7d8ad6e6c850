//! A simulated keeper: production's copy and its answers, and connections that nobody closes in time.

use seawall_keeper::answer::{self, Answer, answer};
use seawall_keeper::copy::{Copy, Turn};
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal};
use zerocopy::IntoBytes as _;

use crate::pipe::Pipe;
use crate::scratch::{IMAGE, LOG};

/// One connection as the keeper has it.
pub struct Conn {
    pub keeper: usize,
    pub pipe: Pipe,
    turn: Option<Turn>,
    life: u64,
}

pub struct Keeper {
    pub copy: Copy,
    /// It confirms only what survives its end.
    affirms: bool,
    /// Counts its starts: a connection lives in one of them.
    life: u64,
}

impl Keeper {
    pub fn new(is_witness: bool, affirms: bool) -> Self {
        Self { copy: Copy::new(LOG, IMAGE as u64, is_witness), affirms, life: 0 }
    }

    /// Somebody connects.
    pub fn meet(&self, keeper: usize, pipe: Pipe) -> Conn {
        Conn { keeper, pipe, turn: None, life: self.life }
    }

    /// It ends, and begins anew.
    pub fn restart(&mut self) {
        let promised = self.copy.promised();
        self.life += 1;
        if !self.affirms {
            self.copy = Copy::new(LOG, IMAGE as u64, self.copy.is_witness()).lost(promised);
        }
    }

    /// The image of a copy that has data, and has kept everything.
    pub fn image(&self) -> Option<Vec<u8>> {
        if self.copy.is_witness() || !self.copy.is_kept() {
            return None;
        }
        let mut image = vec![0; IMAGE];
        self.stretches(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes));
        Some(image)
    }

    /// Serves the next request of a connection.
    pub fn serve(&mut self, conn: &mut Conn) {
        if conn.life != self.life {
            return conn.pipe.end(0);
        }
        let Some((frame, body)) = conn.pipe.request() else { return };
        if let Err(refusal) = self.answer(conn, &frame, &body) {
            conn.pipe.answer(&answer::refused(refusal), b"for a reason");
            conn.pipe.end(0);
        }
    }

    fn answer(&mut self, conn: &mut Conn, frame: &Frame, body: &[u8]) -> Result<(), Refusal> {
        let said = |kind| Frame::new(kind, frame.log, frame.epoch);
        if frame.kind() == Some(Kind::Promise) {
            self.copy.may_promise(frame.epoch)?;
            // Whoever brings the log itself is refused where somebody has taken it over since it looked.
            let found = Epoch { counter: frame.number, writer: frame.previous };
            if frame.number != 0 && self.copy.position().epoch > found {
                return Err(Refusal::Taken);
            }
            conn.turn = Some(self.copy.promise(frame.epoch));
            conn.pipe.answer(&said(Kind::Promised), self.copy.state().as_bytes());
            return Ok(());
        }
        let turn = conn.turn.ok_or(Refusal::Malformed)?;
        match answer(&mut self.copy, turn, frame, body)? {
            Answer::Ack(ack) => conn.pipe.answer(&ack, &[]),
            Answer::None => {}
            Answer::Image => {
                self.stretches(|at, bytes| conn.pipe.answer(&said(Kind::Piece).numbered(at, 0), bytes));
                conn.pipe.answer(&said(Kind::Complete), &[]);
            }
        }
        Ok(())
    }

    fn stretches(&self, mut take: impl FnMut(u64, &[u8])) {
        let mut at = 0;
        while let Some((begin, bytes)) = self.copy.stretch(at, 2 * LINE) {
            take(begin, bytes);
            at = begin + bytes.len() as u64;
        }
    }
}
