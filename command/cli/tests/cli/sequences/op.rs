//! The calls that sequences are made of.

use std::fmt::Display;

/// A call. Paths are relative to the sequence's own directory, which is `.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub call: &'static str,
    pub path: &'static str,
    pub to: &'static str,
}

const CALLS: &[(&str, &str, &str)] = &[
    ("creat", "b", ""),
    ("creat", "B/c", ""),
    ("creat", "M/d", ""),
    ("creat", "M", ""),
    ("tmpfile", "b", ""),
    ("symlink", "b", ""),
    ("write", "a", ""),
    ("write", "b", ""),
    ("write", "B/c", ""),
    ("write", "M/d", ""),
    ("append", "a", ""),
    ("append", "b", ""),
    ("append", "B/c", ""),
    ("truncate", "a", "1"),
    ("truncate", "b", "1"),
    ("fallocate", "a", "20"),
    ("fallocate", "b", "20"),
    ("link", "a", "b"),
    ("link", "a", "B/c"),
    ("link", "a", "M/d"),
    ("link", "b", "B/c"),
    ("link", "B/c", "b"),
    ("unlink", "a", ""),
    ("unlink", "b", ""),
    ("unlink", "B/c", ""),
    ("unlink", "M", ""),
    ("unlink", "M/d", ""),
    ("rename", "a", "b"),
    ("rename", "b", "a"),
    ("rename", "a", "B/c"),
    ("rename", "b", "B/c"),
    ("rename", "B/c", "b"),
    ("rename", "B", "M"),
    ("rename", "M", "N"),
    ("rename", "M", "B"),
    ("rename", "M", "B/c"),
    ("rename", "B/c", "M"),
    ("rename", "a", "M/d"),
    ("rename", "M/d", "b"),
    ("exchange", "a", "b"),
    ("exchange", "a", "B/c"),
    ("exchange", "B", "M"),
    ("mkdir", "M", ""),
    ("rmdir", "M", ""),
    ("rmdir", "B", ""),
    ("fsync", "a", ""),
    ("fsync", "b", ""),
    ("fsync", "B/c", ""),
    ("fsync", ".", ""),
    ("fsync", "B", ""),
    ("fsync", "M", ""),
    ("fsync", "M/d", ""),
];

impl Op {
    pub fn all() -> impl Iterator<Item = Self> {
        CALLS.iter().map(|&(call, path, to)| Self { call, path, to })
    }

    /// True for what a mount has not: a file without a name.
    pub fn is_nameless(&self) -> bool {
        self.call == "tmpfile"
    }

    pub fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_it =
            |op: &Self| [op.call, op.path, op.to].iter().filter(|word| !word.is_empty()).eq(words.iter());
        Self::all().find(is_it).unwrap_or_else(|| panic!("no such call: {text}"))
    }

    /// True for what brings all of a log to the disk, whoever it is of.
    pub fn is_sync(&self) -> bool {
        self.call == "fsync"
    }

    /// The line that has the program do it, in this directory, as step `number`.
    pub fn line(&self, directory: &str, number: usize) -> String {
        let Self { call, path, to } = self;
        let further = match *call {
            "creat" | "tmpfile" => format!("{:o}", mode(number, false)),
            "mkdir" => format!("{:o}", mode(number, true)),
            "symlink" => format!("to{number}"),
            "write" | "append" => text(number),
            "link" | "rename" | "exchange" => format!("{directory}/{to}"),
            _ => (*to).to_owned(),
        };
        format!("{call} {directory}/{path} {further}\n")
    }

    /// What it makes of a file's content in step `step`.
    pub fn change(&self, content: &mut Vec<u8>, step: usize) {
        let written = text(step).into_bytes();
        match self.call {
            "append" => content.extend(written),
            "write" => {
                let len = content.len().max(written.len());
                content.resize(len, 0);
                content[..written.len()].copy_from_slice(&written);
            }
            "truncate" => content.resize(self.to.parse().expect("a number"), 0),
            _ => content.resize(content.len().max(self.to.parse().expect("a number")), 0),
        }
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.call, self.path)?;
        if self.to.is_empty() { Ok(()) } else { write!(f, " {}", self.to) }
    }
}

/// What is written in a step.
fn text(step: usize) -> String {
    format!("[{step}]")
}

/// The mode of what is made in a step, which is how it is known again.
pub fn mode(id: usize, is_directory: bool) -> u32 {
    let known = id as u32 & 0o77;
    if is_directory { 0o700 | known } else { 0o600 | known }
}
