//! Guards (promise P5) over the life of a daemon: raised before a file's first record, bound to what they protect, gone
//! with the last file that needs them.
//!
//! A guard stands in a *directory*, of which this holds a descriptor, under a name; so it moves with that directory. It
//! protects *slots*; where their files go, it follows.
//!
//! ```text
//!          raise, protect                            the last file is forgotten, evicted or gone elsewhere
//!   none ─────────────────▶ up ───────────────────────────────────────────────────────────────────────────▶ none
//!                           │ ▲
//!   every file of it is out │ │ raised again before the first of them is let back
//!            of the log     ▼ │
//!                          aside: for a stranger who looks at the directory, or for a freeze
//! ```
//!
//! Invariant: a file that may have a record has its guard up, at the name where the file is (within one look around,
//! [`Guards::follow`], where a program without Seawall renamed it).
//!
//! A caller that changes which guards there are has the turn of `registering`.

mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use seawall_core::stand_in::is_beside;
use seawall_core::table::RootEntry;
use seawall_media::locks::lock;
use seawall_wire::shm::Preset;

use super::watch::Watch;
use crate::guard::{self, GuardError};
use crate::log::Log;
pub use standing::Hand;
use standing::{Guard, at, shown};

/// How long a guard that was raised for a rename waits for the rename.
const AHEAD: Duration = Duration::from_secs(5);

/// What one guard is known by: device and inode of its directory, and its name there.
type Key = ((u64, u64), OsString);

/// Where a file's guard is.
struct Protected {
    /// The file's path when that was found out.
    path: PathBuf,
    key: Key,
    /// The guard at the name that the file is about to get, and until when it is waited for.
    ahead: Option<(Key, Instant)>,
}

#[derive(Default)]
struct All {
    guards: BTreeMap<Key, Guard>,
    protected: BTreeMap<u32, Protected>,
    /// Directories whose opening by strangers is waited for.
    watched: BTreeMap<(u64, u64), Arc<OwnedFd>>,
    /// Directories in which a crash would bring back a guard that was lowered.
    unsynced: BTreeMap<(u64, u64), Arc<OwnedFd>>,
}

/// The guards of a daemon.
#[derive(Default)]
pub(crate) struct Guards(Mutex<All>);

/// A guard that is up and waits for the slot it is to protect.
pub(crate) struct Raised {
    key: Key,
    path: PathBuf,
}

/// Where the guard of a file is to be.
fn place(root: &RootEntry, path: &Path) -> PathBuf {
    guard::place(root.preset, &root.data, path)
}

/// True if the guard is met by whoever reads the directory, and therefore steps aside. The others are at places that
/// backups leave out by their rules, or in a directory that is listed again and again (a hypervisor's images): there whoever
/// opens the image itself is waited for.
pub(crate) fn steps_aside(preset: Preset) -> bool {
    is_beside(preset) && preset != Preset::Disk
}

impl All {
    /// The guard at this path, which is to be up.
    fn raise(&mut self, preset: Preset, path: &Path, hand: &Hand<'_>) -> Result<Key, GuardError> {
        let (dir, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, dir, flags, Mode::empty()).and_then(|dir| Ok((fstat(&dir)?, dir)));
        let (stat, dir) = opened.map_err(|e| guard::fault("open", dir)(e.into()))?;
        let key = ((stat.st_dev, stat.st_ino), name.to_owned());
        if let Some(known) = self.guards.get(&key) {
            if !known.up {
                return Err(GuardError::Aside { at: path.to_owned() });
            }
            // The files are asked, not our list: somebody's hand may have taken it away.
            known.raise(name, hand)?;
            return Ok(key);
        }
        let guard = Guard { preset, dir: Arc::new(dir), up: true, kept: false };
        guard.raise(name, hand)?;
        self.guards.insert(key.clone(), guard);
        Ok(key)
    }

    /// The guard of the file of `slot`, which is at `path`, goes up there and protects it from now on.
    fn protect(
        &mut self,
        slot: u32,
        root: &RootEntry,
        path: &Path,
        hand: &Hand<'_>,
    ) -> Result<(), GuardError> {
        let key = self.raise(root.preset, &place(root, path), hand)?;
        self.protected.insert(slot, Protected { path: path.to_owned(), key, ahead: None });
        Ok(())
    }

