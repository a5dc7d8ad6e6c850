//! What a keeper answers a writer's frame: it has the copy do what the frame says.

use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal, ack};

use crate::copy::{Copy, Turn, position};

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A frame with nothing behind it.
    Ack(Frame),
    /// Nothing.
    None,
    /// The image, as [`Copy::stretch`] gives it.
    Image,
}

/// Answers a frame of whoever has this turn. What a disk has of it is nothing that is known here.
///
/// # Errors
/// [`Refusal`]; the copy is as it was.
pub fn answer(copy: &mut Copy, turn: Turn, frame: &Frame, body: &[u8]) -> Result<Answer, Refusal> {
    if frame.epoch != turn.epoch() {
        return Err(Refusal::Malformed);
    }
    match frame.kind() {
        Some(Kind::Batch) => drop(copy.batch(turn, frame.number, frame.previous, body)?),
        Some(Kind::Adopt) => copy.adopt(turn, position(body)?, frame.number)?,
        Some(Kind::Begin) => copy.begin(turn)?,
        Some(Kind::Piece) => return copy.piece(turn, frame.number, body).map(|()| Answer::None),
        Some(Kind::Complete) => copy.complete(turn, frame.number)?,
        Some(Kind::Ask) => {}
        Some(Kind::Fetch) => return copy.may_fetch(turn).map(|()| Answer::Image),
        _ => return Err(Refusal::Malformed),
    }
    // The number in the answer is the copy's; until that is of this turn it says nothing.
    let counts = !copy.is_joining() && copy.position().epoch == turn.epoch();
    let flags = if counts { 0 } else { ack::JOINING };
    let ack = Frame::new(Kind::Ack, frame.log, turn.epoch());
    Ok(Answer::Ack(ack.numbered(copy.position().number, 0).with_code(flags)))
}

/// What says that it was refused; a text is to be behind it.
pub fn refused(refusal: Refusal) -> Frame {
    Frame::new(Kind::Refused, 0, Epoch::default()).with_code(refusal as u32)
}
