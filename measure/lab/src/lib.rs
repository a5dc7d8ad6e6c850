//! The lab: real, *unmodified* databases with and without Seawall, side by side.
//!
//! The demo and the benchmarks run the same programs on several sides (the bare file system, Seawall, an
//! unsafe upper bound) in one run, interleaved, and print medians with their spread and the medium's honest
//! name beside every figure. [`launch`] is what differs between sides, and the only thing that does.
//! [`crash`] kills databases at full load and proves from an outside ledger what is left; the tests use it
//! too, which is why this is a library.

#![allow(missing_docs, reason = "a library for its own tests only: what a name does not say has a comment")]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln, out, outln)]
extern crate seawall_media;

pub mod bench;
pub mod case;
pub mod cli;
pub mod compare;
pub mod crash;
pub mod demo;
pub mod endure;
pub mod etcd;
pub mod html;
pub mod identity;
pub mod installed;
pub mod interval;
pub mod keepers;
pub mod lab;
pub mod launch;
pub mod loop_disk;
pub mod machine;
pub mod mariadb;
pub mod mount;
pub mod net;
pub mod notebook;
pub mod pg;
pub mod pool;
pub mod process;
pub mod progress;
pub mod redis;
pub mod side;
pub mod slow_disk;
pub mod spread;
pub mod sqlite;
pub mod store;
pub mod table;
pub mod tools;
pub mod trial;
pub mod verdict;
pub mod workdir;
