//! What a disk needs of its log: [`Joined`]'s, or a simulator's.

use std::os::fd::BorrowedFd;

use seawall_core::client::Course;
use seawall_core::{Engine, FileRef, Owner};
use seawall_front::Joined;

/// A log that a disk's requests go through.
pub trait Log {
    /// The stages.
    fn engine(&self) -> &Engine;

    /// The calling thread, as an owner of locks and lanes.
    fn me(&self) -> Owner;

    /// True if the daemon may be asked now.
    fn may_ask(&self) -> bool;

    /// Asks that the file behind `fd` be managed; `is_atomic`: no write of it may tear.
    fn register(&self, fd: BorrowedFd<'_>, is_atomic: bool) -> Course;

    /// Gives a managed file up, because another machine is about to write it. False: it stays in the log.
    fn let_go(&self, file: FileRef) -> bool;

    /// The process with a block cache for the images of this log, if there is one.
    fn caching(&self) -> Option<&Joined>;

    /// Nothing of ours is under way any more.
    fn leave(&self);
}

impl Log for Joined {
    #[inline]
    fn engine(&self) -> &Engine {
        &self.engine
    }

    #[inline]
    fn me(&self) -> Owner {
        Joined::me(self)
    }

    fn may_ask(&self) -> bool {
        self.daemon.may_ask()
    }

    fn register(&self, fd: BorrowedFd<'_>, is_atomic: bool) -> Course {
        Joined::register(self, fd, is_atomic)
    }

    fn let_go(&self, file: FileRef) -> bool {
        self.daemon.let_go(file)
    }

    #[inline]
    fn caching(&self) -> Option<&Joined> {
        self.cache.is_some().then_some(self)
    }

    fn leave(&self) {
        Joined::leave(self);
    }
}