    fn is_aside(&self, slot: u32) -> bool {
        self.protected.get(&slot).and_then(|file| self.guards.get(&file.key)).is_some_and(|guard| !guard.up)
    }

    fn slots(&self, key: &Key) -> BTreeSet<u32> {
        self.protected.iter().filter(|(_, file)| file.key == *key).map(|(slot, _)| *slot).collect()
    }

    /// Those that protect nothing.
    fn quiet(&self) -> Vec<Key> {
        let mut needed: BTreeSet<&Key> = self.protected.values().map(|file| &file.key).collect();
        needed.extend(self.protected.values().filter_map(|file| file.ahead.as_ref().map(|(key, _)| key)));
        let is_quiet = |(key, guard): &(&Key, &Guard)| !guard.kept && !needed.contains(key);
        self.guards.iter().filter(is_quiet).map(|(key, _)| key.clone()).collect()
    }

    /// Lowers one for good. One that stands aside only goes out of the list.
    fn lower(&mut self, key: &Key, hand: &Hand<'_>) -> Result<(), GuardError> {
        let Some(guard) = self.guards.get(key) else { return Ok(()) };
        let lowered = guard.lower(&key.1, hand).or_else(|error| match error {
            // What it stood for was removed, and it protects nothing any more.
            GuardError::Broken { .. } => guard.discard(&key.1, hand),
            error => Err(error),
        });
        match lowered {
            Err(e) if guard.is_in_a_directory() => Err(e),
            _ => {
                self.unsynced.insert(key.0, Arc::clone(&guard.dir));
                self.guards.remove(key);
                Ok(())
            }
        }
    }
}

impl Guards {
    /// How many are up.
    pub fn count(&self) -> usize {
        lock(&self.0).guards.values().filter(|guard| guard.up).count()
    }

    /// Raises the guard of the file at `path`, durably. At once if it is up.
    ///
    /// # Errors
    /// [`GuardError`]: the file must not be managed; [`GuardError::Aside`]: not now.
    pub fn raise(&self, root: &RootEntry, path: &Path, hand: &Hand<'_>) -> Result<Raised, GuardError> {
        let key = lock(&self.0).raise(root.preset, &place(root, path), hand)?;
        Ok(Raised { key, path: path.to_owned() })
    }

    /// The guard protects the file of `slot` from now on.
    pub fn protect(&self, slot: u32, Raised { key, path }: Raised) {
        lock(&self.0).protected.insert(slot, Protected { path, key, ahead: None });
    }

    /// The file of `slot` needs none any more.
    pub fn forget(&self, slot: u32) {
        lock(&self.0).protected.remove(&slot);
    }

    /// A guard that another daemon left. Without a file that it protects it is lowered; `kept`: it stays.
    pub fn adopt(&self, preset: Preset, path: &Path, hand: &Hand<'_>, kept: bool) -> Result<(), GuardError> {
        let mut all = lock(&self.0);
        let key = all.raise(preset, path, hand)?;
        if let Some(guard) = all.guards.get_mut(&key) {
            guard.kept |= kept;
        }
        Ok(())
    }

    /// The file of `slot` is about to be renamed to `to`: the guard at that name goes up first, and stays for a while
    /// though the file is not there yet.
    pub fn raise_ahead(
        &self,
        slot: u32,
        root: &RootEntry,
        to: &Path,
        hand: &Hand<'_>,
    ) -> Result<(), GuardError> {
        if !is_beside(root.preset) {
            return Ok(());
        }
        let mut all = lock(&self.0);
        if !all.protected.contains_key(&slot) {
            return Ok(());
        }
        let key = all.raise(root.preset, &place(root, to), hand)?;
        if let Some(file) = all.protected.get_mut(&slot).filter(|file| file.key != key) {
            file.ahead = Some((key, Instant::now() + AHEAD));
        }
        Ok(())
    }

