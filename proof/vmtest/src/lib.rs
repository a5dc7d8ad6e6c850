//! Databases in virtual machines with real devices, whose power is cut: guests made from the distribution's packages, what
//! they tell, and the chains of boots that the machine test (`seawall-vmtest`) consists of.
//!
//! ```text
//! packages ─ initrd, rootfs ─ chain: prepare ─ (boot ─ check ─ load ─ cut) × n ─ finish ─ report
//! ```
//!
//! Or three machines on a network have the log in their memory: the one with the database is cut, the disk with
//! the data is plugged into the next one, and that one takes the log over.
//!
//! Or a guest tries what block devices and file systems are usually tried with, on a disk that `seawall disk` serves
//! ([`cases`]).
//!
//! Or the machine below a database is set up in a guest that has what few machines have ([`below`]).
//!
//! The campaign of power cuts boots such a guest too, on a disk that a host serves, and cuts the host (`seawall-powercut`,
//! `--front disk`).

pub mod alone;
mod backports;
pub mod below;
pub mod boot;
pub mod cases;
pub mod chain;
mod cpio;
pub mod guest;
pub mod hardware;
pub mod hosts;
mod initrd;
pub mod ktls;
pub mod machine;
mod monitor;
mod network;
mod packages;
pub mod parts;
mod qemu;
pub mod report;
mod rootfs;
mod socket;
pub mod tool;
