//! How full the log was when rounds of destaging began that had something to do. Only rounds free space, so these are the
//! peaks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seawall_core::Engine;
use seawall_core::destage::count_free;

/// A step of how full the log was, in percent.
const STEP: usize = 5;

/// How often it was in each step.
#[derive(Default)]
pub(crate) struct Fill([AtomicU64; 100 / STEP]);

impl Fill {
    /// How full the log is: the step that is counted.
    pub fn step(&self, engine: &Engine) -> usize {
        let (all, free) = (engine.backed().max(1), count_free(engine));
        let percent = (all.saturating_sub(free) as usize * 100) / all as usize;
        (percent / STEP).min(self.0.len() - 1)
    }

    /// A round began in this step.
    pub fn count(&self, step: usize) {
        self.0[step].fetch_add(1, Relaxed);
    }

    /// Percent, and how often it was at least that and less than the next; none that never happened.
    pub fn counted(&self) -> Vec<(u32, u64)> {
        let steps = self.0.iter().enumerate().map(|(i, n)| ((i * STEP) as u32, n.load(Relaxed)));
        steps.filter(|(_, n)| *n > 0).collect()
    }
}
