//! What every step of a turn works with.

use std::path::Path;

use super::record::Run;
use crate::case::Case;
use crate::lab::Lab;

/// Everything a turn needs.
pub struct Stage<'a> {
    pub lab: &'a Lab,
    /// PostgreSQL's programs; of another database, its program.
    pub bin: &'a Path,
    pub case: &'a Case,
    pub run: &'a Run,
}
