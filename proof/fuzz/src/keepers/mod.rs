//! What keepers and writers send each other: a keeper that hears anything, and a writer that is answered anything.

pub mod answers;
mod build;
pub mod keeper;
