//! What a crash would cost now: the redo that would be replayed, and how long that takes.
//!
//! The redo is the database's own count, from its last checkpoint on. The time is known only where the database runs with
//! a goal (`seawall run --recovery`): the goal brings how fast this data was replayed.

use seawall_daemon::RecoveryGoal;
use seawall_daemon::status::Status;
use serde::{Deserialize, Serialize};

use crate::model::{Reading, Snapshot};

/// The kind of a goal's reading.
pub(crate) const GOAL: &str = "seawall recovery goal";
/// The kind and the gauge of PostgreSQL's redo.
pub(crate) const REDO: (&str, &str) = ("recovery", "redo_bytes");

/// What a crash would cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// Redo since the last checkpoint, bytes.
    pub redo: f64,
    /// The recovery of it, seconds, and what it may take.
    pub time: Option<Timed>,
}

/// A time beside its goal, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// As estimated.
    pub seconds: f64,
    /// What was asked for.
    pub goal: f64,
}

impl Exposure {
    /// At a snapshot; `None` if the database does not say how much redo it has.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let goal = snapshot.one(GOAL).and_then(|reading| {
            let gauge = |name: &str| reading.gauges.get(name).map(|value| *value as u64);
            Some(RecoveryGoal {
                goal_ms: gauge("goal_ms")?,
                fixed_ms: gauge("fixed_ms")?,
                replayed: gauge("replayed")?,
            })
        });
        Some(Self::by(redo(snapshot)?, goal))
    }

    /// Of so much redo.
    pub fn by(redo: f64, goal: Option<RecoveryGoal>) -> Self {
        let timed = |goal: RecoveryGoal| Timed {
            seconds: goal.fixed_ms as f64 / 1e3 + redo / goal.replayed.max(1) as f64,
            goal: goal.goal_ms as f64 / 1e3,
        };
        Self { redo, time: goal.map(timed) }
    }

    /// It would take longer than was asked for.
    pub fn is_too_long(&self) -> bool {
        self.time.is_some_and(|time| time.seconds > time.goal)
    }
}

/// The redo that a crash would leave, bytes.
pub fn redo(snapshot: &Snapshot) -> Option<f64> {
    let gauge = |kind: &str, name: &str| snapshot.one(kind)?.gauges.get(name).copied();
    gauge(REDO.0, REDO.1).or_else(|| gauge("mariadb status", "Innodb_checkpoint_age"))
}

/// The goal that a database of this pool runs with: the shortest, if there are several.
pub fn goal(status: &Status) -> Option<RecoveryGoal> {
    status.roots.iter().filter_map(|root| root.recovery).min_by_key(|goal| goal.goal_ms)
}

pub(crate) fn capture(status: &Status, snapshot: &mut Snapshot) {
    let reading = goal(status).map(|goal| {
        Reading::new(GOAL, "", "")
            .gauge("goal_ms", goal.goal_ms as f64)
            .gauge("fixed_ms", goal.fixed_ms as f64)
            .gauge("replayed", goal.replayed as f64)
    });
    snapshot.add(GOAL, true, reading.into_iter().collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_takes_what_its_redo_takes() {
        let goal = RecoveryGoal { goal_ms: 1000, fixed_ms: 200, replayed: 10 << 20 };
        let mut snapshot = Snapshot::default();
        assert_eq!(Exposure::of(&snapshot), None, "nobody says how much redo there is");
        snapshot.add(
            "mariadb status",
            true,
            vec![Reading::new("mariadb status", "", "").gauge("Innodb_checkpoint_age", f64::from(20 << 20))],
        );
        assert_eq!(Exposure::of(&snapshot).map(|found| found.time), Some(None), "no goal");
        let found = Exposure::by(f64::from(20 << 20), Some(goal));
        assert!(
            found.is_too_long() && found.time.is_some_and(|time| (time.seconds - 2.2).abs() < 1e-9),
            "{found:?}"
        );
        assert!(!Exposure::by(1e6, Some(goal)).is_too_long());
    }
}
