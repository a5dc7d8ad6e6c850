//! How the block cache's choice was made: the published algorithms beside ours ([`algorithm`]), the traces they are compared
//! on ([`trace`]), and the comparison ([`simulate`]). Nothing here ships; `docs/internals/CACHE.md` shows what came of it.
//!
//! `cargo run --release -p seawall-cache-study --bin cache-hit` measures what a hit costs.

#![forbid(unsafe_code)]

pub mod algorithm;
pub mod simulate;
pub mod trace;
