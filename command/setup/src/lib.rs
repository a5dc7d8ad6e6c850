//! Sets up the machine below a database: persistent memory and disks ([`provision`]), several disks as one ([`layout`]),
//! memory of several kinds ([`tier`]).
//!
//! ```text
//! what was asked for ─ the machine as it is ─▶ plan ─▶ shown ─▶ carried out, step by step, each noted before it is begun
//!                                                └──▶ undone: the steps that were begun, the last one first
//! ```
//!
//! Inputs: the machine as [`seawall_doctor`] reads it, and the tools that the distribution has (ndctl, cxl, daxctl, mdadm,
//! btrfs, sfdisk, mkfs, systemd, udev). Outputs: a [`Plan`], and a machine that is as the plan says.
//!
//! What must hold: nothing that holds data is written to; nothing is changed that the plan did not show; what a plan made
//! can be undone, also after a crash in its middle. `seawall doctor` judges what is below.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

mod disk;
mod emptied;
mod error;
mod file;
mod host;
mod kernel;
pub mod layout;
mod mkfs;
mod mounted;
mod mounts;
mod owner;
pub mod plan;
pub mod provision;
mod shell;
#[cfg(test)]
mod testing;
pub mod tier;
mod unit;
mod uuid;

pub use error::Error;
pub use host::{Host, This};
pub use owner::Owner;
pub use plan::Plan;
