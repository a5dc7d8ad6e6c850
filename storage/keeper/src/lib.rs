//! Copies of logs in the memory of other hosts.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod answer;
pub mod copy;
pub mod descriptor;
mod door;
pub mod guests;
pub mod holder;
pub mod keeper;
pub mod log;
pub mod meta;
pub mod peer;
pub mod plan;
pub mod quorum;
pub mod server;
pub mod spool;
pub mod stream;
pub mod survey;
pub mod tls;
pub mod transport;
pub mod turn;
pub mod uuid;
pub mod wire;
pub mod writer;
