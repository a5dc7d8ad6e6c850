//! What the log says of one directory.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{Attributes, Handle, NameChange};

/// A directory's live changes, summed up.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub names: BTreeMap<Vec<u8>, Name>,
    pub files: BTreeMap<Handle, File>,
}

/// One name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    /// Every file that it led to, as far as the log goes back.
    pub known: BTreeSet<Handle>,
    /// What it leads to in the end.
    pub now: Option<Handle>,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    /// It was made, and the disk may never have had it: with what.
    pub made: Option<Attributes>,
    /// The newest record that has all of it, unless the disk has had it since.
    pub content: Option<u64>,
}

impl History {
    /// The next change.
    pub(super) fn add(&mut self, lsn: u64, change: &NameChange<'_>) {
        match *change {
            NameChange::Made { name, file, attributes } => {
                self.leads(name, Some(file));
                self.file(file).made = Some(attributes);
            }
            NameChange::Gone { name, file } => {
                self.led(name, file);
                self.leads(name, None);
            }
            NameChange::Moved { name, to, file, over } => {
                self.led(name, file);
                self.leads(name, None);
                over.iter().for_each(|over| self.led(to, *over));
                self.leads(to, Some(file));
            }
            NameChange::Content { name, file, attributes, .. } => {
                self.leads(name, Some(file));
                let known = self.file(file);
                (known.made, known.content) = (Some(attributes), Some(lsn));
            }
            NameChange::Settled { file } => *self.file(file) = File::default(),
            NameChange::Is { name, file } => self.leads(name, file),
        }
    }

    /// The names at which files are whose content the disk may lack.
    pub(super) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().filter_map(|(name, is)| {
            let file = self.files.get(&is.now?)?;
            file.content.map(|_| name.as_slice())
        })
    }

    /// The files that a name leads to in the end.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Handle> {
        self.names.values().filter_map(|is| is.now)
    }

    fn led(&mut self, name: &[u8], file: Handle) {
        self.names.entry(name.to_vec()).or_default().known.insert(file);
    }

    fn leads(&mut self, name: &[u8], file: Option<Handle>) {
        let entry = self.names.entry(name.to_vec()).or_default();
        entry.known.extend(file);
        entry.now = file;
    }

    fn file(&mut self, file: Handle) -> &mut File {
        self.files.entry(file).or_default()
    }
}
