//! How long a period was, whatever the wall clock did.

use crate::delta::Deltas;
use crate::model::{Instant, Snapshot};

/// A wall clock that moved this much more or less than time did, in seconds, has jumped.
const JUMP_S: f64 = 2.0;

/// Why there is no period.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum PeriodError {
    #[error(
        "a period needs two different snapshots of the same database, the earlier one first (`seawall snaps`)"
    )]
    TooFew,
    #[error(
        "between the snapshots {from} and {to} the machine was restarted and its wall clock went back: how much \
         time passed is not known; choose a period before or after that"
    )]
    WentBack { from: i64, to: i64 },
}

/// Seconds between two instants: by the clock that does not jump, except across a restart of the machine.
pub fn passed(a: &Instant, b: &Instant) -> f64 {
    if a.boot_id == b.boot_id { b.up_s - a.up_s } else { (b.wall_ms - a.wall_ms) as f64 / 1000.0 }
}

/// From each snapshot to the next, where no counter began again: the later one, what was counted, and the seconds that passed.
pub fn intervals(snapshots: &[Snapshot]) -> impl Iterator<Item = (&Snapshot, Deltas, f64)> {
    snapshots.windows(2).filter_map(|pair| {
        let (deltas, passed) = (Deltas::over(pair), pair[1].at.up_s - pair[0].at.up_s);
        let is_whole = deltas.warnings.is_empty() && pair[0].at.boot_id == pair[1].at.boot_id && passed > 0.0;
        is_whole.then_some((&pair[1], deltas, passed))
    })
}

/// Seconds from the first to the last snapshot, and remarks about the clock.
pub fn elapsed(snapshots: &[Snapshot]) -> Result<(f64, Vec<String>), PeriodError> {
    let (mut sum, mut jumps) = (0.0, Vec::new());
    for pair in snapshots.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let wall = (b.at.wall_ms - a.at.wall_ms) as f64 / 1000.0;
        let same_boot = a.at.boot_id == b.at.boot_id;
        let passed = passed(&a.at, &b.at);
        if passed <= 0.0 {
            return Err(PeriodError::WentBack { from: a.id, to: b.id });
        }
        if same_boot && (wall - passed).abs() > JUMP_S {
            jumps.push(format!(
                "the wall clock jumped by {:+.0} s between the snapshots {} and {}; durations are of a clock \
                 that did not jump",
                wall - passed,
                a.id,
                b.id
            ));
        }
        if !same_boot {
            jumps.push(format!("the machine was restarted between the snapshots {} and {}", a.id, b.id));
        }
        sum += passed;
    }
    Ok((sum, jumps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: i64, wall_s: i64, up_s: f64, boot: &str) -> Snapshot {
        let at = Instant { wall_ms: wall_s * 1000, up_s, boot_id: boot.into() };
        Snapshot { id, at, ..Snapshot::default() }
    }

    #[test]
    fn a_jump_of_the_wall_clock_changes_nothing_but_is_told() {
        for wall in [-3000, 3660] {
            let (elapsed, said) =
                elapsed(&[at(1, 0, 10.0, "a"), at(2, wall, 70.0, "a")]).expect("a duration");
            assert_eq!(elapsed, 60.0);
            assert!(said[0].contains("jumped"), "{said:?}");
        }
    }

    #[test]
    fn across_a_restart_the_wall_clock_counts_if_it_went_forward() {
        let (passed, said) = elapsed(&[at(1, 0, 999.0, "a"), at(2, 60, 5.0, "b")]).expect("a duration");
        assert_eq!(passed, 60.0);
        assert!(said[0].contains("restarted"));
        let wrong = elapsed(&[at(1, 100, 999.0, "a"), at(2, 60, 5.0, "b")]);
        assert_eq!(wrong, Err(PeriodError::WentBack { from: 1, to: 2 }));
    }
}
