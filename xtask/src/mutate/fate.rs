//! What became of a mutant.

use serde::Serialize;

/// One mutant's end.
#[derive(Serialize)]
pub struct Fate {
    /// What was broken.
    pub mutant: String,
    /// Who noticed: the simulator or a test. Nobody: it survived.
    pub killed_by: Option<String>,
    /// Nobody needs what was broken, for this reason.
    pub needless: Option<&'static str>,
    /// What it said.
    pub because: String,
    /// How long that took.
    pub seconds: f64,
}

impl Fate {
    /// True if nobody noticed that something was broken that somebody needs.
    pub fn is_survival(&self) -> bool {
        self.killed_by.is_none() && self.needless.is_none()
    }

    /// Its line of the table.
    pub fn line(&self) -> String {
        let by = self.killed_by.as_deref();
        let by = by.unwrap_or(if self.needless.is_some() { "needless" } else { "SURVIVED" });
        let because = self.needless.unwrap_or(&self.because);
        format!("{:<46} {by:<12} {:>5.1} s  {because}", self.mutant, self.seconds)
    }
}
