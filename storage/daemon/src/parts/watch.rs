//! The kernel's side of the watch for foreign opens: a group of fanotify's, or of inotify's.

mod inodes;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};
use nix::sys::inotify::{AddWatchFlags, InitFlags as InotifyFlags, Inotify};
use rustix::fs::OFlags;
use seawall_media::locks::lock;

use crate::log::Log;
use crate::sys;
pub(crate) use inodes::Inodes;

/// st_dev and st_ino.
type Inode = (u64, u64);

/// Time in which several opens count as one: the look at `/proc` is not cheap. And at its end the opener's descriptor is
/// there: an open is reported a moment before.
pub(crate) const COALESCE: Duration = Duration::from_millis(5);

/// The kernel's side of the watch.
pub(crate) enum Watch {
    /// Opens wait for us.
    Fanotify(Fanotify),
    /// Opens are reported.
    Inotify(Inotify, Mutex<Inodes>),
    /// Neither is to be had.
    Blind,
}

impl Watch {
    /// The strongest watch there is. Stdin may be a group that somebody with more rights made for us.
    pub fn new() -> Self {
        let inherited = std::io::stdin().as_fd().try_clone_to_owned().ok().and_then(sys::fanotify);
        if let Some(fanotify) = inherited.or_else(|| group().ok()) {
            return Self::Fanotify(fanotify);
        }
        Inotify::init(InotifyFlags::IN_CLOEXEC | InotifyFlags::IN_NONBLOCK)
            .map_or(Self::Blind, |inotify| Self::Inotify(inotify, Mutex::default()))
    }

    /// One word for `status`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fanotify(_) => "fanotify",
            Self::Inotify(..) => "inotify",
            Self::Blind => "none",
        }
    }

    /// Watches a file.
    pub fn add(&self, file: impl AsFd, inode: Inode, log: &Log) {
        let path = proc_path(file);
        let added = match self {
            Self::Fanotify(f) => {
                f.mark(MarkFlags::FAN_MARK_ADD, MaskFlags::FAN_OPEN_PERM, AT_FDCWD, Some(&path))
            }
            Self::Inotify(i, inodes) => i.add_watch(&path, AddWatchFlags::IN_OPEN).map(|wd| {
                lock(inodes).insert(wd, inode);
            }),
            Self::Blind => Err(Errno::ENOSYS),
        };
        if let Err(e) = added {
            log.say_once("watch", format!("cannot watch for foreign writers ({}): {e}", self.name()));
        }
    }

    /// Watches the reading of a directory, if that can wait for us: a report after the fact would be no use. Its opening
    /// is no event: databases open it to sync it.
    pub fn add_directory(&self, dir: impl AsFd, log: &Log) {
        let Self::Fanotify(f) = self else { return };
        if let Err(e) = f.mark(MarkFlags::FAN_MARK_ADD, directory_reads(), AT_FDCWD, Some(&proc_path(dir))) {
            log.say_once("watch", format!("cannot watch for programs that read directories: {e}"));
        }
    }

    /// Ends the watch of a directory.
    pub fn remove_directory(&self, dir: impl AsFd) {
        if let Self::Fanotify(f) = self {
            // Of one that was removed the kernel has done it.
            let _ = f.mark(MarkFlags::FAN_MARK_REMOVE, directory_reads(), AT_FDCWD, Some(&proc_path(dir)));
        }
    }

    /// Ends the watch of a file.
    pub fn remove(&self, file: impl AsFd, inode: Inode) {
        match self {
            // The kernel removes marks and watches of deleted files itself: errors mean "gone already".
            Self::Fanotify(f) => {
                let all = (MarkFlags::FAN_MARK_REMOVE, MaskFlags::FAN_OPEN_PERM);
                let _ = f.mark(all.0, all.1, AT_FDCWD, Some(&proc_path(&file)));
            }
            Self::Inotify(i, inodes) => {
                if let Some(watch) = lock(inodes).remove(inode) {
                    let _ = i.rm_watch(watch);
                }
            }
            Self::Blind => {}
        }
    }
}

fn directory_reads() -> MaskFlags {
    MaskFlags::FAN_ACCESS_PERM | MaskFlags::FAN_ONDIR
}

fn group() -> nix::Result<Fanotify> {
    let strong = InitFlags::FAN_CLASS_CONTENT
        | InitFlags::FAN_CLOEXEC
        | InitFlags::FAN_NONBLOCK
        | InitFlags::FAN_UNLIMITED_QUEUE
        | InitFlags::FAN_UNLIMITED_MARKS;
    // Appending to what is only read: that no other descriptor of a daemon's is opened for.
    let files =
        EventFFlags::O_RDONLY | EventFFlags::O_APPEND | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC;
    Fanotify::init(strong, files)
}

/// True of a descriptor that came with an event: its open may wait for an answer.
pub(crate) fn is_of_an_event(fd: &OwnedFd) -> bool {
    let is_one = |flags: OFlags| flags.contains(OFlags::APPEND) && flags & OFlags::ACCMODE == OFlags::RDONLY;
    rustix::fs::fcntl_getfl(fd).is_ok_and(is_one)
}

/// A fanotify group for a daemon with fewer rights than ours, to become its stdin. `None`: we have no more
/// rights than it will have.
pub fn privileged() -> Option<OwnedFd> {
    group().ok().map(OwnedFd::from)
}

fn proc_path(file: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// Lets the call pass that waits for the answer.
pub(crate) fn allow(fanotify: &Fanotify, event: &FanotifyEvent) {
    if let Some(fd) = event.fd() {
        // An answer nobody waits for any more (the opener was killed, or has its answer) is no error.
        let _ = fanotify.write_response(FanotifyResponse::new(fd, Response::FAN_ALLOW));
    }
}
