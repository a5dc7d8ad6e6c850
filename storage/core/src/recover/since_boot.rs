//! Whether a file was changed since the machine started.
//!
//! After a power cut nobody may have written a file before its replay: such writes would be rolled back. The file's
//! modification time shows it, as far as two boots' clocks can be compared.

use std::fs::File;

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: i128 = 1_000_000_000;

/// How far the clocks of two boots may differ though nobody set them. A boot takes its time from the hardware's clock,
/// which counts whole seconds (Linux, `drivers/rtc/class.c`, `rtc_hctosys`), so each is off by its own fraction of a
/// second. A machine that is up again within a second may therefore find writes of its last boot dated after the start
/// of this one. This tolerance also lets a stranger's write in a kernel's first second pass unseen; a database that
/// started so early, without recovery, is caught by its next writes.
const HARDWARE_CLOCK: i128 = SECOND;

/// Nanoseconds since the epoch.
#[derive(Clone, Copy)]
struct Times {
    /// The file's last change.
    changed: i128,
    /// The start of this boot.
    boot: i128,
    /// The time now, by the clock.
    now: i128,
}

/// Refuses a file that was changed since this boot began. A change in the future means that the clock is not right yet.
///
/// # Errors
/// What is wrong, as a sentence.
pub(super) fn unchanged(file: &File) -> Result<(), String> {
    let stat =
        rustix::fs::fstat(file).map_err(|e| format!("cannot read the time of its last change: {e}"))?;
    let now = nanoseconds(clock_gettime(ClockId::Realtime));
    let up = nanoseconds(clock_gettime(ClockId::Boottime));
    let changed = i128::from(stat.st_mtime as i64) * SECOND + i128::from(stat.st_mtime_nsec as i64);
    Times { changed, boot: now - up, now }.judge()
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * SECOND + i128::from(time.tv_nsec)
}

impl Times {
    fn judge(self) -> Result<(), String> {
        let Self { changed, boot, now } = self;
        if changed < boot + HARDWARE_CLOCK {
            return Ok(());
        }
        if changed > now + SECOND {
            return Err(format!(
                "it was changed {} s after the clock's present time, so the clock has been set back: set it \
                 right and recover again",
                (changed - now) / SECOND
            ));
        }
        Err(format!(
            "it was changed since the machine started ({} s after, or the clock ran ahead before), so replaying \
             would undo that",
            (changed - boot) / SECOND
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boot at noon, looked at a minute later; a file changed this many milliseconds after its start.
    fn changed_after(milliseconds: i128) -> Result<(), String> {
        let boot = 43_200 * SECOND;
        Times { changed: boot + milliseconds * SECOND / 1000, boot, now: boot + 60 * SECOND }.judge()
    }

    #[test]
    fn a_change_since_the_start_is_refused() {
        let refused = changed_after(1000).expect_err("changed");
        assert!(refused.contains("changed since the machine started (1 s after"), "{refused}");
        assert!(changed_after(60_000).is_err());
    }

    #[test]
    fn a_change_of_the_former_boot_is_not() {
        assert_eq!(changed_after(-1), Ok(()));
        assert_eq!(changed_after(-43_200_000), Ok(()));
    }

    /// Cut within a replay and up again at once, a machine refused the writes of its own replay: "1 s after".
    #[test]
    fn regression_what_the_hardware_clock_does_not_tell_is_not_held_against_a_file() {
        assert_eq!(changed_after(999), Ok(()));
    }

    #[test]
    fn a_change_in_the_future_is_a_clock_that_was_set_back() {
        let refused = changed_after(3_660_000).expect_err("of the future");
        assert!(refused.contains("3600 s after the clock's present time"), "{refused}");
        assert!(changed_after(60_900).is_err_and(|e| e.contains("since the machine started")));
    }
}
