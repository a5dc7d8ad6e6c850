//! What was promised about names and small files, and whether a power cut left it so.
//!
//! Told by whoever carries out calls: what a call is about to do, each change that the kernel made, that the call
//! returned, and which syncs were acknowledged. It knows nothing of the log.
//!
//! | promise | how it is judged |
//! |---|---|
//! | an acknowledged sync's state is there | each directory is in a state at or behind the one of its last acknowledged sync |
//! | nothing is made up | that state is one that the directory had, or the next one of a call that was under way |
//! | a move happens as a whole | both directories show it, or neither does |
//! | no file has another's content | each byte is one that the file had at that place since its last acknowledged sync |
//! | no file is doubled or a mixture | all names of a file lead to one inode, and an inode is one file |
//! | a file that is made again is the same | its mode, its bytes as above, what a symbolic link says |
//!
//! Not verified: owner, group and times; that a record was needed at all, and that a sync waits for nothing; a call of a
//! process that died is taken to be under way until another one has been in its directory; states that differ only in
//! files which never had a name; directories inside the directories.

mod content;
mod judge;
mod past;

use std::collections::BTreeMap;

use seawall_core::format::Handle;

use crate::tree::{Lead, Tree};

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
    /// Changes of both directories.
    across: Vec<u64>,
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
    /// When it began, or when its process died.
    since: u64,
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
            now: 0,
            clock: 0,
        }
    }

    /// A thread begins a call.
    pub fn begin(&mut self, thread: usize, act: Act) {
        self.clock += 1;
        self.begun.insert(thread, Begun { leads: act, change: 0, since: self.clock });
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

    /// A file was made, or a symbolic link that says this.
    pub fn made(&mut self, file: usize, handle: Handle, mode: u32, target: Option<&[u8]>) {
        self.files.insert(file, Written::of(handle, mode).saying(target));
    }

    /// The kernel made a change.
    pub fn changed(&mut self, thread: usize, leads: &[Lead]) {
        self.now += 1;
        for (folder, past) in self.folders.iter_mut().enumerate() {
            past.change(self.now, leads.iter().filter(|(of, _, _)| *of == folder));
        }
        if leads.iter().any(|(folder, _, _)| *folder != leads[0].0) {
            self.across.push(self.now);
        }
        if let Some(begun) = self.begun.get_mut(&thread) {
            begun.change = self.now;
        }
    }

    /// A file has this content from now on.
    pub fn wrote(&mut self, file: usize, content: &[u8]) {
        self.files.get_mut(&file).into_iter().for_each(|written| written.has(content));
    }

    /// A sync of a directory begins.
    pub fn syncs_folder(&self, folder: usize) -> Due {
        Due { folders: vec![(folder, self.folders[folder].last_returned())], file: None }
    }

    /// A sync of a file begins: it covers its bytes, and the names that it has.
    pub fn syncs_file(&self, file: usize) -> Due {
        let all = self.folders.iter().enumerate();
        let named = all.filter_map(|(folder, past)| Some((folder, past.last_named(file)?)));
        Due { folders: named.collect(), file: self.files.get(&file).map(|written| (file, written.newest())) }
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
        for folder in 0..tree.folders() {
            self.folders[folder] = Past::at(self.now, tree.names(folder).clone());
            for file in tree.names(folder).values() {
                let Some(inode) = tree.inode(*file) else { continue };
                let mut written = Written::of(inode.handle(), inode.mode).saying(inode.target.as_deref());
                written.has(inode.content());
                written.is_synced(written.newest());
                self.files.insert(*file, written);
            }
        }
    }
}
