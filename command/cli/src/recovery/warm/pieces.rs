//! Pieces of a file, by number: as text `0-7,9`.

use std::fmt;
use std::str::FromStr;

/// Bytes of a piece: what a note is about.
pub const PIECE: u64 = 1 << 20;

/// Numbers of pieces, in order, as ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(Vec<(u64, u64)>);

impl Pieces {
    /// Of numbers in order.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        Self(ranges)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Each of them.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }
}

impl fmt::Display for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Pieces {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| ());
        let range = |text: &str| match text.split_once('-') {
            Some((first, last)) => Ok((number(first)?, number(last)?)),
            None => number(text).map(|one| (one, one)),
        };
        let ranges: Vec<_> = text.split(',').map(range).collect::<Result<_, ()>>()?;
        let in_order = ranges.iter().all(|(first, last)| first <= last);
        let apart = ranges.windows(2).all(|two| two[0].1 < two[1].0);
        if in_order && apart { Ok(Self(ranges)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_ranges_and_come_back_from_their_text() {
        let pieces = Pieces::of([0, 1, 2, 5, 7, 8]);
        assert_eq!(pieces.to_string(), "0-2,5,7-8");
        assert_eq!(pieces.len(), 6);
        assert_eq!("0-2,5,7-8".parse(), Ok(pieces.clone()));
        assert_eq!(pieces.numbers().collect::<Vec<_>>(), [0, 1, 2, 5, 7, 8]);
        for wrong in ["", "x", "2-1", "3,3", "3,1", "1-"] {
            assert_eq!(wrong.parse::<Pieces>(), Err(()), "{wrong}");
        }
    }
}
