//! A directory on a file system.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use crate::certain;
use crate::format::{Attributes, Handle};
use crate::recover::below::is_elsewhere;
use crate::recover::since_boot;
use crate::recover::target::{Here, NameSpace};
use crate::stand_in::{MARK, NOTE, TEMPORARY};

/// The extended attribute of a file that was made again: the pool, and the handle of the file that it stands for. It is
/// removed when the log is closed. If a crash leaves it or brings it back, it means nothing: later logs do not know
/// that handle.
const STANDS_FOR: &str = "user.seawall.stands_for";

/// A directory that was found.
pub struct RealDirectory {
    directory: File,
    path: PathBuf,
    pool: u128,
    /// The machine went down since the log was written, so nobody may have written the files since.
    power_lost: bool,
    /// Its entries before anything was replayed, once somebody asked for them.
    entries: OnceCell<BTreeMap<Handle, Vec<u8>>>,
}

/// How a file is opened for inspection: without waiting, and without following a link.
const LOOKING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl RealDirectory {
    /// The directory at `path`, for the log of this pool.
    pub(in crate::recover) fn new(directory: File, path: PathBuf, pool: u128, power_lost: bool) -> Self {
        Self { directory, path, pool, power_lost, entries: OnceCell::new() }
    }

    fn handle(&self, name: &OsStr) -> io::Result<Option<(File, Handle)>> {
        let file = match rustix::fs::openat(&self.directory, name, LOOKING, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (kind, bytes) = seawall_media::handle(&file)?;
        let handle = Handle::new(kind, &bytes);
        Ok(Some((file, handle.ok_or_else(|| io::Error::other("its handle is too long"))?)))
    }

    /// Every file in it. What is not this file system's has no handle, or another kind of one.
    fn list(&self) -> Result<BTreeMap<Handle, Vec<u8>>, String> {
        let mut all = BTreeMap::new();
        for entry in
            rustix::fs::Dir::read_from(&self.directory).map_err(|e| format!("cannot be listed: {e}"))?
        {
            let name = entry.map_err(|e| format!("cannot be listed: {e}"))?.file_name().to_bytes().to_vec();
            if name.ends_with(TEMPORARY) {
                continue;
            }
            match self.handle(OsStr::from_bytes(&name)) {
                Ok(found) => all.extend(found.map(|(_, handle)| (handle, name))),
                Err(e) if is_elsewhere(&e) => {}
                Err(e) => {
                    return Err(format!("may be {}, which cannot be examined: {e}", name.escape_ascii()));
                }
            }
        }
        Ok(all)
    }

    pub(in crate::recover) fn open(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(File::from(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?))
    }

    fn mark(&self, file: &Handle) -> Vec<u8> {
        let kind = file.kind().to_le_bytes();
        [&self.pool.to_le_bytes()[..], &kind, file.bytes()].concat()
    }

    /// The file that this one stands for, if it was made again.
    fn stands_for(&self, file: &File) -> Option<Handle> {
        let mut room = [0; 128];
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        let len = rustix::fs::getxattr(link, STANDS_FOR, &mut room).ok()?;
        let rest = room.get(..len)?.strip_prefix(&self.pool.to_le_bytes()[..])?;
        let (kind, bytes) = rest.split_first_chunk()?;
        Handle::new(i32::from_le_bytes(*kind), bytes)
    }

    fn link(&self, from: &Self, name: &OsStr, to: &OsStr) -> io::Result<()> {
        self.unlink(to)?;
        Ok(rustix::fs::linkat(&from.directory, name, &self.directory, to, AtFlags::empty())?)
    }

    fn make_directory(&self, place: &Path) -> io::Result<OwnedFd> {
        match rustix::fs::mkdirat(&self.directory, place, Mode::RWXU) {
            // A run that was cut made it.
            Err(Errno::EXIST) => {}
            done => done?,
        }
        self.below(place)
    }

    /// A symbolic link has no descriptor to sync it by: it becomes durable with its directory.
    fn make_link(&self, place: &Path, attributes: &Attributes, target: &[u8]) -> io::Result<()> {
        self.unlink(place.as_os_str())?;
        rustix::fs::symlinkat(OsStr::from_bytes(target), &self.directory, place)?;
        own(rustix::fs::openat(&self.directory, place, LOOKING, Mode::empty())?, attributes)?;
        let times = modified_at(attributes.modified);
        Ok(rustix::fs::utimensat(&self.directory, place, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn make_file(&self, place: &Path) -> io::Result<OwnedFd> {
        self.unlink(place.as_os_str())?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(&self.directory, place, flags, Mode::RUSR | Mode::WUSR)?)
    }

    fn is_directory(&self, name: &OsStr) -> io::Result<bool> {
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR) => self.remove_directory(name),
            done => Ok(done?),
        }
    }

    /// The guard that stood in it was lowered before the program removed it, and may be back.
    fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        let directory = self.below(name)?;
        if has_guard(&directory) {
            rustix::fs::unlinkat(&directory, NOTE, AtFlags::empty())?;
        }
        Ok(rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR)?)
    }

    fn below(&self, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?)
    }
}

