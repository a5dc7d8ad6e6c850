//! The verdicts on a comparison.

use seawall_page::{Note, Weight};
use serde::Serialize;

/// What a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Did it get faster?
    Throughput,
    /// The two sides are not comparable.
    NotComparable,
    /// Did both do the same work?
    EqualWork,
    /// Were there more of them?
    Sessions,
    /// The limit of both.
    Bottleneck,
    /// Something got faster, and what that can have brought.
    Faster,
    /// Something got slower.
    Slower,
    /// CPUs.
    Processor,
    /// A second-level cache.
    Cache,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// About what.
    pub what: What,
    /// How much it matters.
    #[serde(skip)]
    pub weight: Weight,
    /// In one line.
    pub title: String,
    /// The figures behind it.
    pub because: String,
}

impl Verdict {
    /// As a note of a report.
    pub fn note(&self) -> Note {
        let lines = if self.because.is_empty() { Vec::new() } else { vec![self.because.clone()] };
        Note { weight: self.weight, title: self.title.clone(), lines }
    }
}
