//! The verdict on a tree that a recovery left.

use std::collections::BTreeMap;

use super::{Act, Begun, Ledger};
use crate::tree::{Names, Tree};

/// A state that a directory is in: the change since which it was, and the call under way that led from there to it.
type Candidate = (u64, Option<usize>);

impl Ledger {
    /// Is the tree one that a power cut may leave, after a recovery?
    ///
    /// # Errors
    /// Which promise is broken.
    pub fn check(&self, tree: &Tree) -> Result<(), String> {
        let mut inodes = BTreeMap::new();
        let mut candidates = Vec::new();
        for folder in 0..tree.folders() {
            let mut is = Names::new();
            for (name, inode) in tree.names(folder) {
                let file =
                    self.file_of(tree, *inode).map_err(|why| format!("{}: {why}", text(folder, name)))?;
                if *inodes.entry(file).or_insert(*inode) != *inode {
                    return Err(format!("{}: file {file} is there twice", text(folder, name)));
                }
                is.insert(name.clone(), file);
            }
            candidates.push(self.candidates(folder, &is)?);
        }
        self.joint(&candidates)?;
        inodes.iter().try_for_each(|(file, inode)| self.check_file(tree, *file, *inode))
    }

    /// The file that an inode is, or stands for.
    fn file_of(&self, tree: &Tree, inode: usize) -> Result<usize, String> {
        let found = tree.inode(inode).ok_or("its inode is gone")?;
        let by = |handle| self.files.iter().find(|(_, file)| file.handle == handle).map(|(file, _)| *file);
        let file = by(found.handle()).or_else(|| by(found.stood_for?));
        file.ok_or_else(|| "leads to a file that nobody made".into())
    }

    fn check_file(&self, tree: &Tree, file: usize, inode: usize) -> Result<(), String> {
        let Some((written, found)) = self.files.get(&file).zip(tree.inode(inode)) else { return Ok(()) };
        if written.mode != found.mode {
            return Err(format!("file {file}: its mode is {:o}, and was {:o}", found.mode, written.mode));
        }
        if written.target != found.target {
            return Err(format!("file {file}: it says {:?}, and said {:?}", found.target, written.target));
        }
        written.check(found.content()).map_err(|why| format!("file {file}: {why}"))
    }

    /// Where in its past a directory is.
    fn candidates(&self, folder: usize, is: &Names) -> Result<Vec<Candidate>, String> {
        let past = &self.folders[folder];
        let had = past.states().iter().filter(|state| state.names == *is);
        let mut candidates: Vec<Candidate> = had.map(|state| (state.since, None)).collect();
        for (number, begun) in self.open().enumerate().filter(|(_, begun)| begun.change == 0) {
            if self.led_to(folder, begun).is_some_and(|names| names == *is) {
                candidates.push((past.now().since, Some(number)));
            }
        }
        if candidates.is_empty() {
            let (first, now) = (&past.states()[0], past.now());
            return Err(format!(
                "directory {folder} is {is:?}; when it was last synced it was {:?}, and in the end {:?}",
                first.names, now.names
            ));
        }
        Ok(candidates)
    }

    /// Calls that may be half done.
    fn open(&self) -> impl Iterator<Item = &Begun> {
        self.begun.values().chain(&self.left).chain(&self.failed)
    }

    /// What a call that has changed nothing yet makes of a directory.
    fn led_to(&self, folder: usize, begun: &Begun) -> Option<Names> {
        let now = |folder: usize| &self.folders[folder].now().names;
        let mut names = now(folder).clone();
        match &begun.leads {
            Act::Remove(of, name) if *of == folder => drop(names.remove(name)),
            Act::Exchange(of, name, other) if *of == folder => {
                let (file, over) = (names.remove(name)?, names.remove(other)?);
                names.insert(name.clone(), over);
                names.insert(other.clone(), file);
            }
            Act::Move((from, name), (to, other)) if *from == folder || *to == folder => {
                let file = *now(*from).get(name)?;
                // Two names of the same file stay.
                if now(*to).get(other) == Some(&file) {
                    return None;
                }
                if *from == folder {
                    names.remove(name);
                }
                if *to == folder {
                    names.insert(other.clone(), file);
                }
            }
            _ => return None,
        }
        Some(names)
    }

    /// A move from one directory to another happened in both of them, or in neither.
    fn joint(&self, candidates: &[Vec<Candidate>]) -> Result<(), String> {
        let [one, other] = candidates else { return Ok(()) };
        let is_possible = one.iter().any(|one| other.iter().any(|other| self.fit(*one, *other)));
        if is_possible {
            Ok(())
        } else {
            Err("a file has moved in one directory, and not in the other".into())
        }
    }

    fn fit(&self, one: Candidate, other: Candidate) -> bool {
        let (low, high) = (one.0.min(other.0), one.0.max(other.0));
        // A change of both directories that only one of them shows.
        let is_torn = self.across.iter().any(|change| low < *change && *change <= high);
        let is_across = |call: usize| self.open().nth(call).is_some_and(|b| b.leads.folders().len() > 1);
        let is_half = [one.1, other.1].iter().flatten().any(|call| is_across(*call)) && one.1 != other.1;
        !is_torn && !is_half
    }
}

fn text(folder: usize, name: &[u8]) -> String {
    format!("{folder}/{}", name.escape_ascii())
}
