//! A finding, and what every rule weighs it by: the share that is worth one, what it can bring, how sure it is.

pub use seawall_page::Sure;
use seawall_page::{Note, Weight};
use serde::Serialize;

use crate::period::Period;

/// What kind of finding it is, in ADDM's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Something that costs time, with something to do about it.
    Problem,
    /// Something that comes with a problem.
    Symptom,
    /// Good to know.
    Information,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// In one line.
    pub title: String,
    /// Percent of DB time.
    pub share: Option<f64>,
    /// What was seen.
    pub because: String,
    /// What to do.
    pub action: String,
    /// What that can bring at most: factor on throughput.
    pub benefit: Option<f64>,
    /// How sure.
    pub sure: Sure,
    /// Why so sure, or not.
    pub sure_because: String,
}

/// The smallest share of DB time worth a finding, percent.
pub const WORTH: f64 = 5.0;

/// Throughput's factor if `share` percent of the time vanished, for clients that wait for each answer (Amdahl).
pub fn factor_without(share: f64) -> f64 {
    100.0 / (100.0 - share.clamp(0.0, 99.0))
}

/// The same, where CPUs end it earlier: more throughput takes more CPU time, as far as there is any.
pub fn benefit(period: &Period, share: f64) -> Option<f64> {
    let amdahl = factor_without(share);
    let headroom = || {
        let own = period.db_cpu_s.filter(|s| *s > 0.0)? / period.elapsed_s;
        let of = |state: &str| period.machine.cpu.get(state).copied().unwrap_or(0.0);
        let free = period.machine.cpus * (of("idle") + of("iowait")) / 100.0;
        Some((free + own) / own)
    };
    Some(headroom().map_or(amdahl, |most| amdahl.min(most)))
}

/// How sure a share is: counted, or sampled often enough.
pub fn sure_of(period: &Period, name: &str) -> (Sure, String) {
    let event = period.event(name);
    match event.map(|e| (e.source.as_str(), e.seen)) {
        Some(("counted", _)) => (Sure::High, "each wait was timed".into()),
        Some((_, seen)) if period.samples >= 300 && seen >= 30 => {
            (Sure::High, format!("{} samples", period.samples))
        }
        Some((_, seen)) if seen >= 10 => (Sure::Medium, format!("{} samples", period.samples)),
        _ => (Sure::Low, format!("{} samples, and few sessions seen in them", period.samples)),
    }
}

impl Finding {
    /// As a note of a report.
    pub fn note(&self) -> Note {
        let share = self.share.map_or_else(String::new, |share| format!(" ({share:.1} % of DB time)"));
        let weight = match (self.kind, self.share) {
            (Kind::Problem, Some(share)) if share >= 25.0 => Weight::Bad,
            (Kind::Problem | Kind::Symptom, _) => Weight::Warn,
            (Kind::Information, _) => Weight::Info,
        };
        let mut lines = vec![self.because.clone()];
        if !self.action.is_empty() {
            lines.push(format!("What to do: {}", self.action));
        }
        if let Some(factor) = self.benefit {
            let gain = (factor - 1.0) * 100.0;
            lines.push(if gain >= 1.0 {
                format!("Benefit to expect: at most {gain:.0} % more throughput (its share of the time, and the CPU time left).")
            } else {
                "Benefit to expect: none that would show while the machine's CPUs are as busy as they were.".into()
            });
        }
        lines.push(self.sure.line(&self.sure_because));
        Note {
            weight,
            title: format!("{}{share}", self.title),
            lines: lines.into_iter().filter(|l| !l.is_empty()).collect(),
        }
    }
}