    /// The file of `slot` is at `now`: its guard is raised there, and what was raised for a rename that did not come is
    /// given up. Cheap if the file is where it was.
    pub fn follow(&self, slot: u32, root: &RootEntry, now: &Path, hand: &Hand<'_>) -> Result<(), GuardError> {
        let mut all = lock(&self.0);
        let Some(file) = all.protected.get_mut(&slot).filter(|_| is_beside(root.preset)) else {
            return Ok(());
        };
        if file.path == now {
            file.ahead = file.ahead.take().filter(|(_, until)| *until > Instant::now());
            return Ok(());
        }
        // While its guard stands aside the file is out of the log, and gets its new one when that is raised again.
        if all.is_aside(slot) { Ok(()) } else { all.protect(slot, root, now, hand) }
    }

    /// True if the guard of `slot` is where that of a file at this path is.
    pub fn is_at(&self, slot: u32, path: &Path) -> bool {
        lock(&self.0).protected.get(&slot).is_some_and(|file| file.path == path)
    }

    /// True if the guard of `slot` stands in this directory.
    pub fn stands_in(&self, slot: u32, directory: (u64, u64)) -> bool {
        lock(&self.0).protected.get(&slot).is_some_and(|file| file.key.0 == directory)
    }

    /// The slots whose guards' place depends on where their files are.
    pub fn beside(&self) -> Vec<u32> {
        let all = lock(&self.0);
        let is_beside =
            |file: &Protected| all.guards.get(&file.key).is_some_and(|guard| is_beside(guard.preset));
        all.protected.iter().filter(|(_, file)| is_beside(file)).map(|(slot, _)| *slot).collect()
    }

    /// The slots of each guard that is up and goes when they are closed. A note is in nobody's way, and many a program opens
    /// its file anew for each line.
    pub fn groups(&self) -> Vec<BTreeSet<u32>> {
        let all = lock(&self.0);
        let mut groups: BTreeMap<&Key, BTreeSet<u32>> = BTreeMap::new();
        for (slot, file) in &all.protected {
            groups.entry(&file.key).or_default().insert(*slot);
        }
        let goes = |guard: &Guard| guard.up && guard.preset != Preset::Any;
        groups.retain(|key, _| all.guards.get(*key).is_some_and(goes));
        groups.into_values().collect()
    }

    /// The slots whose guards stand in this directory.
    pub fn guarded_in(&self, directory: (u64, u64)) -> Vec<u32> {
        let all = lock(&self.0);
        all.protected.iter().filter(|(_, file)| file.key.0 == directory).map(|(slot, _)| *slot).collect()
    }

    /// True if a guard is up in this directory.
    pub fn has_any_in(&self, directory: (u64, u64)) -> bool {
        lock(&self.0).guards.iter().any(|(key, guard)| key.0 == directory && guard.up)
    }

    /// The slots that have the same guard as this one, itself among them.
    pub fn companions(&self, slot: u32) -> BTreeSet<u32> {
        let all = lock(&self.0);
        all.protected.get(&slot).map_or_else(|| BTreeSet::from([slot]), |file| all.slots(&file.key))
    }

    /// The slots whose guards stand in this directory and step aside for whoever reads it.
    pub fn met_at(&self, directory: (u64, u64)) -> BTreeSet<u32> {
        let all = lock(&self.0);
        let met = all.guards.iter().filter(|(key, guard)| key.0 == directory && steps_aside(guard.preset));
        met.flat_map(|(key, _)| all.slots(key)).collect()
    }

    /// Strangers who open the directory of a guard that steps aside are waited for, as long as it is there.
    pub fn watch(&self, watch: &Watch, log: &Log) {
        let mut all = lock(&self.0);
        let aside = all.guards.iter().filter(|(_, guard)| steps_aside(guard.preset));
        let wanted: BTreeMap<_, _> = aside.map(|(key, guard)| (key.0, Arc::clone(&guard.dir))).collect();
        let new = wanted.iter().filter(|(inode, _)| !all.watched.contains_key(inode));
        new.for_each(|(_, dir)| watch.add_directory(dir, log));
        let gone = all.watched.iter().filter(|(inode, _)| !wanted.contains_key(inode));
        gone.for_each(|(_, dir)| watch.remove_directory(dir));
        all.watched = wanted;
    }