/// True if a guard is in a directory: what it guarded is replayed now.
fn has_guard(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let note = rustix::fs::openat(directory, NOTE, flags, Mode::empty());
    note.is_ok_and(|note| rustix::fs::fgetxattr(note, MARK, &mut [0_u8; 0][..]).is_ok())
}

/// The time of the last modification, and of the last access as it is.
fn modified_at((tv_sec, tv_nsec): (i64, u32)) -> Timestamps {
    let last_modification = Timespec { tv_sec, tv_nsec: tv_nsec.into() };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification }
}

/// True if it has more names than one. The links of a directory are those that are in it.
fn has_others(file: &File) -> bool {
    let is_directory = |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 1 && !is_directory(&stat))
}

/// What a symbolic link says. `None`: it is none.
fn target(file: &File) -> Option<Vec<u8>> {
    rustix::fs::readlinkat(file, "", Vec::new()).ok().map(std::ffi::CString::into_bytes)
}

/// Gives a file, or a symbolic link that was opened for inspection, its owner and group.
fn own(file: impl AsFd, &Attributes { uid, gid, .. }: &Attributes) -> io::Result<()> {
    let is = rustix::fs::fstat(&file)?;
    if (is.st_uid, is.st_gid) != (uid, gid) {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        rustix::fs::chownat(&file, "", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Gives a file its owner, group and mode.
fn give(file: impl AsFd, attributes: &Attributes) -> io::Result<()> {
    own(&file, attributes)?;
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(attributes.mode & 0o7777))?)
}

/// Where a file is kept while names change.
fn place(file: &Handle) -> PathBuf {
    let mut name: String = file.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    name.push_str(&String::from_utf8_lossy(TEMPORARY));
    name.into()
}

/// Its name on the way from there to its final name.
fn on_its_way(file: &Handle) -> PathBuf {
    let mut name = OsStr::new("to.").to_owned();
    name.push(place(file));
    name.into()
}

impl NameSpace for RealDirectory {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn look(&self, name: &[u8]) -> Result<Option<Here>, String> {
        let found = self.handle(OsStr::from_bytes(name)).map_err(|e| format!("cannot be examined: {e}"))?;
        Ok(found.map(|(file, itself)| Here {
            itself,
            stands_for: self.stands_for(&file),
            target: target(&file),
            has_others: has_others(&file),
        }))
    }

    fn is_kept(&self, file: &Handle) -> Result<bool, String> {
        let found = self.handle(place(file).as_os_str());
        let found =
            found.map_err(|e| format!("may be what cannot be examined, {}: {e}", place(file).display()))?;
        Ok(found.is_some_and(|(_, is)| is == *file))
    }

    fn name_of(&self, file: &Handle) -> Result<Option<Vec<u8>>, String> {
        if self.entries.get().is_none() {
            let _ = self.entries.set(self.list()?);
        }
        Ok(self.entries.get().and_then(|all| all.get(file).cloned()))
    }

    fn is_full(&self, name: &[u8]) -> bool {
        let Ok(directory) = self.below(name) else { return false };
        let Ok(entries) = rustix::fs::Dir::read_from(&directory) else { return true };
        let is_guard = |name: &[u8]| name == NOTE.as_bytes() && has_guard(&directory);
        let is_other = |name: &[u8]| name != b"." && name != b".." && !is_guard(name);
        entries.filter_map(Result::ok).any(|entry| is_other(entry.file_name().to_bytes()))
    }

    fn make(&self, file: &Handle, attributes: &Attributes, target: Option<&[u8]>) -> io::Result<()> {
        let place = place(file);
        if let Some(target) = target {
            return self.make_link(&place, attributes, target);
        }
        let is_directory = attributes.is_directory();
        let made = if is_directory { self.make_directory(&place)? } else { self.make_file(&place)? };
        give(&made, attributes)?;
        rustix::fs::fsetxattr(&made, STANDS_FOR, &self.mark(file), XattrFlags::empty())?;
        Ok(rustix::fs::fsync(&made)?)
    }

    fn keep(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        let (name, place) = (OsStr::from_bytes(name), place(file));
        if from.is_directory(name)? {
            // It has only one name.
            return Ok(rustix::fs::renameat(&from.directory, name, &self.directory, &place)?);
        }
        self.link(from, name, place.as_os_str())
    }

    fn fill(
        &self,
        file: &Handle,
        name: Option<&[u8]>,
        data: &[u8],
        attributes: &Attributes,
    ) -> io::Result<()> {
        let place = place(file);
        let at = name.map_or(place.as_path(), |name| Path::new(OsStr::from_bytes(name)));
        let open = self.open(at.as_os_str())?;
        let is_itself =
            seawall_media::handle(&open).is_ok_and(|(kind, bytes)| Handle::new(kind, &bytes) == Some(*file));
        if is_itself && self.power_lost {
            since_boot::unchanged(&open).map_err(io::Error::other)?;
        }
        give(&open, attributes)?;
        open.write_all_at(data, 0)?;
        open.set_len(data.len() as u64)?;
        rustix::fs::futimens(&open, &modified_at(attributes.modified))?;
        open.sync_all()
    }

    fn put(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        let (place, to) = (place(file), OsStr::from_bytes(name));
        if from.is_directory(place.as_os_str())? {
            // The kernel moves a directory over no file; a directory that was there is kept elsewhere by now, or removed.
            self.unlink(to)?;
            return Ok(rustix::fs::renameat(&from.directory, &place, &self.directory, to)?);
        }
        let next = on_its_way(file);
        self.link(from, place.as_os_str(), next.as_os_str())?;
        if self.is_directory(to).unwrap_or(false) {
            // The kernel moves no file over one. It is kept elsewhere by now, or removed.
            self.remove_directory(to)?;
        }
        rustix::fs::renameat(&self.directory, &next, &self.directory, to)?;
        // If both are names of the same file, the rename removes neither.
        self.unlink(next.as_os_str())
    }

    fn remove(&self, name: &[u8]) -> io::Result<()> {
        self.unlink(OsStr::from_bytes(name))
    }

    fn sync_file(&self, name: &[u8]) -> io::Result<()> {
        match self.open(OsStr::from_bytes(name)) {
            Ok(file) => file.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.directory)?)
    }

    fn clear(&self, files: &[Handle]) -> io::Result<()> {
        for file in files {
            self.unlink(place(file).as_os_str())?;
        }
        rustix::fs::fsync(&self.directory)?;
        Ok(certain::check(self.directory.as_fd())?)
    }

    fn inner(&self, file: &Handle, name: Option<&[u8]>) -> io::Result<Self> {
        let place = place(file);
        let at = name.map_or(place.as_path(), |name| Path::new(OsStr::from_bytes(name)));
        Ok(Self::new(File::from(self.below(at)?), self.path.join(at), self.pool, self.power_lost))
    }

    fn end(&self, names: &[&[u8]]) {
        for name in names {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            if let Ok(file) =
                rustix::fs::openat(&self.directory, OsStr::from_bytes(name), flags, Mode::empty())
            {
                // A leftover attribute means nothing to anybody.
                let _ = rustix::fs::fremovexattr(&file, STANDS_FOR);
            }
        }
    }
}
