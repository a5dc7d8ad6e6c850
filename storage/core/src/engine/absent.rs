//! A file that its database removes and makes again for each transaction: SQLite's rollback journal in the mode `delete`.
//!
//! Its removal becomes a record that it is empty, which to SQLite is the same as not being there (`unixAccess()`: a
//! file without bytes does not exist). The file stays where it is, and is hidden from programs under Seawall. So
//! neither its new name nor its new inode costs a sync of the disk.
//!
//! ```text
//!              truncated to nothing in the log, vanish
//!   present ────────────────────────────────────────────▶ absent ──▶ removed for good, by the daemon, when its guard goes
//!      ▲                                                     │
//!      └─────────────────────────────────────────────────────┘
//!                          appear
//! ```
//!
//! After a power cut nothing remembers that it was absent: it is there, and empty.

use core::sync::atomic::Ordering::SeqCst;

use super::attach::Engine;
use super::enter::Entering;
use crate::Owner;
use crate::file::{FileRef, Flag};

impl Engine {
    /// The file, whose emptiness has just been logged, is absent from now on. `is_empty` is called while nobody else is
    /// inside. False: the file must be removed from its directory.
    pub fn vanish(&self, who: Owner, file: FileRef, is_empty: impl FnOnce() -> bool) -> bool {
        // Many read this line of memory, and SQLite comes here in each transaction.
        if !self.may_have_absent() {
            self.shm().header().absences().store(1, SeqCst);
        }
        match self.enter(who, file) {
            Entering::Alone(inside) => !inside.inherited() && is_empty() && inside.vanish(),
            Entering::Nested(_) | Entering::Gone => false,
        }
    }

    /// The file is made again. False: it is not absent, or no longer.
    pub fn appear(&self, who: Owner, file: FileRef) -> bool {
        match self.enter(who, file) {
            Entering::Alone(inside) => inside.appear(),
            Entering::Nested(_) | Entering::Gone => false,
        }
    }

    /// False as long as no file was ever absent: nobody needs to look.
    #[inline]
    pub fn may_have_absent(&self) -> bool {
        self.shm().header().absences().load(SeqCst) != 0
    }

    /// True while it is hidden from programs under Seawall.
    pub fn is_absent(&self, file: FileRef) -> bool {
        self.file(file).is_some_and(|slot| slot.is_of(file) && slot.state().has(Flag::ABSENT))
    }
}
