//! The journal: how an image in memory becomes durable on a block device, for many processes at once.
//!
//! ```text
//!  a thread that must sync  ──▶ [lock] ── leads ──▶ capture ──▶ one device write ──▶ commit ──▶ wake
//!                                  │ taken
//!                                  └──▶ sleeps; the leader's *next* capture covers it, and a sleeper leads that one
//! ```
//!
//! Inputs: ranges of tables that were changed ([`Journal::change`]); everybody's records ([`Journal::harden`]).
//! Output: batches on the device. Invariants:
//!
//! * After a crash the image read from the journal is one that persistent memory could have left: a batch holds no
//!   store without everything that had been fenced before it. For records see `capture`; tables are written by the
//!   thread that changes them, with the lock held.
//! * One leader's device write is under way at a time, plus those of leaders that were replaced while they were stopped.
//!   A batch counts when [`Desk::last`](seawall_wire::desk::Desk::last) names it: by a compare-and-swap after the
//!   device's success, which fails for a leader that was replaced. A leader that dies before that leaves nothing: its
//!   successor begins with another number.
//! * An error of the device is final: nothing is retried into success.
//!
//! A sync by many threads at once, in the order in which it happens, with the module for each step:
//!
//! | | |
//! |---|---|
//! | `harden` | draws a ticket, and waits: for a capture that serves it, or for the lead |
//! | `company`, `pace` | decides whether it is worth waiting for others first |
//! | `lead` | decides which thread leads, in whose place, on which `seat` |
//! | `capture` | decides what is taken: up to the cut |
//! | `batch` | chooses the place (`room`), makes the device write (`mirror`: one device or both), commits |
//! | `direct` | the same for a log without a device: sends it, takes the answers, commits |
//! | `send` | the same where only the daemon reaches the keepers (`copies`) |
//! | `listen` | decides whether a thread that waits for keepers listens for a while before it sleeps |
//! | `alone` | where too few keepers can be reached: nothing counts, and files leave the log |
//! | `lock` | decides which threads are woken |
//!
//! One write in flight is what makes it possible to detect a drive that lies (`seawall_media::block`). More would help
//! where a write takes much longer than the work of its sharers in between; but there all of them meet in the next
//! batch.
//!
//! Not handled here: what a sync does when the journal is full (`engine`).

mod alone;
mod batch;
mod capture;
#[cfg(feature = "std")]
pub mod clean;
mod company;
#[cfg(feature = "std")]
mod copies;
#[cfg(all(test, feature = "std"))]
mod desk_memory;
mod direct;
#[cfg(feature = "std")]
mod end;
mod handle;
mod harden;
mod lead;
mod leading;
mod listen;
mod lock;
mod mirror;
#[cfg(feature = "std")]
pub mod open;
mod pace;
mod parts;
#[cfg(feature = "std")]
pub mod rebuild;
mod room;
mod seat;
#[cfg(feature = "std")]
mod send;
mod tables;
mod way;
mod writer;

#[cfg(feature = "std")]
pub use alone::set_alone;
#[cfg(feature = "std")]
pub use copies::{Copies, Lent, Sending, Standing};
#[cfg(feature = "std")]
pub use direct::only_the_daemon_sends;
pub use handle::{GIVEN_UP, Journal};
pub use harden::Unhardened;
#[cfg(feature = "std")]
pub use seat::{bury_dead, replaced};
#[cfg(feature = "std")]
pub use way::Pair;
pub use way::{Lender, Way};
