//! The plan for names: a decision table, for directories between which files moved together.
//!
//! A file that a name leads to in the end:
//!
//! | row | the disk has it at one of its names, in whichever directory | the log can make it | decision |
//! |---|---|---|---|
//! | N1 | yes | – | it stays the same file; the content in the log is written |
//! | N2 | no | yes | it never reached the disk: it is made again |
//! | N3 | no | no, or it is in the directory under a name that the log does not know | somebody else removed or moved it: refused |
//!
//! A file that no name leads to in the end is not made, whatever the log holds of it (N4). If the disk has it at one of these
//! names and at another that the log does not know, the content in the log is written first (N11): its removal there may be what
//! the disk lacks.
//!
//! A name:
//!
//! | row | in the end | the disk has there | decision |
//! |---|---|---|---|
//! | N5 | that file | that file | nothing |
//! | N6 | a file | nothing, or a file that it led to before | it leads to the file |
//! | N7 | a file | a file that it never led to | somebody else made it: refused |
//! | N8 | nothing | a file that it led to before | it is removed, but for a directory with something in it: the program removed an empty one |
//! | N9 | nothing | nothing, or a file that it never led to | nothing: that file does not belong to the log |
//! | N10 | what a move left there, from or to a directory that was synced since | anything | nothing: the disk has the move, or nobody made it |

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use crate::format::{Attributes, Handle};
use crate::recover::target::{At, Here, Look, Unwritable};

use super::history::{History, Name};

/// The steps in order: files are made, kept and filled, then names are put, then names are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
}

/// One step. A file that is made or kept stays at a place of its own, in one of the directories, until everything is
/// done. A directory has only one name: it is moved there, and from there to its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A file is made again; with a target, a symbolic link.
    Make { file: Handle, place: u32, attributes: Attributes, target: Option<Vec<u8>> },
    /// The file is kept, which is at this name now; the name may lead elsewhere soon.
    Keep { file: Handle, place: u32, at: At },
    /// The file gets the content of the record. It is at a name, or was made or kept before.
    Fill { file: Handle, place: u32, at: Option<At>, lsn: u64 },
    /// A name leads to the file, which was made or kept before.
    Put { file: Handle, place: u32, to: At },
    /// A name is removed.
    Remove { at: At },
}

impl Step {
    /// True if it changes what a name leads to, when every file has been made or kept.
    pub(super) fn is_of_names(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Remove { .. })
    }

    /// True if the step may succeed after others: a directory goes into one that is still below it, or a file into one that is
    /// still to be made.
    pub(super) fn waits(&self, error: &io::Error) -> bool {
        self.stays(error).is_some()
            || error.kind() == io::ErrorKind::NotFound && error.raw_os_error().is_none()
    }

    /// The directory that stays where it is, if the step failed for that and would after all others: the kernel moves none below
    /// itself. It refused to when the program asked for it, and the power failed before that record was taken back.
    pub(super) fn stays(&self, error: &io::Error) -> Option<Handle> {
        match self {
            Self::Keep { file, .. } if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                Some(*file)
            }
            _ => None,
        }
    }

    /// True if the step puts one of these at a name.
    pub(super) fn puts(&self, files: &BTreeSet<Handle>) -> bool {
        matches!(self, Self::Put { file, .. } if files.contains(file))
    }

    /// The directory in which the step takes place.
    pub(super) fn place(&self) -> u32 {
        match self {
            Self::Make { place, .. } | Self::Keep { place, .. } | Self::Fill { place, .. } => *place,
            Self::Put { to: at, .. } | Self::Remove { at } => at.directory,
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// N3.
    Absent(At),
    /// N3: it has the second name, in the same directory.
    Moved(At, Vec<u8>),
    /// N7.
    Strange(At),
    /// The file that would be made again belonged to another user than the directory does.
    Owner(At, u32, u32),
    /// What is there could not be found out.
    Unseen(At, String),
}

impl Conflict {
    /// The name at issue.
    pub(super) fn at(&self) -> &At {
        let (Self::Absent(at)
        | Self::Moved(at, _)
        | Self::Strange(at)
        | Self::Owner(at, ..)
        | Self::Unseen(at, _)) = self;
        at
    }
}

impl From<Conflict> for Unwritable {
    fn from(conflict: Conflict) -> Self {
        let why = conflict.to_string();
        if matches!(conflict, Conflict::Unseen(..)) { Self::Unseen(why) } else { Self::Lost(why) }
    }
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.at().name.escape_ascii())?;
        match self {
            Self::Absent(_) => write!(f, "is no longer there (moved or deleted without Seawall)"),
            Self::Moved(_, to) => write!(f, "was moved to {} without Seawall", to.escape_ascii()),
            Self::Strange(_) => write!(f, "is not the file that the log expects there"),
            Self::Owner(_, user, owner) => {
                write!(f, "belongs to user {user}, but its directory was registered by user {owner}")
            }
            Self::Unseen(_, why) => f.write_str(why),
        }
    }
}

impl Plan {
    /// Decides.
    pub(super) fn of(history: &History, look: &impl Look) -> Result<Self, Conflict> {
        let facts = Facts::of(history, look)?;
        let Names { put, removed, moves } = facts.names()?;
        let mut steps = facts.files(&moves)?;
        steps.extend(put.into_iter().chain(removed));
        Ok(Self { steps })
    }
}

