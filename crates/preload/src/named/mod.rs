//! Directories whose names are in the log: what this process changes in them becomes records, and a small file that is
//! synced for the first time becomes one as a whole.
//!
//! | call | in such a directory |
//! |---|---|
//! | open with O_CREAT, fopen | a new file's name is a record, made before the call returns |
//! | mkdir; link within the directory; the first name of a file without one (O_TMPFILE) | the same |
//! | unlink; rename of a file within the directory, RENAME_EXCHANGE of two | a record, made before the kernel's call |
//! | rename of a file to another one of them | a record in each, made before the kernel's call |
//! | rmdir, symlink, mknod, rename of or over a directory, a link or rename to or from a directory that is not in the log, the removal of a name of a file whose other names the log does not know | the directory leaves the log first; its next fsync is real |
//! | the first fsync of a file of up to [`LARGEST`](capture::LARGEST) bytes | all of it is a record: nothing waits for the disk |
//! | another durable way of such a file (a later fsync, a mapping, asynchronous writes) | the file is synced for real first, and the log hears of it |
//! | fsync of the directory | nothing is left to do |
//!
//! What each record means, and when it is made: `engine::names` in seawall-core.

mod ask;
mod capture;
mod change;
mod here;
mod links;
mod moves;

pub use ask::{sync_directory, synced_for_real};
pub use capture::{first_sync, settle, settle_all};
pub use change::{leaving, making, making_directory, making_up, other, removing};
pub use here::{engine, may_make};
pub use links::linking;
pub use moves::{How, moving};
