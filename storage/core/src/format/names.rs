//! Changes of names as records: the payload of [`RecordKind::Names`](super::RecordKind).
//!
//! ```text
//! header, 112 bytes │ name │ where it moves to │ content of the file, or target of the symbolic link
//! ```

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use seawall_media::assert_layout;

use super::change::{Across, Elsewhere, NameChange, Replaced};
use super::handle::{Attributes, Handle};

/// Longest name (NAME_MAX).
pub const NAME_MAX: usize = 255;
/// Bytes of a change without its file's content, at most.
pub const CHANGE_MAX: usize = size_of::<NameHead>() + 2 * NAME_MAX;

/// The beginning of the payload.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NameHead {
    verb: u8,
    name: u8,
    to: u8,
    flags: u8,
    mode: u32,
    uid: u32,
    gid: u32,
    modified: i64,
    modified_ns: u32,
    data_len: u32,
    file: Handle,
    other: Handle,
    slot: u32,
    generation: u32,
    first: u64,
}

assert_layout!(NameHead, 112, {
    verb @ 0, name @ 1, to @ 2, flags @ 3, mode @ 4, uid @ 8, gid @ 12, modified @ 16, modified_ns @ 24,
    data_len @ 28, file @ 32, other @ 64, slot @ 96, generation @ 100, first @ 104,
});

const MADE: u8 = 1;
const GONE: u8 = 2;
const MOVED: u8 = 3;
const CONTENT: u8 = 4;
const SETTLED: u8 = 5;
const IS: u8 = 6;
const LINKED: u8 = 7;
const SYMLINK: u8 = 8;
/// Earlier versions know no link between two directories.
const LINKED_ACROSS: u8 = 9;

/// Two files have each other's name.
const EXCHANGED: u8 = 1;
/// The former name is in another directory.
const FROM: u8 = 2;
/// The new name is in another directory.
const TO: u8 = 4;
/// The file that loses a name has others. Earlier versions did not say so.
const OTHERS: u8 = 8;

impl NameHead {
    fn set_attributes(&mut self, attributes: &Attributes) {
        (self.mode, self.uid, self.gid) = (attributes.mode, attributes.uid, attributes.gid);
        (self.modified, self.modified_ns) = attributes.modified;
    }

    fn attributes(&self) -> Attributes {
        let modified = (self.modified, self.modified_ns);
        Attributes { mode: self.mode, uid: self.uid, gid: self.gid, modified }
    }

    fn set_across(&mut self, across: &Across) {
        let (flag, elsewhere, first) = match across {
            Across::No => (0, Elsewhere::default(), 0),
            Across::From { other, first } => (FROM, *other, *first),
            Across::To { other, first } => (TO, *other, *first),
        };
        self.flags |= flag;
        (self.slot, self.generation, self.first) = (elsewhere.slot, elsewhere.generation, first);
    }

    /// `None`: no such flags are written.
    fn across(&self) -> Option<Across> {
        let (other, first) = (self.elsewhere(), self.first);
        Some(match self.flags & (FROM | TO) {
            0 => Across::No,
            FROM => Across::From { other, first },
            TO => Across::To { other, first },
            _ => return None,
        })
    }

    fn elsewhere(&self) -> Elsewhere {
        Elsewhere { slot: self.slot, generation: self.generation }
    }
}

/// A change as it is stored, except for the content.
pub struct EncodedChange {
    bytes: [u8; CHANGE_MAX],
    len: usize,
}

