//! Changes of names in a directory, as records: the payload of [`RecordKind::Names`](super::RecordKind).
//!
//! ```text
//! header, 112 bytes │ name │ where it moves to │ content of the file
//! ```
//!
//! Each record is one change. A name is the last part of a path; a file is known by its [`Handle`], on the file system
//! of its directory. A change that touches two directories is a record in each of them, and each record describes all
//! of it: the power may fail between the two.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use seawall_media::assert_layout;

/// Longest handle that a record can hold: ext4's have 8 bytes, XFS's 12.
pub const NAMED_HANDLE_MAX: usize = 24;
/// Longest name (NAME_MAX).
pub const NAME_MAX: usize = 255;
/// Bytes of a change without its file's content, at most.
pub const CHANGE_MAX: usize = size_of::<NameHead>() + 2 * NAME_MAX;

/// The identity of a file on its file system: inode number and generation, as the kernel packs them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Handle {
    kind: i32,
    len: u32,
    bytes: [u8; NAMED_HANDLE_MAX],
}

impl Handle {
    /// A handle of this kind. `None`: it is too long.
    pub fn new(kind: i32, handle: &[u8]) -> Option<Self> {
        let mut made = Self { kind, len: handle.len() as u32, bytes: [0; NAMED_HANDLE_MAX] };
        made.bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(made)
    }

    /// Its type, as name_to_handle_at(2) gives it.
    pub fn kind(&self) -> i32 {
        self.kind
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(NAMED_HANDLE_MAX)]
    }

    fn is_none(&self) -> bool {
        self.len == 0
    }
}

/// The attributes of a file that is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// st_mode's lower twelve bits, and [`DIRECTORY`](Self::DIRECTORY).
    pub mode: u32,
    /// st_uid.
    pub uid: u32,
    /// st_gid.
    pub gid: u32,
    /// st_mtime and its nanoseconds.
    pub modified: (i64, u32),
}

impl Attributes {
    /// The bit of st_mode that marks a directory.
    pub const DIRECTORY: u32 = 0o40000;

    /// True for a directory's attributes.
    pub fn is_directory(&self) -> bool {
        self.mode & Self::DIRECTORY != 0
    }
}

/// A change of names in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChange<'a> {
    /// A new file got this name.
    Made {
        /// In its directory.
        name: &'a [u8],
        /// The file.
        file: Handle,
        /// The attributes that it was made with.
        attributes: Attributes,
    },
    /// The name no longer leads to this file.
    Gone {
        /// In its directory.
        name: &'a [u8],
        /// The file.
        file: Handle,
    },
    /// A file got another name.
    Moved {
        /// Its former name.
        name: &'a [u8],
        /// Its name from now on.
        to: &'a [u8],
        /// The file.
        file: Handle,
        /// The file that had that name before.
        over: Option<Handle>,
        /// The replaced file has the former name now (RENAME_EXCHANGE); otherwise no file has it.
        exchanged: bool,
        /// Where both names are.
        across: Across,
    },
    /// A file got one more name in the same directory.
    Linked {
        /// A name that it had before.
        name: &'a [u8],
        /// The new one.
        to: &'a [u8],
        /// The file.
        file: Handle,
    },
    /// A file was synced: this is all of it.
    Content {
        /// In its directory.
        name: &'a [u8],
        /// The file.
        file: Handle,
        /// Its attributes at that time.
        attributes: Attributes,
        /// All its bytes.
        data: &'a [u8],
    },
    /// The whole content of a file that is about to get a name here, without a name.
    Holds {
        /// The file.
        file: Handle,
        /// Its attributes at that time.
        attributes: Attributes,
        /// All its bytes.
        data: &'a [u8],
    },
    /// This directory's records of the file's whole content no longer count: the disk has the file, with at least that
    /// content, or another directory's records have it.
    Settled {
        /// The file.
        file: Handle,
        /// The directory whose records have it, and the LSN of its record.
        held: Option<(Elsewhere, u64)>,
    },
    /// What a name leads to, whatever earlier records say: a change that was logged has failed.
    Is {
        /// In its directory.
        name: &'a [u8],
        /// The file, or nothing.
        file: Option<Handle>,
    },
}

/// A directory other than the record's own, in the file table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// Its slot.
    pub slot: u32,
    /// Generation of that slot.
    pub generation: u32,
}

/// The directories of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Both names are in the record's directory.
    No,
    /// The former name is in another directory.
    From {
        /// That directory.
        other: Elsewhere,
        /// The LSN of the change's other record, if that came first; otherwise 0. The other directory's names lack this
        /// change if its watermark is below that record.
        first: u64,
    },
    /// The new name is in another directory.
    To {
        /// That directory.
        other: Elsewhere,
        /// As above.
        first: u64,
    },
}

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

/// Two files have each other's name.
const EXCHANGED: u8 = 1;
/// The former name is in another directory.
const FROM: u8 = 2;
/// The new name is in another directory.
const TO: u8 = 4;

/// A change as it is stored, except for the content.
pub struct EncodedChange {
    bytes: [u8; CHANGE_MAX],
    len: usize,
}

impl EncodedChange {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> NameChange<'a> {
    /// The other directory that this change with this `lsn` is about, and the LSN that its watermark must have passed
    /// for its names not to lack the change.
    pub fn elsewhere(&self, lsn: u64) -> Option<(Elsewhere, u64)> {
        match *self {
            Self::Moved { across: Across::From { other, first } | Across::To { other, first }, .. } => {
                Some((other, if first == 0 { lsn } else { first }))
            }
            Self::Settled { held, .. } => held,
            _ => None,
        }
    }

