//! A copy of one log: what a writer may do to it, and what it answers.
//!
//! ```text
//!            promise ──▶ nobody older changes it        begin ─ pieces, batches ─ complete
//!               │                                         │  a second image, and then it is the copy
//!   adopt ──────┤ the copy is where the writer's log is   │
//!   batch ──────┘ the copy moves on by one                ▼
//! ```
//!
//! What must hold, whatever arrives in whatever order:
//!
//! * Only the writer that has the promise changes anything, and only by the connection on which it got it: its [`Turn`].
//!   The promise never goes back, and is on disk before the writer gets it. What a connection still carries that was given up
//!   comes too late: it would put old bytes over those of a second image.
//! * A copy at position *p* holds everything that was ever confirmed up to *p*. So a batch is taken only by a copy that
//!   has its predecessor, and one that lost its memory begins with nothing and says so.
//! * A position carries the epoch of its newest batch. A takeover compares these, never the epochs that were promised.
//!
//! A batch whose writer's thread was replaced by another one of its process may arrive and not count. What it holds was in
//! the log by then, so a copy that has it as well is still one that the log could have left; its number lies between that
//! of a batch and that of its predecessor. One that arrives behind its successor is too late, and changes nothing.

mod image;

use seawall_wire::keeper::{Epoch, Position, Refusal, State, state};
use zerocopy::{FromBytes as _, FromZeros as _};

/// A promise as one connection has it. A later one, of whomever, ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    epoch: Epoch,
    number: u64,
}

impl Turn {
    /// Whose turn it is.
    pub fn epoch(self) -> Epoch {
        self.epoch
    }
}

/// A copy of one log's image.
pub struct Copy {
    log: u64,
    image_bytes: u64,
    promised: Epoch,
    /// Counts turns.
    turns: u64,
    position: Position,
    is_kept: bool,
    /// `None`: a witness's.
    image: Option<Vec<u8>>,
    second: Option<Second>,
}

/// A second image in the making.
#[derive(Clone, Debug)]
struct Second {
    image: Vec<u8>,
    /// The newest batch that something in it is of.
    newest: u64,
}

/// Where a batch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The copy has it.
    Copy,
    /// The second image alone has it: the copy is where it was.
    Second,
    /// Its successor is here already.
    Late,
}

impl Copy {
    /// An empty copy, which has confirmed nothing yet, of the log whose UUID has this low half.
    pub fn new(log: u64, image_bytes: u64, is_witness: bool) -> Self {
        let image = (!is_witness).then(|| image::zeros(image_bytes));
        let (promised, position) = (Epoch::default(), Position::default());
        Self { log, image_bytes, promised, turns: 0, position, is_kept: true, image, second: None }
    }

    /// The same of one that promised this, and may have confirmed what it does not have any more.
    pub fn lost(mut self, promised: Epoch) -> Self {
        (self.promised, self.is_kept) = (promised, false);
        self
    }

    /// The same of one that has everything that it ever confirmed, as its caller knows.
    pub fn kept(mut self, promised: Epoch) -> Self {
        (self.promised, self.is_kept) = (promised, true);
        self
    }

    /// The log's UUID, low half.
    pub fn log(&self) -> u64 {
        self.log
    }

    /// Bytes of the image.
    pub fn image_bytes(&self) -> u64 {
        self.image_bytes
    }

    /// Nobody older than this changes it.
    pub fn promised(&self) -> Epoch {
        self.promised
    }

    /// What it is up to date with.
    pub fn position(&self) -> Position {
        self.position
    }

    /// True if it has everything that it ever confirmed.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// True if it has numbers only.
    pub fn is_witness(&self) -> bool {
        self.image.is_none()
    }

    /// True while a second image is being made.
    pub fn is_joining(&self) -> bool {
        self.second.is_some()
    }

    /// All of that, as a writer gets it.
    pub fn state(&self) -> State {
        let mut said = State::new_zeroed();
        (said.promised, said.position, said.image) = (self.promised, self.position, self.image_bytes);
        let flags = [(self.is_kept, state::KEPT), (self.is_witness(), state::WITNESS)];
        said.flags = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
        said
    }

    /// Looks whether this epoch may have the promise.
    ///
    /// # Errors
    /// [`Refusal::Fenced`] if a newer one has it.
    pub fn may_promise(&self, epoch: Epoch) -> Result<(), Refusal> {
        if epoch < self.promised || epoch == Epoch::default() { Err(Refusal::Fenced) } else { Ok(()) }
    }

    /// Promises. To be called when that is on disk, and [may be](Self::may_promise). What was begun in a former turn ends.
    pub fn promise(&mut self, epoch: Epoch) -> Turn {
        assert!(self.promised <= epoch, "a promise goes back from {:?} to {epoch:?}", self.promised);
        self.second = None;
        self.promised = epoch;
        self.turns += 1;
        Turn { epoch, number: self.turns }
    }

    /// A copy that is at `from` is at the writer's `number` from now on: it holds the same.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Behind`] if it is not there, or not everything that it confirmed is.
    pub fn adopt(&mut self, turn: Turn, from: Position, number: u64) -> Result<(), Refusal> {
        self.check(turn)?;
        // A witness that forgot a number is as good as a new one once it knows where the log is.
        let is_there = self.is_witness() || self.is_kept && self.position == from;
        let next = Position { epoch: turn.epoch, number };
        if !is_there || next < self.position {
            return Err(Refusal::Behind);
        }
        (self.position, self.is_kept) = (next, true);
        Ok(())
    }

