//! How many bytes may be brought to a cache's disk.

const DAY: u64 = 24 * 60 * 60;

/// How many bytes may be brought to a disk: what flash is worn by. What is not used is saved up, for an hour at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    day: u64,
}

impl Budget {
    /// So many bytes in a day.
    pub fn per_day(day: u64) -> Self {
        Self { day }
    }

    /// Bytes in a day.
    pub fn day(self) -> u64 {
        self.day
    }

    /// What may be written now, of what could be at an earlier time (seconds; 0: never asked before).
    pub fn left(self, (left, at): (u64, u64), now: u64) -> u64 {
        let most = self.day / 24;
        if at == 0 {
            return most;
        }
        let earned = u128::from(now.saturating_sub(at)) * u128::from(self.day) / u128::from(DAY);
        left.saturating_add(u64::try_from(earned).unwrap_or(u64::MAX)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_earned_by_the_second_and_saved_up_for_an_hour() {
        let budget = Budget::per_day(DAY * 100);
        let hour = 3600 * 100;
        assert_eq!(budget.left((0, 0), 1000), hour, "at first an hour's");
        assert_eq!(budget.left((0, 1000), 1000), 0);
        assert_eq!(budget.left((50, 1000), 1003), 350);
        assert_eq!(budget.left((hour - 1, 1000), 1003), hour);
        assert_eq!(budget.left((7, 1000), 900), 7, "a clock that was set back earns nothing");
        assert_eq!(Budget::per_day(u64::MAX).left((5, 1), u64::MAX), u64::MAX / 24);
    }
}
