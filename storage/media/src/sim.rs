//! Hooks at the verbs, for a simulated medium.
//!
//! With feature `sim` every verb of a [`Region`](crate::Region), every fence, every access to a shared word,
//! every real sync, a disk's every publish and every wait tells the thread's `Observer`, if one is installed, what happened, and
//! from which line of source. Without the feature the hooks are empty and vanish.
//!
//! Not handled here: what an observer does with it (`seawall-sim`).

#[cfg(not(feature = "sim"))]
pub use off::*;
#[cfg(feature = "sim")]
pub use on::*;

#[cfg(feature = "sim")]
mod on {
    use core::panic::Location;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A long copy is many steps: others may store in between.
    pub(crate) const PIECE: usize = 1024;

    /// The line of source that called a verb.
    pub type Site = &'static Location<'static>;

    /// Sees what the verbs of its thread do. `base` is the address of the mapping. What it does not answer is the
    /// kernel's to answer.
    pub trait Observer {
        /// Bytes were stored: they are visible, and not persisted.
        fn stored(&self, _base: usize, _at: usize, _len: usize, _site: Site) {}
        /// Their write-back was started.
        fn flushed(&self, _base: usize, _at: usize, _len: usize, _site: Site) {}
        /// The thread waited for its write-backs.
        fn fenced(&self, _site: Site) {}
        /// Bytes are about to be copied out. An observer may unwind: they cannot be read.
        fn reads(&self, _base: usize, _at: usize, _len: usize) {}
        /// A shared word is about to be looked at or changed.
        fn touched(&self, _base: usize) {}
        /// The thread waits for another one. True: it was made to wait, so it need not do so itself.
        fn waits(&self) -> bool {
            false
        }
        /// A real sync of this descriptor: the answer it is to get, or `None` to ask the kernel.
        fn syncs(&self, _fd: i32) -> Option<Result<(), i32>> {
            None
        }
        /// These bytes are to be written to a file of the data: the answer, or `None` to ask the kernel.
        fn publishes(&self, _fd: i32, _at: u64, _bytes: &[u8]) -> Option<Result<(), i32>> {
            None
        }
        /// The same of so many zeros, by one call for all of them.
        fn publishes_zeros(&self, _fd: i32, _at: u64, _len: u64) -> Option<Result<(), i32>> {
            None
        }
        /// Whether whoever holds the lock that is waited for is stopped, or `None` to ask the kernel.
        fn halts(&self) -> Option<bool> {
            None
        }
        /// Whether a sync of this descriptor that succeeded can be believed, or `None` to ask the kernel.
        fn confirms(&self, _fd: i32) -> Option<Result<(), i32>> {
            None
        }
        /// When a name in the directory behind this descriptor last changed, or `None` to ask the kernel.
        fn changed(&self, _fd: i32) -> Option<u64> {
            None
        }
        /// A durable write to a block device: its answer, or `None` to ask the kernel.
        fn writes_block(&self, _fd: i32, _position: u64, _bytes: &[u8]) -> Option<Result<(), i32>> {
            None
        }
        /// The process that this thread belongs to, or `None` to ask the kernel.
        fn process(&self) -> Option<u32> {
            None
        }
        /// Whether that process is dead, or `None` to ask the kernel.
        fn is_dead(&self, _process: u32) -> Option<bool> {
            None
        }
        /// Whether that process, which leads, is to be replaced by this one, or `None` to ask the clock and the kernel.
        fn replaces(&self, _process: u32) -> Option<bool> {
            None
        }
    }

    thread_local! {
        static OBSERVER: RefCell<Option<Rc<dyn Observer>>> = const { RefCell::new(None) };
    }

    /// Installs the thread's observer and returns the one before.
    pub fn install(observer: Option<Rc<dyn Observer>>) -> Option<Rc<dyn Observer>> {
        OBSERVER.with(|slot| slot.replace(observer))
    }

    fn observer() -> Option<Rc<dyn Observer>> {
        // A thread that is ending has none any more.
        OBSERVER.try_with(|slot| slot.borrow().clone()).ok().flatten()
    }

    /// Stored, and the write-back started: what every storing verb does.
    #[track_caller]
    pub(crate) fn wrote(base: *const u8, at: usize, len: usize) {
        if let Some(observer) = observer() {
            observer.stored(base as usize, at, len, Location::caller());
            observer.flushed(base as usize, at, len, Location::caller());
        }
    }

