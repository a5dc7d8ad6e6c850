//! The command line's search for a database, with as much around it as it looks at.

#[path = "../../../../command/cli/src/run/behind.rs"]
mod behind;
#[path = "../../../../command/cli/src/run/database/mod.rs"]
pub mod database;

/// In its place.
pub mod program {
    /// The program to run.
    pub struct Program {
        /// As it was called.
        pub name: String,
    }
}
