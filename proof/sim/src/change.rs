//! A change of a file's content.

use std::rc::Rc;

/// A change of a file's content.
#[derive(Clone, Debug)]
pub enum Change {
    /// Bytes at an offset.
    Write(usize, Rc<Vec<u8>>),
    /// Bytes at the end.
    Append(Rc<Vec<u8>>),
    /// A size.
    Truncate(usize),
    /// At least this size.
    Grow(usize),
    /// Whatever was found there.
    Becomes(Rc<Vec<u8>>),
}

impl Change {
    /// Applies it.
    pub fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(at, data) => {
                let end = at + data.len();
                if content.len() < end && !data.is_empty() {
                    content.resize(end, 0);
                }
                if !data.is_empty() {
                    content[*at..end].copy_from_slice(data);
                }
            }
            Self::Append(data) => content.extend_from_slice(data),
            Self::Truncate(len) => content.resize(*len, 0),
            Self::Grow(len) => content.resize((*len).max(content.len()), 0),
            Self::Becomes(all) => content.clone_from(all),
        }
    }

    /// What it comes to in a file that ends here.
    pub fn at(&self, end: usize) -> Self {
        match self {
            Self::Append(data) => Self::Write(end, Rc::clone(data)),
            other => other.clone(),
        }
    }

    /// In a few words.
    pub fn brief(&self) -> String {
        match self {
            Self::Write(at, data) => format!("write {at}+{}", data.len()),
            Self::Append(data) => format!("append {}", data.len()),
            Self::Truncate(len) => format!("truncate {len}"),
            Self::Grow(len) => format!("grow {len}"),
            Self::Becomes(all) => format!("becomes {} bytes", all.len()),
        }
    }
}
