//! What was promised about names and small files, and whether a power cut left it so.
//!
//! Whoever carries out calls reports to it: what a call is about to do, each change that the kernel made, that the call
//! returned, and which syncs were acknowledged. It knows nothing of the log.
//!
//! | promise | how it is judged |
//! |---|---|
//! | an acknowledged sync's state is there | each directory is in a state at or behind the one of its last acknowledged sync |
//! | nothing is made up | that state is one that the directory had, but for what calls did that had not returned, or the next one of such a call; of a new directory that enters the log it may be a part |
//! | a move happens as a whole | both directories show it, or neither does |
//! | what was synced can be reached | the state in which a directory was made is covered by the syncs in it |
//! | no file has another's content | each byte is one that the file had at that place since its last acknowledged sync |
//! | no file is doubled or a mixture | all names of a file lead to one inode, and an inode is one file |
//! | a file that is made again is the same | its mode, its bytes as above, what a symbolic link says |
//!
//! Not verified: owner, group and times; that a record was needed at all, and that a sync waits for nothing; a call of a
//! process that died is taken to be under way until another one has been in its directory; states that differ only in
//! files which never had a name; a directory that nothing leads to any more; that three directories fit together, if each
//! two of them do.

mod content;
mod judge;
mod past;

use std::collections::BTreeMap;

use crate::tree::{Inode, Lead, Name, Names, Tree};

pub use content::Written;
pub use past::Past;

/// Files and directories as they were promised.
pub struct Ledger {
    /// For each directory.
    folders: Vec<Past>,
    /// For each file, by its number in the simulator.
    files: BTreeMap<usize, Written>,
    /// Calls under way, by thread.
    begun: BTreeMap<usize, Begun>,
    /// Calls of the dead.
    left: Vec<Begun>,
    /// Calls that failed with the log's device, which may have their records all the same.
    failed: Vec<Begun>,
    /// Changes of several directories.
    across: Vec<(u64, Vec<usize>)>,
    /// In which directory each other one was made, by which change.
    origins: BTreeMap<usize, (usize, u64)>,
    /// Counts changes.
    now: u64,
    /// Counts calls and deaths.
    clock: u64,
}

/// A call that changes names.
struct Begun {
    /// What it does if it does anything.
    leads: Act,
    /// The last change that it made; 0 if it made none yet.
    change: u64,
    /// What that was.
    turned: Vec<Turned>,
    /// When it began, or when its process died.
    since: u64,
}

/// What a change made of a name.
struct Turned {
    folder: usize,
    name: Name,
    from: Option<usize>,
    to: Option<usize>,
}

/// A call whose change may be in the log before the kernel makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// None of these.
    Other(Vec<usize>),
    /// A name goes.
    Remove(usize, Vec<u8>),
    /// A file gets another name, in the same directory or another one.
    Move((usize, Vec<u8>), (usize, Vec<u8>)),
    /// Two files get each other's name.
    Exchange(usize, Vec<u8>, Vec<u8>),
}

/// A sync that has begun: what it has to cover.
pub struct Due {
    /// For some directories the last change that it must cover.
    folders: Vec<(usize, u64)>,
    /// The file, and which of its versions it must cover.
    file: Option<(usize, u64)>,
}

impl Act {
    /// The directories that it changes.
    pub fn folders(&self) -> Vec<usize> {
        match self {
            Self::Other(folders) => folders.clone(),
            Self::Remove(folder, _) | Self::Exchange(folder, ..) => vec![*folder],
            Self::Move((from, _), (to, _)) if from == to => vec![*from],
            Self::Move((from, _), (to, _)) => vec![*from, *to],
        }
    }
}

impl Ledger {
    /// Of empty directories.
    pub fn of(folders: usize) -> Self {
        Self {
            folders: (0..folders).map(|_| Past::default()).collect(),
            files: BTreeMap::new(),
            begun: BTreeMap::new(),
            left: Vec::new(),
            failed: Vec::new(),
            across: Vec::new(),
            origins: BTreeMap::new(),
            now: 0,
            clock: 0,
        }
    }

    /// A thread begins a call.
    pub fn begin(&mut self, thread: usize, act: Act) {
        self.clock += 1;
        self.begun.insert(thread, Begun { leads: act, change: 0, turned: Vec::new(), since: self.clock });
    }

    /// Its call returns: what had been begun in the same directories by processes that were dead before this call was
    /// finished or undone.
    pub fn end(&mut self, thread: usize) {
        let Some(begun) = self.begun.remove(&thread) else { return };
        let folders = begun.leads.folders();
        folders.iter().for_each(|folder| self.folders[*folder].returned(begun.change));
        let is_over = |left: &Begun| left.leads.folders().iter().any(|folder| folders.contains(folder));
        self.left.retain(|left| left.since > begun.since || !is_over(left));
    }