    #[track_caller]
    pub(crate) fn flushed(base: *const u8, at: usize, len: usize) {
        if let Some(observer) = observer() {
            observer.flushed(base as usize, at, len, Location::caller());
        }
    }

    #[track_caller]
    pub(crate) fn fenced() {
        if let Some(observer) = observer() {
            observer.fenced(Location::caller());
        }
    }

    pub(crate) fn reads(base: *const u8, at: usize, len: usize) {
        if let Some(observer) = observer() {
            observer.reads(base as usize, at, len);
        }
    }

    pub(crate) fn touched(base: *const u8) {
        if let Some(observer) = observer() {
            observer.touched(base as usize);
        }
    }

    /// Tells that this thread waits for another one.
    pub fn waits() -> bool {
        observer().is_some_and(|observer| observer.waits())
    }

    /// Asks what a real sync of `fd` answers.
    pub fn syncs(fd: i32) -> Option<Result<(), i32>> {
        observer().and_then(|observer| observer.syncs(fd))
    }

    /// Asks what a write to the file `fd` answers.
    pub fn publishes(fd: i32, at: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        observer().and_then(|observer| observer.publishes(fd, at, bytes))
    }

    /// Asks what a call that makes so much of the file `fd` zero answers.
    pub fn publishes_zeros(fd: i32, at: u64, len: u64) -> Option<Result<(), i32>> {
        observer().and_then(|observer| observer.publishes_zeros(fd, at, len))
    }

    /// Asks what a durable write to the block device `fd` answers.
    pub(crate) fn writes_block(fd: i32, position: u64, bytes: &[u8]) -> Option<Result<(), i32>> {
        observer().and_then(|observer| observer.writes_block(fd, position, bytes))
    }

    /// Asks which process this is.
    pub fn process() -> Option<u32> {
        observer().and_then(|observer| observer.process())
    }

    /// Asks whether a process is dead.
    pub fn is_dead(process: u32) -> Option<bool> {
        observer().and_then(|observer| observer.is_dead(process))
    }

    /// Asks whether a process that leads is to be replaced by this one.
    pub fn replaces(process: u32) -> Option<bool> {
        observer().and_then(|observer| observer.replaces(process))
    }

    /// Asks whether whoever holds the lock that is waited for is stopped.
    pub fn halts() -> Option<bool> {
        observer().and_then(|observer| observer.halts())
    }

    /// Asks whether the success of a real sync of `fd` can be believed.
    pub fn confirms(fd: i32) -> Option<Result<(), i32>> {
        observer().and_then(|observer| observer.confirms(fd))
    }

    /// Asks when a name in the directory `fd` last changed.
    pub fn changed(fd: i32) -> Option<u64> {
        observer().and_then(|observer| observer.changed(fd))
    }
}

#[cfg(not(feature = "sim"))]
mod off {
    /// Nothing is simulated: a copy is one.
    pub(crate) const PIECE: usize = usize::MAX;

    #[inline(always)]
    pub(crate) fn wrote(_base: *const u8, _at: usize, _len: usize) {}
    #[inline(always)]
    pub(crate) fn flushed(_base: *const u8, _at: usize, _len: usize) {}
    #[inline(always)]
    pub(crate) fn fenced() {}
    #[inline(always)]
    pub(crate) fn reads(_base: *const u8, _at: usize, _len: usize) {}
    #[inline(always)]
    pub(crate) fn touched(_base: *const u8) {}

    /// Nothing is simulated: the thread waits by itself.
    #[inline(always)]
    pub fn waits() -> bool {
        false
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn syncs(_fd: i32) -> Option<Result<(), i32>> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn publishes(_fd: i32, _at: u64, _bytes: &[u8]) -> Option<Result<(), i32>> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn publishes_zeros(_fd: i32, _at: u64, _len: u64) -> Option<Result<(), i32>> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn confirms(_fd: i32) -> Option<Result<(), i32>> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn changed(_fd: i32) -> Option<u64> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub(crate) fn writes_block(_fd: i32, _position: u64, _bytes: &[u8]) -> Option<Result<(), i32>> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn process() -> Option<u32> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn is_dead(_process: u32) -> Option<bool> {
        None
    }

    /// Nothing is simulated: the clock and the kernel answer.
    #[inline(always)]
    pub fn replaces(_process: u32) -> Option<bool> {
        None
    }

    /// Nothing is simulated: the kernel answers.
    #[inline(always)]
    pub fn halts() -> Option<bool> {
        None
    }
}