/// What the log says, and what the disk has.
struct Facts<'a, L> {
    history: &'a History,
    look: &'a L,
    /// The file that each name leads to on the disk.
    there: BTreeMap<&'a At, Option<Handle>>,
    /// Names of files that have others there.
    shared: BTreeSet<&'a At>,
    /// The files that names lead to in the end, each with one of these names: the same in every run.
    wanted: BTreeMap<Handle, &'a At>,
}

/// The decisions on names.
#[derive(Default)]
struct Names {
    put: Vec<Step>,
    removed: Vec<Step>,
    /// The files that are put at another name.
    moves: BTreeSet<Handle>,
}

impl<'a, L: Look> Facts<'a, L> {
    fn of(history: &'a History, look: &'a L) -> Result<Self, Conflict> {
        let mut facts =
            Self { history, look, there: BTreeMap::new(), shared: BTreeSet::new(), wanted: BTreeMap::new() };
        for at in history.names.keys() {
            let here = facts.here(at)?;
            facts.shared.extend(here.as_ref().filter(|here| here.has_others).map(|_| at));
            facts.there.insert(at, here.map(|here| history.identity(at, &here)));
        }
        facts.wanted = history.names.iter().filter_map(|(at, is)| Some((facts.now(at, is)?, at))).collect();
        Ok(facts)
    }

    fn here(&self, at: &At) -> Result<Option<Here>, Conflict> {
        self.look.look(at).map_err(|why| Conflict::Unseen(at.clone(), why))
    }

    /// The file at this name on the disk.
    fn found(&self, at: &At) -> Result<Option<Handle>, Conflict> {
        Ok(self.here(at)?.map(|here| self.history.identity(at, &here)))
    }

    /// The file that the name leads to in the end (N10).
    fn now(&self, at: &At, is: &Name) -> Option<Handle> {
        if is.as_is { self.there[at] } else { is.now }
    }

    /// N5 to N10.
    fn names(&self) -> Result<Names, Conflict> {
        let mut names = Names::default();
        for (at, is) in &self.history.names {
            let here = self.there[at];
            let is_known = here.is_none_or(|file| is.known.contains(&file));
            match self.now(at, is) {
                Some(file) if here == Some(file) => {}
                Some(_) if !is_known => return Err(Conflict::Strange(at.clone())),
                Some(file) => {
                    names.moves.insert(file);
                    let place = self.wanted[&file].directory;
                    names.put.push(Step::Put { file, place, to: at.clone() });
                }
                None if here.is_some() && is_known && !self.look.is_full(at) => {
                    names.removed.push(Step::Remove { at: at.clone() });
                }
                None => {}
            }
        }
        Ok(names)
    }

    /// N1 to N3. `moves` are the files that are put at another name afterwards.
    fn files(&self, moves: &BTreeSet<Handle>) -> Result<Vec<Step>, Conflict> {
        let (look, mut steps) = (self.look, Vec::new());
        let mut all: Vec<(Handle, &At)> = self.wanted.iter().map(|(file, at)| (*file, *at)).collect();
        // So a directory that comes to be below another one is there before that one would be moved below it.
        all.sort_by_key(|(_, at)| self.history.names[at].since);
        for (file, wanted) in all {
            let unseen = |why| Conflict::Unseen(wanted.clone(), why);
            let known = self.history.files.get(&file);
            let (at, place) = (self.place_of(file).cloned(), wanted.directory);
            match (&at, known.and_then(|known| known.made)) {
                (Some(at), _) if moves.contains(&file) => {
                    steps.push(Step::Keep { file, place, at: at.clone() });
                }
                (Some(_), _) => {}
                (None, _) if look.is_kept(place, &file).map_err(unseen)? => {}
                (None, None) => return Err(Conflict::Absent(wanted.clone())),
                (None, Some(made)) if made.uid != look.owner(wanted.directory) => {
                    return Err(Conflict::Owner(wanted.clone(), made.uid, look.owner(wanted.directory)));
                }
                (None, Some(attributes)) => match look.name_of(wanted.directory, &file).map_err(unseen)? {
                    Some(to) => return Err(Conflict::Moved(wanted.clone(), to)),
                    None => {
                        let target = known.and_then(|known| known.target.clone());
                        steps.push(Step::Make { file, place, attributes, target });
                    }
                },
            }
            let content = known.and_then(|known| known.content());
            steps.extend(content.map(|lsn| Step::Fill { file, place, at, lsn }));
        }
        steps.extend(self.shared.iter().filter_map(|at| self.filled(at)));
        Ok(steps)
    }

    /// N11.
    fn filled(&self, at: &At) -> Option<Step> {
        let file = self.there[at].filter(|file| !self.wanted.contains_key(file))?;
        let lsn = self.history.files.get(&file)?.content()?;
        Some(Step::Fill { file, place: at.directory, at: Some(at.clone()), lsn })
    }

    /// A name at which the disk has this file: one that the log's changes are about, or one that the file had before.
    fn place_of(&self, file: Handle) -> Option<&At> {
        let by_name = self.there.iter().find(|(_, is)| **is == Some(file)).map(|(at, _)| *at);
        let by_link = || {
            let seen = &self.history.files.get(&file)?.seen;
            seen.iter().find(|at| self.found(at) == Ok(Some(file)))
        };
        by_name.or_else(by_link)
    }
}
