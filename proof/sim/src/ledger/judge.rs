//! The verdict on a tree that a recovery left.

use std::collections::BTreeMap;

use super::{Act, Begun, Ledger, Turned};
use crate::tree::{Names, Tree};

/// A state that a directory may be in.
struct Candidate {
    /// The change since which it was.
    since: u64,
    /// Changes of calls that had not returned, and that it lacks.
    lacks: Vec<u64>,
    /// The call under way that led from there to it.
    next: Option<usize>,
}

impl Candidate {
    /// True if it shows a change of its directory.
    fn shows(&self, change: u64) -> bool {
        change <= self.since && !self.lacks.contains(&change)
    }
}

impl Ledger {
    /// Is the tree one that a power cut may leave, after a recovery?
    ///
    /// # Errors
    /// Which promise is broken.
    pub fn check(&self, tree: &Tree) -> Result<(), String> {
        let (mut inodes, mut candidates) = (BTreeMap::new(), BTreeMap::new());
        let mut due: Vec<(usize, usize)> = tree.tops().map(|folder| (folder, folder)).collect();
        while let Some((there, folder)) = due.pop() {
            let mut is = Names::new();
            for (name, inode) in tree.names(there) {
                let file = self.file_of(tree, *inode);
                let file = file.map_err(|why| format!("{}: {why}", text(folder, name)))?;
                if *inodes.entry(file).or_insert(*inode) != *inode {
                    return Err(format!("{}: file {file} is there twice", text(folder, name)));
                }
                let both = tree.inode(*inode).and_then(|is| is.folder).zip(self.folder_of(file));
                due.extend(both);
                is.insert(name.clone(), file);
            }
            if candidates.insert(folder, self.candidates(folder, &is)?).is_some() {
                return Err(format!("directory {folder} is there twice"));
            }
        }
        self.joint(&candidates)?;
        inodes.iter().try_for_each(|(file, inode)| self.check_file(tree, *file, *inode))
    }

    /// The directory that a file is.
    fn folder_of(&self, file: usize) -> Option<usize> {
        self.files.get(&file)?.folder
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
        if written.folder.is_some() != found.folder.is_some() {
            return Err(format!("file {file}: a directory is a file now, or a file a directory"));
        }
        if written.target != found.target {
            return Err(format!("file {file}: it says {:?}, and said {:?}", found.target, written.target));
        }
        written.check(found.content()).map_err(|why| format!("file {file}: {why}"))
    }

    /// Where in its past a directory is.
    fn candidates(&self, folder: usize, is: &Names) -> Result<Vec<Candidate>, String> {
        let past = &self.folders[folder];
        let had = past.states().iter().map(|state| (state.names.clone(), state.since, None));
        let next = self.open().enumerate().filter(|(_, begun)| begun.change == 0);
        let next = next.filter_map(|(number, begun)| {
            Some((self.led_to(folder, begun)?, past.now().since, Some(number)))
        });
        let mut candidates = Vec::new();
        for (names, since, next) in had.chain(next) {
            let lacking = self.lacking(folder, names, since);
            let found = lacking
                .into_iter()
                .filter(|(names, _)| names == is || past.is_entering && is_part(is, names));
            candidates.extend(found.map(|(_, lacks)| Candidate { since, lacks, next }));
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

    /// What a state comes to without the changes of some calls that have not returned: nobody has to know of these, whatever
    /// came later. Each with the changes that it lacks.
    fn lacking(&self, folder: usize, names: Names, since: u64) -> Vec<(Names, Vec<u64>)> {
        let mut calls: Vec<&Begun> =
            self.open().filter(|begun| (1..=since).contains(&begun.change)).collect();
        // What was changed last is undone first.
        calls.sort_by_key(|begun| std::cmp::Reverse(begun.change));
        let mut all = vec![(names, Vec::new())];
        for begun in calls {
            for (mut names, mut lacks) in all.clone() {
                let here = begun.turned.iter().filter(|turned| turned.folder == folder);
                let is_as_left = |turned: &Turned| names.get(&turned.name).copied() == turned.to;
                if here.clone().next().is_none() || !here.clone().all(is_as_left) {
                    continue;
                }
                for turned in here {
                    match turned.from {
                        Some(file) => names.insert(turned.name.clone(), file),
                        None => names.remove(&turned.name),
                    };
                }
                lacks.push(begun.change);
                all.push((names, lacks));
            }
        }
        all
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
            Act::Remove(of, name) if *of == folder => {
                if !self.is_empty(names.remove(name)?) {
                    return None;
                }
            }
            Act::Exchange(of, name, other) if *of == folder => {
                let (file, over) = (names.remove(name)?, names.remove(other)?);
                names.insert(name.clone(), over);
                names.insert(other.clone(), file);
            }
            Act::Move((from, name), (to, other)) if *from == folder || *to == folder => {
                let file = *now(*from).get(name)?;
                // Two names of the same file stay.
                if now(*to).get(other).is_some_and(|over| *over == file || !self.may_replace(file, *over)) {
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

    /// True for a file, and for a directory with nothing in it.
    fn is_empty(&self, file: usize) -> bool {
        self.folder_of(file).is_none_or(|folder| self.folders[folder].now().names.is_empty())
    }

    /// True if the kernel renames the one over the other.
    fn may_replace(&self, file: usize, over: usize) -> bool {
        self.folder_of(file).is_some() == self.folder_of(over).is_some() && self.is_empty(over)
    }

    /// A move from one directory to another happened in both of them, or in neither.
    fn joint(&self, candidates: &BTreeMap<usize, Vec<Candidate>>) -> Result<(), String> {
        for (folder, ones) in candidates {
            for (other, others) in candidates.range(folder + 1..) {
                let both = [*folder, *other];
                if !ones.iter().any(|one| others.iter().any(|other| self.fit(both, one, other))) {
                    return Err(format!(
                        "a file has moved in directory {folder} or {other}, and not in both"
                    ));
                }
            }
        }
        Ok(())
    }

    fn fit(&self, both: [usize; 2], one: &Candidate, other: &Candidate) -> bool {
        let is_of_both = |folders: &[usize]| both.iter().all(|folder| folders.contains(folder));
        let mut across = self.across.iter().filter(|(_, folders)| is_of_both(folders));
        let is_whole = across.all(|(change, _)| one.shows(*change) == other.shows(*change));
        let is_across = |call: usize| self.open().nth(call).is_some_and(|b| is_of_both(&b.leads.folders()));
        let is_half = [one.next, other.next].iter().flatten().any(|call| is_across(*call));
        is_whole && !(is_half && one.next != other.next)
    }
}

/// True if all of it is in the other one.
fn is_part(of: &Names, names: &Names) -> bool {
    of.iter().all(|(name, file)| names.get(name) == Some(file))
}

fn text(folder: usize, name: &[u8]) -> String {
    format!("{folder}/{}", name.escape_ascii())
}
