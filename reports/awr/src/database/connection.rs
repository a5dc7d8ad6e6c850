//! What every product's connection can do.

use anyhow::Result;

use crate::model::{Sample, Snapshot, Target};

/// A connection to a database.
pub trait Database: Send {
    /// Which one it is.
    ///
    /// # Errors
    /// If it does not answer.
    fn target(&mut self) -> Result<Target>;

    /// Adds its readings.
    ///
    /// # Errors
    /// If it does not answer. A refusal to show something becomes a note, no error.
    fn capture(&mut self, snapshot: &mut Snapshot) -> Result<()>;

    /// What its sessions are doing now, if it can say.
    ///
    /// # Errors
    /// If it does not answer.
    fn sample(&mut self) -> Result<Vec<Sample>> {
        Ok(Vec::new())
    }

    /// Whether it can say at all: a look that cannot see anything is no look at an idle database.
    fn can_sample(&self) -> bool {
        true
    }
}