impl EncodedChange {
    /// `None`: a name is too long.
    fn of(mut head: NameHead, [name, to]: [&[u8]; 2]) -> Option<Self> {
        head.name = u8::try_from(name.len()).ok()?;
        head.to = u8::try_from(to.len()).ok()?;
        let mut encoded = Self { bytes: [0; CHANGE_MAX], len: 0 };
        for part in [head.as_bytes(), name, to] {
            let end = encoded.len + part.len();
            encoded.bytes.get_mut(encoded.len..end)?.copy_from_slice(part);
            encoded.len = end;
        }
        Some(encoded)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> NameChange<'a> {
    /// Header and names; the bytes of [`data`](Self::data) follow. `None`: a name or the content is too long.
    pub fn encode(&self) -> Option<EncodedChange> {
        let mut head = NameHead::new_zeroed();
        let (mut first, mut second): (&[u8], &[u8]) = (&[], &[]);
        match self {
            Self::Made { name, file, attributes } => {
                head.set_attributes(attributes);
                (head.verb, head.file, first) = (MADE, *file, name);
            }
            Self::Symlink { name, file, attributes, target } => {
                head.set_attributes(attributes);
                (head.verb, head.file, first) = (SYMLINK, *file, name);
                head.data_len = u32::try_from(target.len()).ok()?;
            }
            Self::Gone { name, file, has_others } => {
                (head.verb, head.file, first) = (GONE, *file, name);
                head.flags |= if *has_others { OTHERS } else { 0 };
            }
            Self::Moved { name, to, file, over, exchanged, across } => {
                (head.verb, head.file, first, second) = (MOVED, *file, name, to);
                head.set_across(across);
                head.flags |= if *exchanged { EXCHANGED } else { 0 };
                if let Some(over) = over {
                    head.other = over.file;
                    head.flags |= if over.has_others { OTHERS } else { 0 };
                }
            }
            Self::Linked { name, to, file, across } => {
                let verb = if *across == Across::No { LINKED } else { LINKED_ACROSS };
                (head.verb, head.file, first, second) = (verb, *file, name, to);
                head.set_across(across);
            }
            Self::Content { name, file, attributes, data } => {
                head.set_attributes(attributes);
                (head.verb, head.file, first) = (CONTENT, *file, name);
                head.data_len = u32::try_from(data.len()).ok()?;
            }
            Self::Holds { file, attributes, data } => {
                head.set_attributes(attributes);
                (head.verb, head.file) = (CONTENT, *file);
                head.data_len = u32::try_from(data.len()).ok()?;
            }
            Self::Settled { file, held } => {
                (head.verb, head.file) = (SETTLED, *file);
                if let Some((by, lsn)) = held {
                    (head.flags, head.slot, head.generation, head.first) = (TO, by.slot, by.generation, *lsn);
                }
            }
            Self::Is { name, file } => {
                (head.verb, first) = (IS, name);
                head.file = file.unwrap_or(head.file);
            }
        }
        EncodedChange::of(head, [first, second])
    }

    /// Reads a record's payload. `None`: it is nothing that this version knows.
    pub fn decode(payload: &'a [u8]) -> Option<Self> {
        let (head, rest) = NameHead::read_from_prefix(payload).ok()?;
        let (name, rest) = rest.split_at_checked(head.name.into())?;
        let (to, data) = rest.split_at_checked(head.to.into())?;
        let (file, is_named) = (head.file.known(), is_name(name));
        let (attributes, across) = (head.attributes(), head.across()?);
        let has_others = head.flags & OTHERS != 0;
        let change = match head.verb {
            MADE if is_named => Self::Made { name, file: file?, attributes },
            GONE if is_named => Self::Gone { name, file: file?, has_others },
            MOVED if is_named && is_name(to) => {
                let over = head.other.known().map(|file| Replaced { file, has_others });
                let exchanged = head.flags & EXCHANGED != 0;
                if exchanged && over.is_none() {
                    return None;
                }
                Self::Moved { name, to, file: file?, over, exchanged, across }
            }
            LINKED | LINKED_ACROSS if is_named && is_name(to) => {
                if (head.verb == LINKED) != (across == Across::No) {
                    return None;
                }
                Self::Linked { name, to, file: file?, across }
            }
            SYMLINK if is_named && !data.is_empty() && data.len() == head.data_len as usize => {
                Self::Symlink { name, file: file?, attributes, target: data }
            }
            CONTENT if is_named && data.len() == head.data_len as usize => {
                Self::Content { name, file: file?, attributes, data }
            }
            CONTENT if name.is_empty() && data.len() == head.data_len as usize => {
                Self::Holds { file: file?, attributes, data }
            }
            SETTLED => {
                let held = (head.flags & TO != 0).then_some((head.elsewhere(), head.first));
                Self::Settled { file: file?, held }
            }
            IS if is_named => Self::Is { name, file },
            _ => return None,
        };
        (change.data().len() == data.len()).then_some(change)
    }
}

/// True for a possible entry of a directory: nothing that leads out of it.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::format::NAMED_HANDLE_MAX;

