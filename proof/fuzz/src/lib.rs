//! Hostile input: a fuzzed pool, a fuzzed guest, fuzzed control messages, fuzzed configuration, fuzzed keepers and writers. An error or a correct result,
//! never a panic, never a write outside registered directories.
//!
//! In: bytes. They are not the hostile thing itself but a recipe for it, read by [`input`], so that checksums
//! can be right where the fuzzer wants to get behind them. Out: nothing, or a panic that says which promise
//! was broken. `make fuzz` drives the targets by coverage; `cargo test` replays the corpus.

mod daemon;
pub mod disk;
pub mod image;
pub mod input;
pub mod keepers;
pub mod messages;
mod scratch;
pub mod settings;

/// What takes an input.
pub type Target = fn(&[u8]);

/// A target by its name, which is also its corpus' directory.
pub const TARGETS: [(&str, Target); 6] = [
    ("answers", keepers::answers::target),
    ("disk", disk::target),
    ("image", image::target),
    ("keeper", keepers::keeper::target),
    ("messages", messages::target),
    ("settings", settings::target),
];
