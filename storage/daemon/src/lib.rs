//! Seawall's daemon: the one process that owns a pool.
//!
//! Inputs: a pool, requests on a Unix socket, the run-time memory it shares with its clients. Outputs: a log
//! that is recovered before anything starts, destaged while it runs, drained when it ends; guards that are
//! up while the log may hold what the files lack.
//!
//! ```text
//! start ─ recover ─ take over ─▶ serve ───────────────────────▶ end
//!                                 │ listener   one thread per connection      requests, register
//!                                 │ destager   fdatasync, free, forget        destaging
//!                                 │ warden     dead clients, foreign writers, idleness
//!                                 │ watch      opens of managed files         watch
//!                                 │ hardener   what nobody synced (a journal) journal
//!                                 │ leader     who writes it, stopped or dead leader
//!                                 │ ahead      segments that will be used     ahead
//!                                 │ cache      the block cache                cache
//!                                 │ rebuild    a lost copy of a mirrored log  rebuild
//! ```
//!
//! Invariants: a guard is up, durably, before a file it protects may have a record. It is lowered only when
//! none of them may have one, so whoever comes next registers anew and raises it again. The daemon's death costs speed, never data: everything a successor needs is in the pool and in
//! the run-time memory.
//!
//! How it is built, from the bottom up. Each layer uses those below it:
//!
//! | layer | modules |
//! |---|---|
//! | tools | `process` and `foreign` (who runs, who has what open), `guard` (one guard on the disk), `net`, `sys`, `log` … |
//! | parts | `parts`, and the cache's `Zone`: each has one state, and the verbs that change it |
//! | the daemon | `state`: it owns the parts, and they do not know it |
//! | duties | `register`, `evict`, `forget`, `destaging`, `outside`, `guarding`, `roots`, `freeze`, `journal`, `closing` … |
//! | callers | threads (`warden`, `watch`, `pulse`, `rebuild` …), `requests`, and on top `start` and `serve` |
//!
//! Not handled here: what a record is and when it may go (`seawall-core`), what databases call (`preload`).

#![deny(unsafe_code)] // Allowed in one place: `sys`.
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

mod absent;
mod ages;
mod ahead;
mod aside;
mod asleep;
mod backing;
pub mod boot;
pub mod cache;
mod candidate;
mod closing;
pub mod control;
mod descriptors;
mod desk;
mod destaging;
mod directories;
mod doors;
mod errors;
mod evict;
pub mod foreign;
mod forget;
mod former;
pub mod freeze;
pub mod guard;
mod guarding;
mod hello;
pub mod journal;
pub mod kept;
mod leader;
pub mod leftover;
mod lend;
mod letting_go;
mod limits;
mod locate;
mod log;
pub mod net;
mod options;
mod outside;
mod parts;
pub mod place;
pub mod process;
mod pulse;
pub mod rebuild;
mod register;
mod requests;
mod roots;
mod serve;
mod signs;
pub mod spill;
mod start;
mod state;
pub mod status;
mod sys;
pub mod tablespaces;
pub mod takeover;
mod tree;
mod unborn;
mod unmanaged;
mod users;
mod warden;
mod watch;
pub mod watchdog;
pub mod workers;
mod write_out;

pub use errors::DaemonError;
pub use options::Options;
pub use parts::roots::RecoveryGoal;
pub use parts::watch::privileged as privileged_watch;
pub use roots::AddRoot;
pub use serve::serve;
pub use start::{Offline, Recovery, recover};