    /// Takes a batch that follows `previous`. All of it or nothing.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Behind`] if the copy lacks something before it; [`Refusal::Malformed`].
    pub fn batch(&mut self, turn: Turn, number: u64, previous: u64, bytes: &[u8]) -> Result<Taken, Refusal> {
        self.check(turn)?;
        if number <= previous {
            return Err(Refusal::Malformed);
        }
        if let Some(second) = &mut self.second {
            // Whoever sent it was replaced, and went on later: what is there is newer.
            if number <= second.newest {
                return Ok(Taken::Late);
            }
            image::apply(&mut second.image, self.log, number, bytes)?;
            second.newest = number;
            return Ok(Taken::Second);
        }
        let at = self.position;
        if at.epoch != turn.epoch || at.number < previous || !self.is_kept {
            return Err(Refusal::Behind);
        }
        if at.number >= number {
            return Ok(Taken::Late);
        }
        match &mut self.image {
            Some(image) => image::apply(image, self.log, number, bytes)?,
            None if !bytes.is_empty() => return Err(Refusal::Witness),
            None => {}
        }
        self.position.number = number;
        Ok(Taken::Copy)
    }

    /// Begins a second image, of zeros. The copy stays what it is until that is complete.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Witness`].
    pub fn begin(&mut self, turn: Turn) -> Result<(), Refusal> {
        self.check(turn)?;
        if self.is_witness() {
            return Err(Refusal::Witness);
        }
        self.second = Some(Second { image: image::zeros(self.image_bytes), newest: 0 });
        Ok(())
    }

    /// Bytes of the second image, as they are after batch `last`, which was sent to it if it began before: an older one that
    /// comes later is not taken.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Malformed`] for what lies outside, or belongs to no second image.
    pub fn piece(&mut self, turn: Turn, at: u64, last: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.check(turn)?;
        let second = self.second.as_mut().ok_or(Refusal::Malformed)?;
        let at = usize::try_from(at).map_err(|_| Refusal::Malformed)?;
        let end = at.checked_add(bytes.len()).ok_or(Refusal::Malformed)?;
        second.image.get_mut(at..end).ok_or(Refusal::Malformed)?.copy_from_slice(bytes);
        second.newest = second.newest.max(last);
        Ok(())
    }

    /// The second image has everything up to the writer's batch `number`: it is the copy now.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Malformed`] if there is none, or the copy would go back.
    pub fn complete(&mut self, turn: Turn, number: u64) -> Result<(), Refusal> {
        self.check(turn)?;
        let second = self.second.as_ref().ok_or(Refusal::Malformed)?;
        // It may have one that is newer, and does not count yet.
        let next = Position { epoch: turn.epoch, number: number.max(second.newest) };
        if next < self.position {
            return Err(Refusal::Malformed);
        }
        self.image = self.second.take().map(|second| second.image);
        (self.position, self.is_kept) = (next, true);
        Ok(())
    }

    /// Looks whether whoever has this turn may read the image: nobody changes it under its eyes.
    ///
    /// # Errors
    /// [`Refusal::Fenced`]; [`Refusal::Witness`].
    pub fn may_fetch(&self, turn: Turn) -> Result<(), Refusal> {
        self.check(turn)?;
        if self.is_witness() { Err(Refusal::Witness) } else { Ok(()) }
    }

    /// Looks whether whoever has this turn may have it forgotten.
    ///
    /// # Errors
    /// [`Refusal::Fenced`].
    pub fn may_forget(&self, turn: Turn) -> Result<(), Refusal> {
        self.check(turn)
    }

    /// The turn of this epoch, for whoever does once more what its own file tells: whoever promised what is not in there.
    ///
    /// # Errors
    /// [`Refusal::Fenced`] for an epoch that is older than one before: the file is damaged.
    pub(crate) fn turn_of(&mut self, epoch: Epoch) -> Result<Turn, Refusal> {
        if self.promised == epoch {
            return Ok(Turn { epoch, number: self.turns });
        }
        self.may_promise(epoch)?;
        Ok(self.promise(epoch))
    }

    /// The first stretch of the image from `from` on that is not of zeros, at most `most` bytes of whole lines: where it
    /// begins, and it. After so many zeros that they take a while the last line of them: whoever waits hears that there is
    /// somebody.
    pub fn stretch(&self, from: u64, most: usize) -> Option<(u64, &[u8])> {
        image::stretch(self.image.as_deref()?, from, most)
    }

    fn check(&self, turn: Turn) -> Result<(), Refusal> {
        if turn == (Turn { epoch: self.promised, number: self.turns }) {
            Ok(())
        } else {
            Err(Refusal::Fenced)
        }
    }
}

/// The position at the front of these bytes.
pub(crate) fn position(bytes: &[u8]) -> Result<Position, Refusal> {
    Position::read_from_prefix(bytes).map(|(position, _)| position).map_err(|_| Refusal::Malformed)
}

#[cfg(test)]
mod tests;