    /// Lowers the guards of these slots for now. Their files, all of them, are out of the log, and stay so until
    /// [`Self::come_back`].
    pub fn step_aside(&self, slots: &BTreeSet<u32>, hand: &Hand<'_>) -> Vec<GuardError> {
        let mut all = lock(&self.0);
        let of = |slot: &u32| all.protected.get(slot).map(|file| file.key.clone());
        let keys: BTreeSet<Key> = slots.iter().filter_map(of).collect();
        let mut errors = Vec::new();
        for key in keys {
            debug_assert!(all.slots(&key).is_subset(slots), "a file in the log loses its guard");
            let Some(guard) = all.guards.get_mut(&key).filter(|guard| guard.up) else { continue };
            match guard.lower(&key.1, hand) {
                Ok(()) => {
                    guard.up = false;
                    let dir = Arc::clone(&guard.dir);
                    all.unsynced.insert(key.0, dir);
                }
                Err(e) => errors.push(e),
            }
        }
        errors
    }

    /// Raises the guard of `slot`, whose file is at `now`, if it stands aside: then the file may be let back.
    pub fn come_back(
        &self,
        slot: u32,
        root: &RootEntry,
        now: &Path,
        hand: &Hand<'_>,
    ) -> Result<(), GuardError> {
        let mut all = lock(&self.0);
        let Some(key) = all.protected.get(&slot).map(|file| file.key.clone()) else {
            return all.protect(slot, root, now, hand);
        };
        if let Some(guard) = all.guards.get_mut(&key).filter(|guard| !guard.up) {
            guard.come_back(&key.1, hand)?;
            guard.up = true;
        }
        drop(all);
        self.follow(slot, root, now, hand)
    }

    /// True while the guard of `slot` stands aside.
    pub fn is_aside(&self, slot: u32) -> bool {
        lock(&self.0).is_aside(slot)
    }

    /// Puts up again what took a guard's place: a rename of the database's that met the raising, or somebody's hand. If the
    /// log is `ours`: a host that took it over may have lowered it.
    pub fn keep_up(&self, hand: &Hand<'_>, ours: impl FnOnce() -> bool) -> Vec<GuardError> {
        let all = lock(&self.0);
        let up = all.guards.iter().filter(|(_, guard)| guard.up);
        let has_fallen = |(key, guard): &(&Key, &Guard)| {
            !guard::is_up(&at(&guard.dir, &key.1)) && guard.is_in_a_directory()
        };
        let fallen: Vec<_> = up.filter(has_fallen).collect();
        if fallen.is_empty() || !ours() {
            return Vec::new();
        }
        let fallen = fallen.into_iter();
        fallen.filter_map(|(key, guard)| guard.raise(&key.1, hand).err()).collect()
    }

    /// Makes durable that guards were lowered. Nobody needs to wait for it while the daemon lives: the next one, and
    /// recovery, lower what a crash brings back.
    pub fn sync_lowered(&self) -> Vec<GuardError> {
        let unsynced = std::mem::take(&mut lock(&self.0).unsynced);
        let there = unsynced.values().filter(|dir| fstat(dir).is_ok_and(|stat| stat.st_nlink > 0));
        let synced =
            there.filter_map(|dir| Some((dir, guard::sync_directory(&at(dir, OsStr::new("."))).err()?)));
        synced.map(|(dir, error)| shown(error, dir, OsStr::new(""))).collect()
    }

    /// Lowers those that protect nothing, if the log is `ours`. What could not be lowered is returned and stays up.
    pub fn lower_quiet(&self, hand: &Hand<'_>, ours: impl FnOnce() -> bool) -> Vec<GuardError> {
        let mut all = lock(&self.0);
        let quiet = all.quiet();
        if quiet.is_empty() || !ours() {
            return Vec::new();
        }
        quiet.iter().filter_map(|key| all.lower(key, hand).err()).collect()
    }

    /// Those of them that stand in this directory.
    pub fn lower_quiet_in(
        &self,
        directory: (u64, u64),
        hand: &Hand<'_>,
        ours: impl FnOnce() -> bool,
    ) -> Vec<GuardError> {
        let mut all = lock(&self.0);
        let quiet = all.quiet();
        let here: Vec<&Key> = quiet.iter().filter(|key| key.0 == directory).collect();
        if here.is_empty() || !ours() {
            return Vec::new();
        }
        here.into_iter().filter_map(|key| all.lower(key, hand).err()).collect()
    }
}
