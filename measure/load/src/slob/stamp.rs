//! What stands in a column: 128 characters that say which operation wrote them, and for which rows.
//!
//! ```text
//!   run      thread seq        r          unit col  noise (75 hexadecimal digits)  crc32
//!   0000002a.0003.00000001f4.0000012345.0040.07.……………………………………………………………………………….c0ffee00
//! ```
//! Each field defeats one fault: `run`, `thread`, `seq` reveal a row that was set back to an older content;
//! `r` and `unit` a row that holds another row's content; `col` exchanged columns; the checksum torn or garbled
//! text. The noise makes every value new, and poor to compress.

use crate::block::mix;

/// Characters of a column.
pub const COLUMN_LEN: usize = 128;
/// Text columns of a row: c2 to c20.
pub const COLUMNS: usize = 19;
const CRC_AT: usize = COLUMN_LEN - 8;

/// An operation, as its rows name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// Number of the run; 0: the row is as it was loaded.
    pub run: u32,
    /// The session.
    pub thread: u16,
    /// Its running number, below 2^40.
    pub seq: u64,
    /// Its rows are those above `r - unit` and below `r`.
    pub r: u64,
    /// WORK_UNIT.
    pub unit: u16,
}

impl Stamp {
    /// What a row is loaded with: it stands for itself alone.
    pub fn loaded(custid: u64) -> Self {
        Stamp { run: 0, thread: 0, seq: 0, r: custid + 1, unit: 2 }
    }

    /// Whether the operation covered a row.
    pub fn covers(&self, custid: u64) -> bool {
        custid < self.r && custid + u64::from(self.unit) > self.r
    }

    /// The text of column `c2` (0) to `c20` (18).
    pub fn column(&self, number: usize) -> String {
        assert!(number < COLUMNS, "there is no column {number}");
        let mut text = Vec::with_capacity(COLUMN_LEN);
        let fields = [
            (u64::from(self.run), 8),
            (self.thread.into(), 4),
            (self.seq, 10),
            (self.r, 10),
            (self.unit.into(), 4),
            (number as u64 + 2, 2),
        ];
        for (value, digits) in fields {
            hex(&mut text, value, digits);
            text.push(b'.');
        }
        let mut noise = mix(self.seq ^ self.r << 20 ^ u64::from(self.run) << 32 ^ (number as u64) << 58);
        while text.len() < CRC_AT - 1 {
            let missing = CRC_AT - 1 - text.len();
            hex(&mut text, noise, missing.min(16));
            noise = mix(noise);
        }
        text.push(b'.');
        let crc = crc32fast::hash(&text);
        hex(&mut text, crc.into(), 8);
        String::from_utf8(text).expect("hexadecimal digits and dots")
    }

    /// The texts of all columns.
    pub fn columns(&self) -> [String; COLUMNS] {
        std::array::from_fn(|number| self.column(number))
    }

    /// Reads column `number` back, or says what is wrong with it.
    pub fn read(text: &str, number: usize) -> Result<Self, String> {
        let bytes = text.as_bytes();
        if bytes.len() != COLUMN_LEN {
            return Err(format!("{} characters, not {COLUMN_LEN}", bytes.len()));
        }
        let crc = parse(&bytes[CRC_AT..]).ok_or("no checksum")?;
        if crc != u64::from(crc32fast::hash(&bytes[..CRC_AT])) {
            return Err("checksum mismatch (torn or garbled)".to_owned());
        }
        let field =
            |from: usize, digits: usize| parse(&bytes[from..from + digits]).ok_or("not a stamp of this load");
        let written_for = field(41, 2)?;
        if written_for != number as u64 + 2 {
            return Err(format!("the content of column c{written_for}"));
        }
        Ok(Stamp {
            run: field(0, 8)? as u32,
            thread: field(9, 4)? as u16,
            seq: field(14, 10)?,
            r: field(25, 10)?,
            unit: field(36, 4)? as u16,
        })
    }
}

fn hex(text: &mut Vec<u8>, value: u64, digits: usize) {
    for digit in (0..digits).rev() {
        text.push(b"0123456789abcdef"[(value >> (4 * digit)) as usize & 15]);
    }
}

fn parse(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { run: 42, thread: 3, seq: 500, r: 0x12345, unit: 64 };

    #[test]
    fn a_column_says_what_wrote_it() {
        for (number, text) in STAMP.columns().iter().enumerate() {
            assert_eq!(text.len(), COLUMN_LEN);
            assert_eq!(Stamp::read(text, number), Ok(STAMP));
        }
    }

    #[test]
    fn every_operation_changes_every_column() {
        let later = Stamp { seq: STAMP.seq + 1, ..STAMP };
        assert!(STAMP.columns().iter().zip(later.columns()).all(|(old, new)| *old != new));
    }

    #[test]
    fn damage_is_told() {
        let text = STAMP.column(5);
        assert!(Stamp::read(&text, 6).expect_err("another column").contains("c7"));
        assert!(Stamp::read(&text[1..], 5).is_err());
        assert!(Stamp::read(&text.replace("012345", "012346"), 5).expect_err("garbled").contains("checksum"));
    }

    #[test]
    fn sixty_three_rows_for_sixty_four() {
        let covered: Vec<u64> = (0..1 << 20).filter(|custid| STAMP.covers(*custid)).collect();
        assert_eq!((covered.len(), covered[0], covered[62]), (63, STAMP.r - 63, STAMP.r - 1));
        assert!(Stamp::loaded(7).covers(7) && !Stamp::loaded(7).covers(6) && !Stamp::loaded(7).covers(8));
    }
}
