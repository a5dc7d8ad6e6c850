//! What the log says about names: of one directory, or of several between which files moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{Across, Attributes, Elsewhere, Handle, NameChange, Replaced};
use crate::recover::target::{At, Here};

/// The live changes, summed up.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub names: BTreeMap<At, Name>,
    pub files: BTreeMap<Handle, File>,
    /// Files that lost their last name and have not got another one since.
    gone: BTreeSet<Handle>,
    /// Files that lost it if the disk shows it.
    perhaps_gone: BTreeSet<Handle>,
    /// The LSN of the newest change.
    newest: u64,
}

/// One name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    /// Every file that it led to, as far as the log goes back.
    pub known: BTreeSet<Handle>,
    /// The file that it leads to in the end.
    pub now: Option<Handle>,
    /// The LSN of the record that says so.
    pub since: u64,
    /// It leads to whatever the disk has there: its last change was a move from or to another directory that was synced
    /// since. The disk has that move, or nobody made it.
    pub as_is: bool,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    /// It was made, with these attributes, and the disk may never have had it.
    pub made: Option<Attributes>,
    /// For each directory, the newest record with the whole content, unless that record no longer counts.
    contents: BTreeMap<u32, u64>,
    /// Names that it had when it got another one. The log may know nothing else of these names.
    pub seen: BTreeSet<At>,
    /// It is a symbolic link that says this.
    pub target: Option<Vec<u8>>,
}

/// A file got another name.
struct Move {
    file: Handle,
    /// Its former name, if that is in a directory whose names may lack the move.
    from: Option<At>,
    /// Its new name, if that is.
    into: Option<At>,
    /// The file that had the new name before.
    over: Option<Replaced>,
    /// That one has the former name now.
    exchanged: bool,
    /// The disk shows whether anybody made the move.
    is_on_disk: bool,
}

impl File {
    /// The newest record with the whole content. If two directories have one, it is the same content: it is carried from the one to
    /// the other, and a file that has names in both is not captured again.
    pub(super) fn content(&self) -> Option<u64> {
        self.contents.values().max().copied()
    }

    fn has(&mut self, attributes: Attributes, (directory, lsn): (u32, u64)) {
        self.made = Some(attributes);
        self.contents.insert(directory, lsn);
    }
}

impl History {
    /// Adds the next change in this directory. `is_behind`: whether the names of another directory may lack the change
    /// with this LSN.
    pub(super) fn add(
        &mut self,
        directory: u32,
        lsn: u64,
        change: &NameChange<'_>,
        is_behind: impl Fn(Elsewhere, u64) -> bool,
    ) {
        self.newest = lsn;
        let at = |name: &[u8]| At { directory, name: name.to_vec() };
        // The other directory of the change, if its names may lack it.
        let other = || {
            let elsewhere = change.elsewhere(lsn).filter(|(other, lsn)| is_behind(*other, *lsn));
            elsewhere.map(|(other, _)| other.slot)
        };
        match *change {
            NameChange::Made { name, file, attributes } => {
                self.leads(at(name), Some(file));
                self.file(file).made = Some(attributes);
            }
            NameChange::Symlink { name, file, attributes, target } => {
                self.leads(at(name), Some(file));
                let known = self.file(file);
                (known.made, known.target) = (Some(attributes), Some(target.to_vec()));
            }
            NameChange::Gone { name, file, has_others } => {
                self.led(at(name), file);
                self.leads(at(name), None);
                if !has_others {
                    self.gone.insert(file);
                }
            }
            NameChange::Moved { name, to, file, over, exchanged, across } => {
                // A process that dies between its records and the kernel's call leaves the file where it was. Whoever
                // takes one of the directories over syncs all of the file system first.
                let other = other();
                let is_on_disk = across != Across::No && other.is_none();
                let (from, into) = match across {
                    Across::No => (Some(directory), Some(directory)),
                    Across::From { .. } => (other, Some(directory)),
                    Across::To { .. } => (Some(directory), other),
                };
                let from = from.map(|directory| At { directory, name: name.to_vec() });
                let into = into.map(|directory| At { directory, name: to.to_vec() });
                self.moves(Move { file, from, into, over, exchanged, is_on_disk });
            }
            NameChange::Linked { name, to, file, across } => match (across, other()) {
                (Across::No, _) => {
                    self.leads(at(to), Some(file));
                    self.file(file).seen.insert(at(name));
                }
                (Across::From { .. }, other) => {
                    self.leads(at(to), Some(file));
                    // If that directory was synced since, the disk has the new name too: a sync of it that retires its
                    // record of the link makes the link durable.
                    let before = other.map(|directory| At { directory, name: name.to_vec() });
                    self.file(file).seen.extend(before);
                }
                // The other directory's record says it, or the disk has it.
                (Across::To { .. }, _) => {}
            },
            NameChange::Content { name, file, attributes, .. } => {
                self.leads(at(name), Some(file));
                self.file(file).has(attributes, (directory, lsn));
            }
            NameChange::Holds { file, attributes, .. } => self.file(file).has(attributes, (directory, lsn)),
            NameChange::Settled { file, .. } => {
                let known = self.file(file);
                known.contents.remove(&directory);
                // The disk has it, or other records do.
                known.made = known.made.filter(|_| !known.contents.is_empty());
            }
            NameChange::Is { name, file } => self.leads(at(name), file),
        }
    }

