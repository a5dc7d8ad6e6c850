//! Directories whose names are in the log: what this process changes in them becomes records, and a small file that is
//! synced for the first time becomes one as a whole.
//!
//! What becomes of calls on names is every front's alike: [`seawall_core::naming`]. Here is which directory a path leads to,
//! and what a sync is:
//!
//! | call | in such a directory |
//! |---|---|
//! | the first fsync of a file of up to [`LARGEST`](seawall_core::naming::LARGEST) bytes | all of it is a record: nothing waits for the disk |
//! | another durable way of such a file (a later fsync, a mapping, asynchronous writes) | the file is synced for real first, and the log hears of it |
//! | fsync of the directory | nothing is left to do |
//! | a change of the size of a file that was synced and has no records, by any program's preset | is durable when the call returns ([`resizing`]) |

mod ask;
mod capture;
mod change;
mod content;
mod here;
mod size;

pub use ask::{sync_directory, sync_parent, synced_for_real};
pub use capture::{first_sync, next_lsn, settle, settle_all};
pub use change::{linking, making, making_new, making_up, moving, other, removing, removing_directory};
pub use here::{engine, joining, may_make};
pub use size::resizing;