    fn stored(change: &NameChange<'_>) -> Vec<u8> {
        let encoded = change.encode().expect("it fits");
        [encoded.bytes(), change.data()].concat()
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let [a, b] = [1, 2].map(|i| Handle::new(1, &[i; 12]).expect("short"));
        let attributes = Attributes { mode: 0o640, uid: 7, gid: 8, modified: (-3, 999) };
        let long = [b'n'; NAME_MAX];
        let other = Elsewhere { slot: 3, generation: 7 };
        let over = |has_others| Some(Replaced { file: b, has_others });
        let moved = |name, to, over, exchanged, across| NameChange::Moved {
            name,
            to,
            file: a,
            over,
            exchanged,
            across,
        };
        for change in [
            NameChange::Made { name: b"a", file: a, attributes },
            NameChange::Gone { name: &long, file: a, has_others: false },
            NameChange::Gone { name: &long, file: a, has_others: true },
            moved(&long, &long, over(false), false, Across::No),
            moved(&long, &long, over(true), false, Across::No),
            moved(b"a", b"b", None, false, Across::No),
            moved(b"a", b"b", over(false), true, Across::From { other, first: 0 }),
            moved(b"a", b"b", None, false, Across::To { other, first: 1 << 40 }),
            NameChange::Linked { name: b"a", to: b"b", file: a, across: Across::No },
            NameChange::Linked { name: b"a", to: b"b", file: a, across: Across::From { other, first: 0 } },
            NameChange::Linked { name: b"a", to: b"b", file: a, across: Across::To { other, first: 9 } },
            NameChange::Symlink { name: b"a", file: a, attributes, target: b"../b" },
            NameChange::Content { name: b"a", file: b, attributes, data: b"all of it" },
            NameChange::Content { name: b"a", file: b, attributes, data: b"" },
            NameChange::Holds { file: b, attributes, data: b"all of it" },
            NameChange::Settled { file: a, held: None },
            NameChange::Settled { file: a, held: Some((other, 9)) },
            NameChange::Is { name: b"a", file: Some(b) },
            NameChange::Is { name: b"a", file: None },
        ] {
            assert_eq!(NameChange::decode(&stored(&change)), Some(change));
        }
    }

    #[test]
    fn what_leads_out_of_a_directory_is_no_name() {
        let file = Handle::new(1, &[1; 8]).expect("short");
        for name in [&b""[..], b".", b"..", b"a/b", b"/etc/passwd", b"a\0b"] {
            assert_eq!(
                NameChange::decode(&stored(&NameChange::Gone { name, file, has_others: false })),
                None
            );
            let linked = NameChange::Linked { name: b"a", to: name, file, across: Across::No };
            assert_eq!(NameChange::decode(&stored(&linked)), None);
        }
    }

    #[test]
    fn what_is_cut_or_unknown_says_nothing() {
        let file = Handle::new(1, &[1; 8]).expect("short");
        let change =
            NameChange::Content { name: b"name", file, attributes: Attributes::default(), data: b"data" };
        let whole = stored(&change);
        assert!((0..whole.len()).all(|len| NameChange::decode(&whole[..len]).is_none()));
        let mut unknown = whole.clone();
        unknown[0] = 10;
        assert_eq!(NameChange::decode(&unknown), None);
        assert_eq!(NameChange::decode(&[whole, vec![0]].concat()), None);
        assert!(Handle::new(1, &[0; NAMED_HANDLE_MAX + 1]).is_none());
        assert!(NameChange::Gone { name: &[b'n'; NAME_MAX + 1], file, has_others: false }.encode().is_none());
    }
}
