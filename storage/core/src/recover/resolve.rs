//! Resolve: each file with live records is found by its identity, inside its registered directory, without
//! following a symbolic link, and proven to be the registered owner's. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode as FileMode, OFlags, ResolveFlags};
use rustix::io::Errno;
use seawall_media::{Medium, identity};

use super::alone::Marks;
use super::begun::Begun;
use super::below::{is_elsewhere, open_below};
use super::dropped;
use super::ground::Ground;
use super::names::{Known, Names, RealDirectory};
use super::scan::are_names;
use super::target::{At, Locate, Target, Unwritable};
use super::unresolved::{Unresolved, give_up};
use super::{Mode, RecoverError, Report, since_boot};
use crate::file::UNBORN;
use crate::format::Handle;
use crate::pool::Pool;
use crate::table::{FileEntry, RootEntry};

/// Files with live records, by slot.
pub(super) struct Targets<F> {
    pub found: BTreeMap<u32, Target<F>>,
    /// Files that will exist once their directories are in the state that the log describes.
    again: BTreeMap<u32, At>,
}

/// Opens every file with live records. If the log of its directory knows the file: a file that was removed has no
/// records that count, and a file that the disk never had is made again.
pub(super) fn all<L: Locate>(
    ground: &Ground<'_, L>,
    names: &Names<L::Names>,
    report: &mut Report,
) -> Result<Targets<L::File>, RecoverError> {
    let Ground { pool, locate, scan, roots, files, options } = *ground;
    let (mut targets, mut unresolved) =
        (Targets { found: BTreeMap::new(), again: BTreeMap::new() }, Vec::new());
    let power_lost = options.mode == Mode::Auto && options.replays(pool);
    let of_files = scan.live.records().filter(|parts| !are_names(parts));
    let slots: BTreeSet<u32> = of_files.map(|parts| parts[0].header.slot).collect();
    for slot in slots {
        let Some(entry) = files.get(&slot) else { continue };
        let known = handle(entry).map_or(Known::Not, |file| names.knows(&file));
        if known == Known::Gone {
            continue;
        }
        match (locate.locate(roots.get(&entry.root), entry, power_lost), known) {
            (Ok(target), _) => {
                report.files.push(target.path.clone());
                targets.found.insert(slot, target);
            }
            (Err(Unwritable::Lost(_) | Unwritable::Dropped(_)), Known::PerhapsGone) => {}
            // If the disk had the file, some of its records are retired, and their content would be missing.
            (Err(Unwritable::Lost(_) | Unwritable::Dropped(_)), Known::Again(at))
                if entry.watermark == UNBORN =>
            {
                report.files.push(ground.path(entry));
                targets.again.insert(slot, at);
            }
            (Err(unwritable), _) => {
                let live = |parts: &&[super::Found]| parts[0].header.slot == slot;
                let records = scan.live.records().filter(live).count() as u64;
                let of = |why| Unresolved { path: ground.path(entry), records, why };
                match unwritable {
                    Unwritable::Lost(why) | Unwritable::Unseen(why) => unresolved.push(of(why)),
                    Unwritable::Dropped(why) => report.dropped.push(of(why).to_string()),
                }
            }
        }
    }
    give_up(unresolved, options, report)?;
    Ok(targets)
}

/// The handle by which records of names refer to a registered file.
fn handle(entry: &FileEntry) -> Option<Handle> {
    Handle::new(entry.identity.kind, &entry.identity.handle)
}

impl<F> Targets<F> {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.again.is_empty()
    }

    /// Opens the files that exist now.
    pub(super) fn open_again<L: Locate<File = F>>(
        &mut self,
        ground: &Ground<'_, L>,
        names: &Names<L::Names>,
    ) -> Result<(), RecoverError> {
        for (slot, at) in &self.again {
            let path = ground.files.get(slot).map(|entry| ground.path(entry)).unwrap_or_default();
            let failed = |error| RecoverError::Io { file: path.clone(), doing: "open", error };
            let file = names.directory(at).and_then(|names| ground.locate.open_again(names, &at.name));
            self.found.insert(*slot, Target { file: file.map_err(failed)?, path });
        }
        Ok(())
    }
}

