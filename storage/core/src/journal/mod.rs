//! The journal: how an image in memory becomes durable on a block device, for many processes at once.
//!
//! ```text
//!  whoever needs durability ──▶ [lock] ── leads ──▶ capture ──▶ one device write ──▶ commit ──▶ wake
//!                                  │ taken
//!                                  └──▶ sleeps; the leader's *next* capture covers it, and one who slept leads that
//! ```
//!
//! Inputs: ranges of tables that were changed ([`Journal::change`]); everybody's records ([`Journal::harden`]).
//! Output: batches on the device. Invariants:
//!
//! * After a crash the image read from the journal is one that persistent memory could have left: a batch holds
//!   no store without what had been fenced before it. For records see `capture`; tables are written by
//!   whoever changes them, with the lock held.
//! * One leader's device write is under way at a time, and those of leaders that were replaced while they stood still. A
//!   batch counts when [`Desk::last`](seawall_wire::desk::Desk::last) names it: a compare-and-swap after the device's success, which fails for whoever was
//!   replaced. A leader that dies before leaves nothing: its successor begins with another number.
//! * An error of the device is final: nothing is retried into success.
//!
//! A sync of many at once, in the order in which it happens, each by its module:
//!
//! | | |
//! |---|---|
//! | `harden` | draws a ticket, and waits: for a capture that serves it, or for the lead |
//! | `company`, `pace` | whether it is worth waiting for others first |
//! | `lead` | who leads, in whose place, on which `seat` |
//! | `capture` | what is taken: up to the cut |
//! | `batch` | where it goes (`room`), the device write (`mirror`: one device or both), the commit |
//! | `direct` | the same of a log without a device: to whom it is sent, their answers, the commit |
//! | `send` | the same where only the daemon reaches those (`copies`) |
//! | `listen` | whether whoever waits for those listens for a while before it sleeps |
//! | `alone` | the same where too few of those are reached: nothing counts, and files leave the log |
//! | `lock` | who is woken |
//!
//! One write in flight is what makes it possible to tell a drive that lies (`seawall_media::block`). More would be of use
//! where a write takes much longer than what its sharers do in between; but there all of them meet in the next batch.
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
