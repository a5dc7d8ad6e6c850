//! The simulator: production code between a simulated medium and simulated disks, under schedules that a
//! seed decides, with a power cut at every persistence point.
//!
//! ```text
//!   schedule (run) ── logical threads (fiber): clients (client, namer), guests' disks (guest), the daemon (daemon)
//!                          │  Engine, Disk, Destager, reap, takeover, recover: unmodified
//!                          ▼
//!   observer (world) ── seawall-media's verbs, shared words, real syncs
//!        │                        │
//!        │                  medium: what survives (pending)    files: what got to disk (disk, tree)
//!        ▼                        ▼
//!   at every point (explore): a crash image is made, recovered, and judged (model, platter, ledger, space)
//! ```
//!
//! Run-time memory vanishes at a power cut and survives kills. What the checkers do not verify stands in
//! their own modules; of Seawall's parts the daemon, the preload and the guards are not simulated.

mod area;
mod block;
mod change;
mod client;
mod counts;
mod daemon;
mod damage;
mod disk;
mod explore;
pub mod fiber;
mod folder;
mod folders;
mod guest;
mod held;
mod image;
mod ledger;
mod metadata;
mod model;
mod namer;
mod names;
mod pending;
mod plan;
mod platter;
mod rebuild;
mod restart;
mod restored;
mod rng;
mod run;
mod sectors;
mod space;
mod threads;
mod tree;
mod watermark;
mod world;

pub use change::Change;
pub use counts::Counts;
pub use disk::Disk;
pub use model::Model;
pub use pending::{Pending, Survival};
pub use plan::{Mutant, Plan, Planted, Site};
pub use platter::Platter;
pub use rng::Rng;
pub use run::{Outcome, run};