/// The real directories.
pub struct Directories {
    begun: Begun,
    /// For a log on keepers: the marks that show which files are newer than the log.
    marks: Option<Marks>,
    pool: u128,
    is_same_boot: bool,
}

impl Directories {
    /// The directories of this pool.
    pub fn of(pool: &Pool) -> Self {
        let since = u64::from(pool.superblock.complete_since);
        let marks = (pool.medium == Medium::Replicated).then(|| Marks::of(pool.uuid(), since));
        Self { begun: Begun::of(pool), marks, pool: pool.uuid(), is_same_boot: pool.is_same_boot() }
    }
}

impl Locate for Directories {
    type File = File;
    type Names = RealDirectory;

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<File>, Unwritable> {
        let root = root.ok_or_else(|| "its directory is not registered".to_owned())?;
        let directory = open_root(root)?;
        self.marks.as_ref().map_or(Ok(()), |marks| marks.let_in(entry.root, &directory, root.uid))?;
        let target = locate(root, &directory, entry)?;
        // A replay that was cut short has changed files itself.
        if power_lost && !self.begun.is_set() {
            since_boot::unchanged(&target.file)?;
        }
        Ok(target)
    }

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<RealDirectory, Unwritable> {
        let root = root.ok_or_else(|| "its directory is not registered".to_owned())?;
        let above = open_root(root)?;
        let (directory, path) = find_directory(&above, entry, root.uid)
            .map_err(unseen)?
            .ok_or_else(|| "it is not in its directory any more (moved, deleted or replaced)".to_owned())?;
        let power_lost = !self.is_same_boot && !self.begun.is_set();
        Ok(RealDirectory::new(directory, root.path.join(path), self.pool, power_lost))
    }

    fn open_again(&self, names: &RealDirectory, name: &[u8]) -> io::Result<File> {
        names.open(OsStr::from_bytes(name))
    }

    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        self.begun.set().map_err(|error| (self.begun.path().to_owned(), error))
    }

    fn end(&self) {
        self.begun.clear();
    }
}

fn locate(root: &RootEntry, dir: &File, entry: &FileEntry) -> Result<Target<File>, Unwritable> {
    let (by_hint, error) = match open_below(dir, &entry.path) {
        Ok(file) => (Some(file).filter(|file| is(file, entry)), None),
        Err(e) => (None, Some(e).filter(|e| e.kind() != io::ErrorKind::NotFound)),
    };
    let (file, path) = match by_hint {
        Some(file) => (file, entry.path.clone()),
        None => {
            find_file(dir, entry, root.uid).map_err(unseen)?.ok_or_else(|| absent(root, dir, entry, error))?
        }
    };
    let owner = rustix::fs::fstat(&file).map_err(|e| format!("cannot read its owner: {e}"))?.st_uid;
    if owner != root.uid {
        return Err(format!(
            "it belongs to user {owner}, but its directory was registered by user {}",
            root.uid
        )
        .into());
    }
    Ok(Target { file, path: root.path.join(path) })
}

/// A file that is there and may not be opened is not gone: putting it back would not help.
fn absent(root: &RootEntry, dir: &File, entry: &FileEntry, error: Option<io::Error>) -> Unwritable {
    if let Some(error) = error {
        return Unwritable::Unseen(format!("cannot open it: {error}"));
    }
    match dropped::by_its_database(root.preset, dir, &entry.path) {
        Some(why) => Unwritable::Dropped(why),
        None => "it is not in its directory any more (moved, deleted or replaced)".to_owned().into(),
    }
}

fn unseen(error: io::Error) -> Unwritable {
    Unwritable::Unseen(format!("cannot look whether it is there: {error}"))
}

