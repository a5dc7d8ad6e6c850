//! What is to be done in a directory: a decision table.
//!
//! A file that a name leads to in the end:
//!
//! | row | the disk has it at one of its names | the log can make it | decision |
//! |---|---|---|---|
//! | N1 | yes | – | it stays the file it is; what the log has of it is written |
//! | N2 | no | yes | it never reached the disk: it is made again |
//! | N3 | no | no, or it is in the directory by a name that the log does not know | somebody else removed or moved it: refused |
//!
//! A file that no name leads to in the end is not made, whatever the log has of it (N4).
//!
//! A name:
//!
//! | row | in the end | the disk has there | decision |
//! |---|---|---|---|
//! | N5 | that file | that file | nothing |
//! | N6 | a file | nothing, or a file that it led to before | it leads to the file |
//! | N7 | a file | a file that it never led to | somebody else made it: refused |
//! | N8 | nothing | a file that it led to before | it is removed |
//! | N9 | nothing | nothing, or a file that it never led to | nothing: that one is not the log's |

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{Attributes, Handle};
use crate::recover::target::Look;

use super::history::History;

/// What is to be done, in order: files are made, kept and filled, then names are put, then names are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
}

/// One step. A file that is made or kept is at a place of its own until all is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A file is made again.
    Make { file: Handle, attributes: Attributes },
    /// It is at this name, which may lead elsewhere soon.
    Keep { file: Handle, name: Vec<u8> },
    /// It gets the content that the record has. It is at a name, or made, or kept.
    Fill { file: Handle, at: Option<Vec<u8>>, lsn: u64 },
    /// A name leads to it, which was made or kept.
    Put { file: Handle, name: Vec<u8> },
    /// A name goes.
    Remove { name: Vec<u8> },
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// N3.
    Absent(Vec<u8>),
    /// N3: it has the second name.
    Moved(Vec<u8>, Vec<u8>),
    /// N7.
    Strange(Vec<u8>),
    /// The file that would be made again was another user's than the directory's.
    Owner(Vec<u8>, u32, u32),
    /// It could not be found out what is there.
    Unseen(Vec<u8>, String),
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Absent(name)
        | Self::Moved(name, _)
        | Self::Strange(name)
        | Self::Owner(name, ..)
        | Self::Unseen(name, _)) = self;
        write!(f, "{} ", name.escape_ascii())?;
        match self {
            Self::Absent(_) => write!(f, "is not there any more (moved, or deleted, without Seawall)"),
            Self::Moved(_, to) => write!(f, "was moved to {} without Seawall", to.escape_ascii()),
            Self::Strange(_) => write!(f, "is another file than the log knows there"),
            Self::Owner(_, user, owner) => {
                write!(f, "belongs to user {user}, its directory was registered by {owner}")
            }
            Self::Unseen(_, why) => f.write_str(why),
        }
    }
}

impl Plan {
    /// Decides, for a directory of this owner.
    pub(super) fn of(history: &History, owner: u32, look: &impl Look) -> Result<Self, Conflict> {
        let mut there = BTreeMap::new();
        for name in history.names.keys() {
            let found = look.look(name).map_err(|why| Conflict::Unseen(name.clone(), why))?;
            there.insert(name.as_slice(), found);
        }
        let (mut plan, mut puts, mut removed) = (Self::default(), Vec::new(), Vec::new());
        let mut moves = BTreeSet::new();
        for (name, is) in &history.names {
            let here = there[name.as_slice()];
            let is_known = here.is_none_or(|file| is.known.contains(&file));
            match is.now {
                Some(file) if here == Some(file) => {}
                Some(_) if !is_known => return Err(Conflict::Strange(name.clone())),
                Some(file) => {
                    moves.insert(file);
                    puts.push(Step::Put { file, name: name.clone() });
                }
                None if here.is_some() && is_known => removed.push(Step::Remove { name: name.clone() }),
                None => {}
            }
        }
        let wanted: BTreeMap<Handle, &Vec<u8>> =
            history.names.iter().filter_map(|(name, is)| Some((is.now?, name))).collect();
        for (file, name) in wanted {
            let known = history.files.get(&file);
            let at = there.iter().find(|(_, is)| **is == Some(file)).map(|(name, _)| name.to_vec());
            match (&at, known.and_then(|known| known.made)) {
                (Some(name), _) if moves.contains(&file) => {
                    plan.steps.push(Step::Keep { file, name: name.clone() });
                }
                (Some(_), _) => {}
                (None, _) if look.is_kept(&file) => {}
                (None, None) => return Err(Conflict::Absent(name.clone())),
                (None, Some(made)) if made.uid != owner => {
                    return Err(Conflict::Owner(name.clone(), made.uid, owner));
                }
                (None, Some(attributes)) => match look.name_of(&file) {
                    Some(to) => return Err(Conflict::Moved(name.clone(), to)),
                    None => plan.steps.push(Step::Make { file, attributes }),
                },
            }
            let content = known.and_then(|known| known.content);
            plan.steps.extend(content.map(|lsn| Step::Fill { file, at, lsn }));
        }
        plan.steps.extend(puts);
        plan.steps.extend(removed);
        Ok(plan)
    }
}
