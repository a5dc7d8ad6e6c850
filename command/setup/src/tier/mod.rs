//! Memory of several kinds: DRAM, and slower memory behind it (CXL, persistent memory as memory).
//!
//! [`nodes`] says what there is and what the kernel does with it, [`setup`] has the kernel move pages between kinds,
//! [`policy`] starts a server on the right nodes, [`placed`] proves where its memory is, and [`hot`] measures how much of it
//! is in use: on any machine, which says how much memory would do.

mod damon;
pub mod hot;
pub mod nodes;
pub mod placed;
pub mod policy;
pub mod server;
mod setup;
#[cfg(test)]
mod tests;

pub use setup::plan;
