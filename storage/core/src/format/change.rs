//! A change of names in a directory.
//!
//! A name is the last part of a path; a file is known by its [`Handle`], on the file system of its directory. A change
//! that touches two directories is a record in each of them, and each record describes all of it: the power may fail
//! between the two.

use super::handle::{Attributes, Handle};

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
    /// A new symbolic link got this name.
    Symlink {
        /// In its directory.
        name: &'a [u8],
        /// The link.
        file: Handle,
        /// The attributes that it was made with.
        attributes: Attributes,
        /// What it says.
        target: &'a [u8],
    },
    /// The name no longer leads to this file.
    Gone {
        /// In its directory.
        name: &'a [u8],
        /// The file.
        file: Handle,
        /// It has other names, some of them perhaps in directories of whose records nothing is left.
        has_others: bool,
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
        over: Option<Replaced>,
        /// The replaced file has the former name now (RENAME_EXCHANGE); otherwise no file has it.
        exchanged: bool,
        /// Where both names are.
        across: Across,
    },
    /// A file got one more name.
    Linked {
        /// A name that it had before.
        name: &'a [u8],
        /// The new one.
        to: &'a [u8],
        /// The file.
        file: Handle,
        /// Where both names are.
        across: Across,
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

/// A file whose name leads to another one from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The file.
    pub file: Handle,
    /// As in [`NameChange::Gone`].
    pub has_others: bool,
}

/// A directory other than the record's own, in the file table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// Its slot.
    pub slot: u32,
    /// Generation of that slot.
    pub generation: u32,
}

/// The directories of a rename or a link.
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

impl<'a> NameChange<'a> {
    /// The file that it is about. `None`: nothing has the name.
    pub fn file(&self) -> Option<Handle> {
        match *self {
            Self::Made { file, .. }
            | Self::Symlink { file, .. }
            | Self::Gone { file, .. }
            | Self::Moved { file, .. }
            | Self::Linked { file, .. }
            | Self::Content { file, .. }
            | Self::Holds { file, .. }
            | Self::Settled { file, .. } => Some(file),
            Self::Is { file, .. } => file,
        }
    }

    /// The other directory that this change with this `lsn` is about, and the LSN that its watermark must have passed
    /// for its names not to lack the change.
    pub fn elsewhere(&self, lsn: u64) -> Option<(Elsewhere, u64)> {
        match *self {
            Self::Moved { across, .. } | Self::Linked { across, .. } => match across {
                Across::No => None,
                Across::From { other, first } | Across::To { other, first } => {
                    Some((other, if first == 0 { lsn } else { first }))
                }
            },
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
            Self::Made { .. }
            | Self::Symlink { .. }
            | Self::Linked { .. }
            | Self::Content { .. }
            | Self::Holds { .. } => false,
            // The record that moves the file follows.
            Self::Settled { held: Some(_), .. } => false,
        }
    }

    /// The content of the file or the target of the symbolic link, if the change has it.
    pub fn data(&self) -> &'a [u8] {
        match self {
            Self::Content { data, .. } | Self::Holds { data, .. } | Self::Symlink { target: data, .. } => {
                data
            }
            _ => &[],
        }
    }
}
