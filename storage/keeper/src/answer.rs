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
        Some(Kind::Piece) => {
            return copy.piece(turn, frame.number, frame.previous, body).map(|()| Answer::None);
        }
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

#[cfg(test)]
mod tests {
    use seawall_media::LINE;
    use seawall_wire::keeper::Position;
    use zerocopy::IntoBytes as _;

    use super::*;

    const OLD: Epoch = Epoch { counter: 1, writer: 1 };
    const NEW: Epoch = Epoch { counter: 2, writer: 2 };

    #[test]
    fn an_answer_counts_only_of_a_copy_that_is_of_this_turn_and_whole() {
        let mut copy = Copy::new(7, LINE as u64, false);
        let first = copy.promise(OLD);
        let adopt = Frame::new(Kind::Adopt, 7, OLD).numbered(9, 0);
        let adopted = answer(&mut copy, first, &adopt, Position::default().as_bytes());
        assert!(matches!(adopted, Ok(Answer::Ack(ack)) if (ack.code, ack.number) == (0, 9)), "{adopted:?}");

        let turn = copy.promise(NEW);
        let mut ask = |kind, epoch| answer(&mut copy, turn, &Frame::new(kind, 7, epoch).numbered(5, 0), &[]);
        let is_flagged = |answer| matches!(answer, Ok(Answer::Ack(ack)) if ack.code == ack::JOINING);
        assert!(is_flagged(ask(Kind::Ask, NEW)), "the copy is of an older turn");
        assert_eq!(ask(Kind::Ask, OLD), Err(Refusal::Malformed), "a frame of another turn");
        assert!(is_flagged(ask(Kind::Begin, NEW)), "it has no second image yet");
        let whole = ask(Kind::Complete, NEW);
        assert!(matches!(whole, Ok(Answer::Ack(ack)) if (ack.code, ack.number) == (0, 5)), "{whole:?}");
        assert!(is_flagged(ask(Kind::Begin, NEW)), "another second image is being made");
    }
}
