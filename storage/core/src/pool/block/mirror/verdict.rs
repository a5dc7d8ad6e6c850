//! The verdict on two copies, by what their anchors say: a pure function.
//!
//! Each copy's anchors state one of three things: what was acknowledged is on both ("both"); it is here alone since the
//! other copy was lost ("alone"); this copy is still being made from the other one ("unfinished"). The statement
//! carries an epoch that grows whenever the state changes. A copy says "alone" before anything is acknowledged on it
//! alone, so from then on the other one's epoch is older.
//!
//! | this copy | the other one | what is done |
//! |---|---|---|
//! | both | both, same epoch | both are read: the one that holds more is believed (if one cannot be read: the other one) |
//! | unfinished | both, or alone | the other one is believed |
//! | any | any, with another epoch, not both alone | the one with the higher epoch is believed |
//! | alone | gone | it goes on alone |
//! | both | gone | refused: the missing one may have gone on alone |
//! | unfinished | gone, or unfinished | refused: it is not whole |
//! | alone | alone | refused: both went on, each without the other one |
//! | alone | both, same epoch | refused: this is impossible |

use seawall_media::block::{Mirror, MirrorState};

/// The verdict on two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both are read, and the one that holds more is believed.
    Compare,
    /// This one is believed.
    This,
    /// The other one is believed.
    Other,
    /// Only this one exists, and it is whole.
    Alone,
    /// The other one is gone, and may hold more.
    Missing,
    /// Neither is whole.
    Unfinished,
    /// Both went on alone.
    Split,
}

/// Decides by what the copies' anchors say; see the table above.
pub fn decide(this: Mirror, other: Option<Mirror>) -> Verdict {
    use MirrorState::{Alone, Both, Unfinished};
    let Some(other) = other else {
        return match this.state {
            Alone => Verdict::Alone,
            Both => Verdict::Missing,
            Unfinished => Verdict::Unfinished,
        };
    };
    match (this.state, other.state) {
        (Unfinished, Unfinished) => Verdict::Unfinished,
        (Unfinished, _) => Verdict::Other,
        (_, Unfinished) => Verdict::This,
        (Alone, Alone) => Verdict::Split,
        (Both, Both) if this.epoch == other.epoch => Verdict::Compare,
        _ if this.epoch > other.epoch => Verdict::This,
        _ if this.epoch < other.epoch => Verdict::Other,
        _ => Verdict::Split,
    }
}

#[cfg(test)]
mod tests {
    use MirrorState::{Alone, Both, Unfinished};

    use super::*;

    fn said(state: MirrorState, epoch: u16) -> Mirror {
        Mirror { copy: 0, state, epoch }
    }

    /// Every row of the table, from either side.
    // Holds: R16
    #[test]
    fn every_row_is_decided_as_the_table_says() {
        let rows = [
            ((Both, 4), (Both, 4), Verdict::Compare),
            ((Unfinished, 9), (Both, 4), Verdict::Other),
            ((Unfinished, 9), (Alone, 4), Verdict::Other),
            ((Alone, 5), (Both, 4), Verdict::This),
            ((Both, 5), (Both, 4), Verdict::This),
            ((Both, 6), (Alone, 5), Verdict::This),
            ((Unfinished, 4), (Unfinished, 4), Verdict::Unfinished),
            ((Alone, 5), (Alone, 5), Verdict::Split),
            ((Alone, 7), (Alone, 5), Verdict::Split),
            ((Alone, 4), (Both, 4), Verdict::Split),
        ];
        for (this, other, verdict) in rows {
            let (this, other) = (said(this.0, this.1), said(other.0, other.1));
            let turned = match verdict {
                Verdict::This => Verdict::Other,
                Verdict::Other => Verdict::This,
                verdict => verdict,
            };
            assert_eq!(decide(this, Some(other)), verdict, "{this:?} and {other:?}");
            assert_eq!(decide(other, Some(this)), turned, "{other:?} and {this:?}");
        }
        let alone = [(Alone, Verdict::Alone), (Both, Verdict::Missing), (Unfinished, Verdict::Unfinished)];
        for (state, verdict) in alone {
            assert_eq!(decide(said(state, 4), None), verdict, "{state:?} and none");
        }
    }
}
