//! How fast a database comes back after a crash, and how much redo it may have for that.

use std::time::Duration;

use seawall_daemon::RecoveryGoal;
use seawall_wire::shm::Preset;
use serde::{Deserialize, Serialize};

/// The time of a crash recovery: a part that is always the same, and one for each byte of redo.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Start, fsync of the data directory, the checkpoint at the end, seconds.
    pub fixed_s: f64,
    /// Redo that is replayed in a second, bytes.
    pub replayed: f64,
    /// Whether it comes from a recovery of this data: else it is what slow machines were seen to do.
    pub measured: bool,
}

impl Speed {
    /// Before anything was measured: redo of short changes without page images, each of another page.
    pub fn assumed(preset: Preset) -> Self {
        match preset {
            Preset::Mariadb => Self { fixed_s: 0.5, replayed: f64::from(24 << 20), measured: false },
            _ => Self { fixed_s: 0.2, replayed: f64::from(6 << 20), measured: false },
        }
    }

    /// What a recovery of so much redo in this time shows. One measurement cannot separate the fixed part: that stays
    /// as it is assumed to be, and never takes more than half.
    pub fn shown(preset: Preset, redo: u64, took: Duration) -> Self {
        let took = took.as_secs_f64();
        let fixed_s = Self::assumed(preset).fixed_s.min(took / 2.0);
        Self { fixed_s, replayed: redo as f64 / (took - fixed_s).max(0.001), measured: true }
    }

    /// The recovery of so much redo, seconds.
    pub fn seconds(&self, redo: f64) -> f64 {
        self.fixed_s + redo / self.replayed
    }

    /// The redo that is replayed within the goal, bytes; 0 if the fixed part alone takes longer.
    pub fn redo_within(&self, goal: Duration) -> u64 {
        ((goal.as_secs_f64() - self.fixed_s).max(0.0) * self.replayed) as u64
    }

    /// For whoever watches.
    pub fn goal(&self, goal: Duration) -> RecoveryGoal {
        RecoveryGoal {
            goal_ms: goal.as_millis() as u64,
            fixed_ms: (self.fixed_s * 1e3) as u64,
            replayed: self.replayed.max(1.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redo_and_time_are_each_others_inverse() {
        let speed = Speed { fixed_s: 0.2, replayed: 1e8, measured: true };
        let redo = speed.redo_within(Duration::from_secs(1));
        assert_eq!(redo, 80_000_000);
        assert!((speed.seconds(redo as f64) - 1.0).abs() < 1e-9);
        assert_eq!(speed.redo_within(Duration::from_millis(100)), 0);
    }

    #[test]
    fn a_recovery_shows_how_fast_it_was() {
        let shown = Speed::shown(Preset::Postgres, 100 << 20, Duration::from_millis(1200));
        assert!((shown.replayed - f64::from(100 << 20)).abs() < 1.0, "{shown:?}");
        let short = Speed::shown(Preset::Postgres, 1 << 20, Duration::from_millis(100));
        assert!(short.fixed_s <= 0.05 && short.replayed > 0.0, "{short:?}");
    }
}
