//! Which watch of inotify's is which file's, from either side.

use std::collections::HashMap;

use nix::sys::inotify::WatchDescriptor;

use super::Inode;

/// The watched files.
#[derive(Default)]
pub(crate) struct Inodes {
    by_watch: HashMap<WatchDescriptor, Inode>,
    by_inode: HashMap<Inode, WatchDescriptor>,
}

impl Inodes {
    /// The watch reports this file from now on. What either of them belonged to before is over: the kernel removes the watch
    /// of a file that is deleted, and both numbers may come again.
    pub fn insert(&mut self, watch: WatchDescriptor, inode: Inode) {
        if let Some(former) = self.by_watch.insert(watch, inode).filter(|former| *former != inode) {
            self.by_inode.remove(&former);
        }
        if let Some(former) = self.by_inode.insert(inode, watch).filter(|former| *former != watch) {
            self.by_watch.remove(&former);
        }
    }

    /// The watch of a file that needs none any more.
    pub fn remove(&mut self, inode: Inode) -> Option<WatchDescriptor> {
        let watch = self.by_inode.remove(&inode)?;
        self.by_watch.remove(&watch);
        Some(watch)
    }

    /// The file that a watch reports.
    pub fn get(&self, watch: WatchDescriptor) -> Option<Inode> {
        self.by_watch.get(&watch).copied()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Inode> {
        self.by_inode.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    use super::*;

    #[test]
    fn a_number_that_comes_again_belongs_to_the_newer_file_alone() {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC).expect("a group");
        let [first, second] = ["a", "b"].map(|name| {
            let path = dir.path().join(name);
            fs::write(&path, "").expect("written");
            inotify.add_watch(&path, AddWatchFlags::IN_OPEN).expect("watched")
        });
        let mut inodes = Inodes::default();
        inodes.insert(first, (1, 1));
        inodes.insert(second, (1, 1));
        assert_eq!((inodes.get(first), inodes.get(second)), (None, Some((1, 1))), "the inode");
        inodes.insert(second, (1, 2));
        assert_eq!(inodes.all().collect::<Vec<_>>(), [(1, 2)], "the watch");
        assert_eq!((inodes.remove((1, 1)), inodes.remove((1, 2))), (None, Some(second)));
        assert_eq!((inodes.get(second), inodes.all().count()), (None, 0));
    }
}