    /// True if the record has to be durable before the next step: a call that the file system may make durable at once,
    /// or the answer to a sync. The other records are about new names, which nobody was promised yet.
    pub fn is_awaited(&self) -> bool {
        match self {
            Self::Gone { .. } | Self::Moved { .. } | Self::Is { .. } | Self::Settled { held: None, .. } => {
                true
            }
            Self::Made { .. } | Self::Linked { .. } | Self::Content { .. } | Self::Holds { .. } => false,
            // The record that moves the file follows.
            Self::Settled { held: Some(_), .. } => false,
        }
    }

    /// Header and names; the bytes of [`data`](Self::data) follow. `None`: a name or the content is too long.
    pub fn encode(&self) -> Option<EncodedChange> {
        let mut head = NameHead::new_zeroed();
        let (mut first, mut second): (&[u8], &[u8]) = (&[], &[]);
        let mut has = |attributes: &Attributes| {
            (head.mode, head.uid, head.gid) = (attributes.mode, attributes.uid, attributes.gid);
            (head.modified, head.modified_ns) = attributes.modified;
        };
        match self {
            Self::Made { name, file, attributes } => {
                has(attributes);
                (head.verb, head.file, first) = (MADE, *file, name);
            }
            Self::Gone { name, file } => (head.verb, head.file, first) = (GONE, *file, name),
            Self::Moved { name, to, file, over, exchanged, across } => {
                (head.verb, head.file, first, second) = (MOVED, *file, name, to);
                head.other = over.unwrap_or(head.other);
                let (flag, elsewhere, other) = match across {
                    Across::No => (0, Elsewhere::default(), 0),
                    Across::From { other, first } => (FROM, *other, *first),
                    Across::To { other, first } => (TO, *other, *first),
                };
                head.flags = flag | if *exchanged { EXCHANGED } else { 0 };
                (head.slot, head.generation, head.first) = (elsewhere.slot, elsewhere.generation, other);
            }
            Self::Linked { name, to, file } => {
                (head.verb, head.file, first, second) = (LINKED, *file, name, to);
            }
            Self::Content { name, file, attributes, data } => {
                has(attributes);
                (head.verb, head.file, first) = (CONTENT, *file, name);
                head.data_len = u32::try_from(data.len()).ok()?;
            }
            Self::Holds { file, attributes, data } => {
                has(attributes);
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
        head.name = u8::try_from(first.len()).ok()?;
        head.to = u8::try_from(second.len()).ok()?;
        let mut encoded = EncodedChange { bytes: [0; CHANGE_MAX], len: 0 };
        for part in [head.as_bytes(), first, second] {
            let end = encoded.len + part.len();
            encoded.bytes.get_mut(encoded.len..end)?.copy_from_slice(part);
            encoded.len = end;
        }
        Some(encoded)
    }

    /// The bytes that follow.
    pub fn data(&self) -> &'a [u8] {
        match self {
            Self::Content { data, .. } | Self::Holds { data, .. } => data,
            _ => &[],
        }
    }

    /// Reads a record's payload. `None`: it is nothing that this version knows.
    pub fn decode(payload: &'a [u8]) -> Option<Self> {
        let (head, rest) = NameHead::read_from_prefix(payload).ok()?;
        let (name, rest) = rest.split_at_checked(head.name.into())?;
        let (to, data) = rest.split_at_checked(head.to.into())?;
        let attributes = Attributes {
            mode: head.mode,
            uid: head.uid,
            gid: head.gid,
            modified: (head.modified, head.modified_ns),
        };
        let known =
            |handle: Handle| (!handle.is_none() && handle.len as usize <= NAMED_HANDLE_MAX).then_some(handle);
        let (file, is_named) = (known(head.file), is_name(name));
        let other = Elsewhere { slot: head.slot, generation: head.generation };
        let across = match head.flags & (FROM | TO) {
            0 => Across::No,
            FROM => Across::From { other, first: head.first },
            TO => Across::To { other, first: head.first },
            _ => return None,
        };
        let change = match head.verb {
            MADE if is_named => Self::Made { name, file: file?, attributes },
            GONE if is_named => Self::Gone { name, file: file? },
            MOVED if is_named && is_name(to) => {
                let (over, exchanged) = (known(head.other), head.flags & EXCHANGED != 0);
                if exchanged && over.is_none() {
                    return None;
                }
                Self::Moved { name, to, file: file?, over, exchanged, across }
            }
            LINKED if is_named && is_name(to) => Self::Linked { name, to, file: file? },
            CONTENT if is_named && data.len() == head.data_len as usize => {
                Self::Content { name, file: file?, attributes, data }
            }
            CONTENT if name.is_empty() && data.len() == head.data_len as usize => {
                Self::Holds { file: file?, attributes, data }
            }
            SETTLED => {
                let held = (head.flags & TO != 0).then_some((other, head.first));
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
            NameChange::Gone { name: &long, file: a },
            moved(&long, &long, Some(b), false, Across::No),
            moved(b"a", b"b", None, false, Across::No),
            moved(b"a", b"b", Some(b), true, Across::From { other, first: 0 }),
            moved(b"a", b"b", None, false, Across::To { other, first: 1 << 40 }),
            NameChange::Linked { name: b"a", to: b"b", file: a },
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
            assert_eq!(NameChange::decode(&stored(&NameChange::Gone { name, file })), None);
            let linked = NameChange::Linked { name: b"a", to: name, file };
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
        unknown[0] = 8;
        assert_eq!(NameChange::decode(&unknown), None);
        assert_eq!(NameChange::decode(&[whole, vec![0]].concat()), None);
        assert!(Handle::new(1, &[0; NAMED_HANDLE_MAX + 1]).is_none());
        assert!(NameChange::Gone { name: &[b'n'; NAME_MAX + 1], file }.encode().is_none());
    }
}
