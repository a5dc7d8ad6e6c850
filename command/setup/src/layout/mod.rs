//! Several disks as one: striped and mirrored over failure groups, by md or btrfs.
//!
//! In: disks, and what must not fail together. Out: a [`Plan`](crate::Plan); later [`status`], which proves from the kernel's own view
//! that no failure group holds two copies, and changes: disks added, dropped, replaced while the database runs.
//!
//! The order of an array's members decides which of them hold copies of each other ([`groups`]): the plan chooses it, and
//! status checks it again, because others may have changed it.

mod add;
mod btrfs;
mod change;
mod draw;
mod drop;
mod figure;
mod groups;
mod guard;
mod made;
mod md;
mod notes;
mod power;
mod replace;
pub mod status;
#[cfg(test)]
mod tests;
mod wish;

pub use crate::mkfs::FileSystem;
pub use add::add;
pub use change::Change;
pub use draw::plan;
pub use drop::drop;
pub use guard::guard;
pub use notes::{Member, Notes, Set, all};
pub use power::{Power, rebalance};
pub use replace::replace;
pub use wish::{By, Redundancy, Wish};
