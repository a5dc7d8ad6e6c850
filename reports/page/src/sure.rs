//! How sure a finding is, whoever found it.

use serde::Serialize;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sure {
    /// It was counted, or the kernel or the database says so, and the conclusion follows.
    High,
    /// It was sampled well, or there may be another explanation, or something that cannot be seen makes up for it.
    Medium,
    /// A hint.
    Low,
}

impl Sure {
    /// The line of a note that says it, and why.
    pub fn line(self, because: &str) -> String {
        let sure = match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        };
        format!("Confidence: {sure}; {because}.")
    }
}