fn open_root(root: &RootEntry) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(&root.path, flags, FileMode::empty())
        .map(File::from)
        .map_err(|e| format!("cannot open its directory {}: {e}", root.path.display()))?;
    match identity(&dir) {
        Ok(id) if id == root.identity => Ok(dir),
        Ok(_) => Err(format!("{} is another directory than the registered one", root.path.display())),
        Err(e) => Err(format!("its directory {}: {e}", root.path.display())),
    }
}

/// Finds a directory by its identity: it may have another name by now.
///
/// # Errors
/// As for [`find_file`].
fn find_directory(above: &File, entry: &FileEntry, owner: u32) -> io::Result<Option<(File, PathBuf)>> {
    let open = |dir: &File, name: &Path| {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(File::from(rustix::fs::openat2(dir, name, DIRECTORY, FileMode::empty(), resolve)?))
    };
    let by_hint = if entry.path.as_os_str().is_empty() { Path::new(".") } else { &entry.path };
    match open(above, by_hint) {
        Ok(found) if is(&found, entry) => Ok(Some((found, entry.path.clone()))),
        _ => find(above, Path::new(""), (entry, owner), &open),
    }
}

/// Looks for the file under another name: renames are not logged, the handle is what counts. `None`: it is not there.
///
/// # Errors
/// It was not found, and something could not be looked at; or it is there, and cannot be opened.
fn find_file(dir: &File, entry: &FileEntry, owner: u32) -> io::Result<Option<(File, PathBuf)>> {
    find(dir, Path::new(""), (entry, owner), &open_below)
}

/// Opens what is registered, by its name in its directory.
type Open<'o> = dyn Fn(&File, &Path) -> io::Result<File> + 'o;

/// Looks at everything below a directory, which is at `below`, for what is registered with files of this owner, and opens that.
fn find(
    dir: &File,
    below: &Path,
    wanted: (&FileEntry, u32),
    open: &Open<'_>,
) -> io::Result<Option<(File, PathBuf)>> {
    let mut unseen = None;
    for name in rustix::fs::Dir::read_from(dir)? {
        let name = name?;
        let text = OsStr::from_bytes(name.file_name().to_bytes());
        if text == "." || text == ".." {
            continue;
        }
        match find_at(dir, Path::new(text), &below.join(text), wanted, open) {
            Ok(None) => {}
            Err(error) => _ = unseen.get_or_insert(error),
            found => return found,
        }
    }
    unseen.map_or(Ok(None), Err)
}

fn find_at(
    dir: &File,
    name: &Path,
    path: &Path,
    (entry, owner): (&FileEntry, u32),
    open: &Open<'_>,
) -> io::Result<Option<(File, PathBuf)>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let seen = match rustix::fs::openat(dir, name, flags, FileMode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        seen => File::from(seen?),
    };
    if has_handle(&seen, entry)? {
        let found = open(dir, name)?;
        if is(&found, entry) {
            return Ok(Some((found, path.to_owned())));
        }
    }
    let stat = rustix::fs::fstat(&seen)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(None);
    }
    match rustix::fs::openat(dir, name, DIRECTORY, FileMode::empty()) {
        Ok(sub) => find(&File::from(sub), path, (entry, owner), open),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        // `lost+found`, for one.
        Err(Errno::ACCESS) if stat.st_uid != owner => Ok(None),
        Err(error) => Err(error.into()),
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// True if what is seen may be the file. Without its handle it is of another file system.
fn has_handle(seen: &File, entry: &FileEntry) -> io::Result<bool> {
    match seawall_media::handle(seen) {
        Ok((kind, handle)) => Ok(kind == entry.identity.kind && handle == entry.identity.handle),
        Err(error) if is_elsewhere(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is(file: &File, entry: &FileEntry) -> bool {
    identity(file).is_ok_and(|id| id == entry.identity)
}