    fn moves(&mut self, Move { file, from, into, over, exchanged, is_on_disk }: Move) {
        if let Some(from) = from {
            self.led(from.clone(), file);
            self.leads_unless(is_on_disk, from, over.filter(|_| exchanged).map(|over| over.file));
        }
        let gone = if is_on_disk { &mut self.perhaps_gone } else { &mut self.gone };
        gone.extend(over.filter(|over| !exchanged && !over.has_others).map(|over| over.file));
        if let Some(into) = into {
            over.iter().for_each(|over| self.led(into.clone(), over.file));
            self.leads_unless(is_on_disk, into, Some(file));
        }
    }

    /// The names of files whose content the disk may lack.
    pub(super) fn contents(&self) -> impl Iterator<Item = &At> {
        let has_content = |file: &Handle| self.files.get(file).is_some_and(|file| file.content().is_some());
        let may_lack = move |is: &Name| is.as_is || is.now.as_ref().is_some_and(has_content);
        self.names.iter().filter(move |(_, is)| may_lack(is)).map(|(name, _)| name)
    }

    /// The file's identity for this log: the file that it stands for, or the file itself if the log has never heard of
    /// that one. A symbolic link that was made again stands for the one that says the same.
    pub(super) fn identity(&self, at: &At, here: &Here) -> Handle {
        let by_mark = here.stands_for.filter(|file| self.knows(file));
        by_mark.or_else(|| self.link_at(at, here)).unwrap_or(here.itself)
    }

    /// The symbolic link that the name leads to in the end, if what is there says the same.
    fn link_at(&self, at: &At, here: &Here) -> Option<Handle> {
        let target = here.target.as_ref().filter(|_| !self.knows(&here.itself))?;
        let now = self.names.get(at)?.now?;
        (self.files.get(&now)?.target.as_ref() == Some(target)).then_some(now)
    }

    /// True for a file that occurs in any change.
    fn knows(&self, file: &Handle) -> bool {
        self.files.contains_key(file) || self.names.values().any(|name| name.known.contains(file))
    }

    /// True for a file that was removed: it lost its last name, and no name leads to it.
    pub(super) fn is_gone(&self, file: &Handle) -> bool {
        self.gone.contains(file) && !self.wanted().any(|wanted| wanted == *file)
    }

    /// The same if the disk shows it: a file that it still has has not been removed.
    pub(super) fn is_perhaps_gone(&self, file: &Handle) -> bool {
        self.perhaps_gone.contains(file) && !self.wanted().any(|wanted| wanted == *file)
    }

    /// The files that names lead to in the end.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Handle> {
        self.names.values().filter_map(|is| is.now)
    }

    fn led(&mut self, at: At, file: Handle) {
        self.names.entry(at).or_default().known.insert(file);
    }

    fn leads(&mut self, at: At, file: Option<Handle>) {
        let entry = self.names.entry(at).or_default();
        entry.known.extend(file);
        (entry.now, entry.since, entry.as_is) = (file, self.newest, false);
        if let Some(file) = file {
            self.gone.remove(&file);
            self.perhaps_gone.remove(&file);
        }
    }

    /// The name leads to that file from now on; or, if the disk decides, to what is there.
    fn leads_unless(&mut self, is_on_disk: bool, at: At, file: Option<Handle>) {
        if !is_on_disk {
            return self.leads(at, file);
        }
        let entry = self.names.entry(at).or_default();
        entry.known.extend(file);
        (entry.now, entry.as_is) = (None, true);
    }

    fn file(&mut self, file: Handle) -> &mut File {
        self.files.entry(file).or_default()
    }
}
