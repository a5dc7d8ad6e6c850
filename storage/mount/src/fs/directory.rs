//! opendir, readdir, readdirplus, fsyncdir.
//!
//! A directory is read from the position that the kernel names, which is the backing file system's own cookie: so a
//! reader that comes back later goes on where it was, whatever was made or removed meanwhile.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use fuser::{FileHandle, FileType, INodeNo};
use rustix::fs::{AtFlags, OFlags, RawDir, SeekFrom, statat};
use seawall_cache::front::sequential::Stream;
use seawall_core::{Errno, Scope};
use seawall_media::locks::lock;

use super::Fs;
use crate::attr;
use crate::handle::Handle;
use crate::{named, names};

const BUFFER: usize = 32 << 10;

/// One entry.
pub struct DirEntry<'e> {
    /// Its name.
    pub name: &'e OsStr,
    /// Its inode.
    pub ino: u64,
    /// Its type.
    pub kind: FileType,
    /// Where the next one is.
    pub next: u64,
}

impl Fs {
    /// opendir(3).
    ///
    /// # Errors
    /// What the backing file system says, for this and the following.
    pub fn open_directory(&self, number: INodeNo) -> Result<FileHandle, Errno> {
        let node = self.nodes.get(number)?;
        let fd = node.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.handles.add(Handle {
            node,
            fd,
            writable: false,
            direct: false,
            reading: Default::default(),
            stream: Stream::new(),
        }))
    }

    /// closedir(3).
    pub fn close_directory(&self, number: FileHandle) {
        self.handles.remove(number);
    }

    /// Reads entries from `offset` on until `take` says that it has enough.
    pub fn read_directory(
        &self,
        number: FileHandle,
        offset: u64,
        mut take: impl FnMut(&Handle, &DirEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let handle = self.handles.get(number)?;
        let _alone = lock(&handle.reading);
        rustix::fs::seek(&handle.fd, SeekFrom::Start(offset))?;
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut entries = RawDir::new(&handle.fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let (mut ino, mut kind) = (entry.ino(), attr::kind(entry.file_type()));
            if names::is_hidden(handle.node.fd(), name) {
                continue;
            }
            let real = names::real(handle.node.fd(), name);
            if *real != *name {
                let Ok(stat) = statat(handle.node.fd(), &*real, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                (ino, kind) = (stat.st_ino, attr::kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)));
            }
            if take(&handle, &DirEntry { name, ino, kind, next: entry.next_entry_cookie() }) {
                break;
            }
        }
        Ok(())
    }

    /// fsync(2) of a directory: the disk's, unless nothing changed in it since.
    pub fn sync_directory(&self, number: FileHandle) -> Result<(), Errno> {
        let handle = self.handles.get(number)?;
        if let Some(done) = named::sync_directory(&self.log, &handle.node) {
            return done;
        }
        let clock = self.log.engine.shm().header().clock();
        self.synced.sync(clock, handle.fd.as_fd(), Scope::Whole, |_| rustix::fs::fsync(&handle.fd))
    }
}
