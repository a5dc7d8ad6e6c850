//! The last half minute of each event's rate, as a line of eight heights.

use std::collections::{BTreeMap, VecDeque};

const KEPT: usize = 30;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rates by event.
#[derive(Default)]
pub struct History {
    rates: BTreeMap<String, VecDeque<f64>>,
}

impl History {
    /// Adds a rate and returns the last ones, oldest first.
    pub fn add(&mut self, event: &str, rate: f64) -> &VecDeque<f64> {
        let rates = self.rates.entry(event.into()).or_default();
        if rates.len() == KEPT {
            rates.pop_front();
        }
        rates.push_back(rate);
        rates
    }
}

/// The last rates that there is room for, in relation to the highest of them.
pub fn sparkline(rates: &VecDeque<f64>, room: usize) -> String {
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let height = |rate: &f64| {
        let step = if highest > 0.0 { (rate / highest * 7.0).round() as usize } else { 0 };
        HEIGHTS[step.min(7)]
    };
    rates.iter().skip(rates.len().saturating_sub(room)).map(height).collect()
}
