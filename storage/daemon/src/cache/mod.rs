//! The block cache's life beside the log's: whose zone it is, which files are entered, who may not write them.
//!
//! ```text
//! start ─ zone made, found again, or taken over ─▶ files entered, watched, noted, reaped ─▶ left, closed
//! ```
//!
//! Invariants: a zone is recovered or made anew only when no process has it mapped. A file is served only while this
//! daemon watches for writers without the preload; a stranger's open suspends it first. While fronts live that have no
//! zone there is no cache: they write without a word.
//!
//! Not handled here: what a block is and why it is never stale (`seawall-cache`), who reads and writes (`preload`).

mod aligned;
mod applying;
mod asked;
mod budget;
mod bytes;
mod death;
mod disk;
mod enter;
mod error;
mod file;
mod finishing;
mod identity;
mod in_memory;
mod keeping;
mod on_disk;
mod opening;
mod options;
mod owner;
mod place;
mod policies;
mod prewarm;
mod resize;
mod room;
mod rules;
mod status;
mod store;
mod strangers;
mod suspended;
mod takeover;
mod writing;
mod zone;

pub use applying::{Directory, FilesStatus, Listed, PolicyStatus};
pub use asked::Asked;
pub use error::CacheError;
pub use options::{CacheOptions, default_path};
pub use place::{check, check_place, remove};
pub use policies::Wanted;
pub use prewarm::{Prewarm, Prewarmed};
pub use resize::{Resize, Resized};
pub use rules::{Choice, Covers, Rule};
pub use status::{AdvisoryStatus, CacheStatus, CachedFileStatus};
pub use store::is_device;

pub(crate) use applying::{list as policies, set as set_policies};
pub(crate) use death::announce;
pub(crate) use enter::enter;
pub(crate) use finishing::Announced;
pub(crate) use keeping::{close, leave_all, reap, run};
pub(crate) use opening::{open, take_over};
pub(crate) use owner::me;
pub(crate) use prewarm::prewarm;
pub(crate) use resize::resize;
pub(crate) use status::status;
pub(crate) use strangers::{look_for_writers, opened, opened_unseen, review, suspend_those_of};
pub(crate) use writing::run as bring;
pub(crate) use zone::{Zone, capacity};
