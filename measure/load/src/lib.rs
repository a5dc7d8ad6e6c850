//! Loads that check their own data.
//!
//! Everything here is an *ordinary* program: it makes plain libc calls (which `LD_PRELOAD` can
//! interpose), talks to the distribution's own databases, and knows nothing of Seawall.
//! The same binary therefore runs on the bare file system, under `seawall run`, and under
//! `eatmydata`, and the three can be compared.
//!
//! Two kinds of evidence come out, both serialisable:
//! - **speed**: a latency distribution per run ([`latency::Summary`]);
//! - **truth**: what was acknowledged. For raw writes every block says which one it is
//!   ([`block`]); for databases each acknowledged commit is written to a ledger kept outside the
//!   database ([`ledger`], [`tally`]), and the `check-*` commands compare the two afterwards.
//!
//! The larger loads, [`slob`] and [`tprocc`], have the same shape: `setup(target, …)` loads and begins a ledger,
//! `run(target, …)` returns an `Outcome`, `check(target, …)` a `CheckReport`. A [`target`] is a database;
//! [`pace`] says when operations begin (open or closed loop); [`failure`] why one did not happen.

#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod block;
pub mod counters;
pub mod etcd;
pub mod failure;
pub mod files;
pub mod installed;
pub mod latency;
pub mod ledger;
pub mod ledger_load;
pub mod mariadb;
pub mod pace;
pub mod pg;
pub mod progress;
pub mod random;
pub mod redis;
pub mod slob;
pub mod sqlite;
pub mod store;
pub mod stream;
pub mod sys;
pub mod tally;
pub mod target;
mod threads;
pub mod tprocc;
pub mod write;
