//! A managed file: everything that is known of it at run time has one owner.
//!
//! ```text
//!                  real fsync succeeded, no untracked write since, no hold
//!             ┌──────────────────────────────────────────────────────────────┐
//!             │                                                              ▼
//!         UNTRACKED                                                       TRACKED
//!     writes: the kernel's                                   writes: log, fence, publish
//!     fsync:  the kernel's                                   fsync:  nothing left to do
//!     live records: none                                     (SYNC_NEEDED: one real fsync;
//!                                                             renamed: a sync of the directory)
//!             ▲                                                              │
//!             └──────────────────────────────────────────────────────────────┘
//!                  leave: real fdatasync, watermark raised, under the lock
//! ```
//!
//! Invariant, and the reason for P1–P4 together: **an untracked file has no live records.** So no durable path that the
//! kernel offers for such a file (sync, msync, O_DSYNC, an aio fsync) needs any care.
//!
//! The words of a [`Slot`] are private to this module. What changes them:
//!
//! | transition | by whom | before | after |
//! |---|---|---|---|
//! | `Engine::register` | the daemon | the slot is free | in the table, with all of it on disk; found by nobody |
//! | `Registered::admit` | the daemon | registered | found by everybody; tracked, if its every write must be logged |
//! | [`track`](Inside::track) | the thread that synced it | no live records, nothing keeps it out | tracked |
//! | [`logs`](Inside::logs) | a writer | tracked, the LSN is new | its newest record has that LSN |
//! | [`goes_around`](Inside::goes_around) | a writer | untracked | a sync that is under way does not cover it |
//! | [`leave`](Inside::leave) | a thread that changes it in another way | | untracked; no live records, or FAILED |
//! | [`retire`](Inside::retire) | the same, the reaper | | no live records, or FAILED |
//! | [`synced`](Inside::synced) | the thread that synced it | the sync began after what it covers | what it covers is retired; tracked, if nothing was changed since |
//! | [`is_held`](Inside::is_held), [`hold_ends`](Slot::hold_ends), [`holds_are`](Inside::holds_are) | a mapping, a stream, io_uring | untracked | untracked as long as there is one |
//! | [`disturb`](Slot::disturb) | anybody | | the next fsync is real, also the one after a sync that is under way |
//! | [`renamed`](Slot::renamed), [`named`](Inside::named) | the thread that renames; the one that syncs | no more are durable than there were | |
//! | [`keep_out`](Slot::keep_out), [`let_back`](Slot::let_back) | anybody | | never tracked; may be tracked again |
//! | [`suspend`](Slot::suspend), [`resume`](Slot::resume) | the daemon, for a freeze | kept out | changes wait while it is untracked; they go on |
//! | [`vanish`](Inside::vanish), [`appear`](Inside::appear) | the thread that removes a rollback journal; the one that makes it again | tracked, empty; absent | absent: there, and shown to nobody; a file like any other |
//! | [`distrust`](Slot::distrust), [`sync_failed`](Slot::sync_failed) | the thread that got an error | | FAILED: never tracked again, live records stay |
//! | `Engine::evict` | the daemon | nobody writes it; no live records | the slot is free |
//! | `Engine::forget` | the daemon | its last name is gone, or nobody can write it | the slot is free |
//!
//! What a transition requires is asserted in debug builds and in the simulator. The transitions of [`Inside`] need the
//! file's lock.

pub mod captured;
pub(crate) mod index;
mod inside;
mod lock;
pub(crate) mod made;
mod reference;
#[cfg(feature = "std")]
mod register;
mod slot;
mod state;
mod watermark;

pub(crate) use inside::Covered;
pub use lock::{Entered, Inside};
pub use reference::FileRef;
#[cfg(feature = "std")]
pub use register::{Begins, Newcomer};
pub use slot::{Counters, Slot, Stand};
pub use state::{Flag, KeptOut, SUSPENDED_AT_MOST, State};
#[cfg(feature = "std")]
pub(crate) use watermark::BORN;
pub use watermark::UNBORN;