    /// A thread's call fails because the log's device has.
    pub fn failed(&mut self, thread: usize) {
        self.failed.extend(self.begun.remove(&thread));
    }

    /// A thread's process died.
    pub fn died(&mut self, thread: usize) {
        self.clock += 1;
        let since = self.clock;
        self.left.extend(self.begun.remove(&thread).map(|begun| Begun { since, ..begun }));
    }

    /// Everybody died.
    pub fn all_died(&mut self) {
        self.left.extend(std::mem::take(&mut self.begun).into_values());
    }

    /// A file was made, or a symbolic link, or a directory: the next change gives it its name, in `above`.
    pub fn made(&mut self, file: usize, inode: &Inode, above: usize) {
        self.files.insert(file, Written::at(inode));
        if let Some(folder) = inode.folder {
            assert_eq!(folder, self.folders.len(), "directories are numbered as they are made");
            self.folders.push(Past::at(self.now, Names::new()));
            self.origins.insert(folder, (above, self.now + 1));
        }
    }

    /// A new directory begins to enter the log, or has: in between a power cut may leave any of its names.
    pub fn enters(&mut self, folder: usize, is_entering: bool) {
        self.folders[folder].is_entering = is_entering;
    }

    /// The kernel made a change.
    pub fn changed(&mut self, thread: usize, leads: &[Lead]) {
        self.now += 1;
        let turned = |(folder, name, to): &Lead| {
            let from = self.folders[*folder].now().names.get(name).copied();
            Turned { folder: *folder, name: name.clone(), from, to: *to }
        };
        let turned = leads.iter().map(turned).collect();
        let mut folders: Vec<usize> = leads.iter().map(|(folder, ..)| *folder).collect();
        folders.dedup();
        for &folder in &folders {
            self.folders[folder].change(self.now, leads.iter().filter(|(of, _, _)| *of == folder));
        }
        if folders.len() > 1 {
            self.across.push((self.now, folders));
        }
        if let Some(begun) = self.begun.get_mut(&thread) {
            (begun.change, begun.turned) = (self.now, turned);
        }
    }

    /// A file has this content from now on.
    pub fn wrote(&mut self, file: usize, content: &[u8]) {
        self.files.get_mut(&file).into_iter().for_each(|written| written.has(content));
    }

    /// A sync of a directory begins.
    pub fn syncs_folder(&self, folder: usize) -> Due {
        let itself = (folder, self.folders[folder].last_returned());
        Due { folders: self.above(folder).chain([itself]).collect(), file: None }
    }

    /// In which directories above this one it was made, and those, by changes whose calls have returned.
    fn above(&self, folder: usize) -> impl Iterator<Item = (usize, u64)> {
        let origin = |folder: usize| self.origins.get(&folder).copied();
        let all = std::iter::successors(origin(folder), move |(above, _)| origin(*above));
        all.filter(|(above, change)| *change <= self.folders[*above].last_returned())
    }

    /// A sync of a file begins: it covers its bytes, and the names that it has.
    pub fn syncs_file(&self, file: usize) -> Due {
        let all = self.folders.iter().enumerate();
        let named: Vec<_> = all.filter_map(|(folder, past)| Some((folder, past.last_named(file)?))).collect();
        let above = named.iter().flat_map(|(folder, _)| self.above(*folder)).collect::<Vec<_>>();
        Due {
            folders: [named, above].concat(),
            file: self.files.get(&file).map(|written| (file, written.newest())),
        }
    }

    /// A sync was acknowledged.
    pub fn acknowledge(&mut self, due: &Due) {
        due.folders.iter().for_each(|(folder, change)| self.folders[*folder].is_synced(*change));
        if let Some((file, version)) = due.file {
            self.files.get_mut(&file).into_iter().for_each(|written| written.is_synced(version));
        }
    }

    /// A recovery is over: what it left is what there is, all of it durable.
    pub fn recovered(&mut self, tree: &Tree) {
        self.begun.clear();
        self.left.clear();
        self.failed.clear();
        self.files.clear();
        self.across.clear();
        self.origins.clear();
        self.folders = (0..tree.folders()).map(|of| Past::at(self.now, tree.names(of).clone())).collect();
        for folder in 0..tree.folders() {
            for file in tree.names(folder).values() {
                let Some(inode) = tree.inode(*file) else { continue };
                let mut written = Written::at(inode);
                written.has(inode.content());
                written.is_synced(written.newest());
                self.files.insert(*file, written);
            }
        }
    }
}
