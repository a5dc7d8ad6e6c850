//! What a section is asked for, and what it gives back.

use super::fields::Fields;

/// What a section needs to know about the run.
#[derive(Clone, Copy)]
pub struct Scope {
    pub quick: bool,
    pub rounds: usize,
    /// The pool's size in bytes.
    pub pool: u64,
}

/// A section's rows and its table.
pub type SectionResult = (Vec<Fields>, String);
