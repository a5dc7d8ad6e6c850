//! The note: which pieces of which files were in memory, and in which boot.
//!
//! ```text
//! seawall warm 1 5f0c…                boot id
//! 0-7,9 base/16384/16397
//! …
//! end 123                             how many files there are: a note that was cut short is none
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use seawall_core::pool;

use super::super::kept;
use super::pieces::Pieces;

const TITLE: &str = "seawall warm 1";

/// What was in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    boot: String,
    /// Paths from the data directory, in order.
    pub files: Vec<(PathBuf, Pieces)>,
}

impl Note {
    /// One of this boot, of nothing yet.
    pub fn of_now() -> Self {
        Self { boot: this_boot(), files: Vec::new() }
    }

    /// True if the machine was not restarted since.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == this_boot()
    }

    /// Every piece, file by file.
    pub fn pieces(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.files.iter().flat_map(|(path, pieces)| pieces.numbers().map(|piece| (path.as_path(), piece)))
    }

    /// The last one of this data directory, if it is whole.
    pub fn load(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(kept::file(data, "warm")).ok()?)
    }

    /// Keeps it. If it cannot be written, the next start will not know it, as before the first one.
    pub fn keep(&self, data: &Path) {
        let _ = kept::write_text(data, "warm", self.text().as_bytes());
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE} {}\n", self.boot);
        let mut count = 0;
        for (path, pieces) in &self.files {
            // A name that is no text, or two lines, is left out.
            if let Some(path) = path.to_str().filter(|path| !path.contains('\n')) {
                text += &format!("{pieces} {path}\n");
                count += 1;
            }
        }
        text + &format!("end {count}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let boot = lines.next()?.strip_prefix(TITLE)?.trim().to_owned();
        let mut files = Vec::new();
        for line in lines {
            let (first, rest) = line.split_once(' ')?;
            if first == "end" {
                return (rest.parse() == Ok(files.len())).then_some(Self { boot, files });
            }
            let path = PathBuf::from(rest);
            // It is a hint from a file: nothing outside of the data is opened for it.
            let is_below = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            files.push((path, first.parse().ok().filter(|_| is_below)?));
        }
        None
    }
}

fn this_boot() -> String {
    format!("{:032x}", u128::from_be_bytes(pool::boot()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_comes_back_and_one_that_was_cut_short_does_not() {
        let mut note = Note::of_now();
        note.files.push(("base/5/1".into(), Pieces::of([0, 1, 9])));
        note.files.push(("base/5/a b".into(), Pieces::of([3])));
        let text = note.text();
        assert_eq!(Note::parse(&text), Some(note.clone()));
        assert!(note.is_of_this_boot());
        for len in 0..text.len() - 1 {
            assert_eq!(Note::parse(&text[..len]), None, "{len} bytes");
        }
        let other = text.replacen(&note.boot, "another", 1);
        assert!(!Note::parse(&other).expect("a note").is_of_this_boot());
        assert_eq!(note.pieces().map(|(_, piece)| piece).collect::<Vec<_>>(), [0, 1, 9, 3]);
    }

    #[test]
    fn nothing_outside_of_the_data_is_named() {
        for path in ["../secret", "/etc/shadow", "base/../../x"] {
            assert_eq!(Note::parse(&format!("{TITLE} b\n0 {path}\nend 1\n")), None, "{path}");
        }
    }
}
