//! A size in blocks (`10000`) or in bytes (`500M`, `1024G`, `2T`), as SCALE takes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What SCALE and SCAN_TABLE_SZ are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Size {
    /// Blocks of the database, whatever their size.
    Blocks(u64),
    /// Bytes.
    Bytes(u64),
}

impl Size {
    /// How many blocks of `block_bytes` that is.
    pub fn blocks(self, block_bytes: u64) -> u64 {
        match self {
            Size::Blocks(blocks) => blocks,
            Size::Bytes(bytes) => bytes / block_bytes,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a number of blocks, or a size like 500M, 64G, 2T");
        let (digits, shift) = match text.chars().last().map(|unit| unit.to_ascii_uppercase()) {
            Some('M') => (&text[..text.len() - 1], 20),
            Some('G') => (&text[..text.len() - 1], 30),
            Some('T') => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        match shift {
            0 => Ok(Size::Blocks(number)),
            _ => number.checked_mul(1 << shift).map(Size::Bytes).ok_or_else(wrong),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Size::Blocks(blocks) => write!(f, "{blocks}"),
            Size::Bytes(bytes) if bytes > 0 && bytes.trailing_zeros() >= 40 => write!(f, "{}T", bytes >> 40),
            Size::Bytes(bytes) if bytes > 0 && bytes.trailing_zeros() >= 30 => write!(f, "{}G", bytes >> 30),
            Size::Bytes(bytes) => write!(f, "{}M", bytes >> 20),
        }
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn blocks_and_bytes() {
        assert_eq!("10000".parse(), Ok(Size::Blocks(10_000)));
        assert_eq!("1024G".parse(), Ok(Size::Bytes(1 << 40)));
        assert_eq!(Size::Bytes(1 << 30).blocks(8192), 131_072);
        assert_eq!(Size::Blocks(5).blocks(8192), 5);
        for wrong in ["", "M", "1.5G", "-1", "10K", "99999999999T"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_as_read() {
        for text in ["10000", "5M", "1G", "2T", "0M"] {
            assert_eq!(text.parse::<Size>().map(|size| size.to_string()), Ok(text.to_owned()));
        }
    }
}
