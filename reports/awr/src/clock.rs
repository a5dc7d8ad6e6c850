//! Three clocks: the wall's, this boot's, this process's CPU time.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::model::Instant;

/// Now.
pub fn now() -> Instant {
    Instant { wall_ms: wall_ms(), up_s: seconds(clock_gettime(ClockId::Boottime)), boot_id: boot_id() }
}

/// The wall clock, milliseconds since 1970.
pub fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

/// CPU time of this process, microseconds.
pub fn cpu_us() -> u64 {
    (seconds(clock_gettime(ClockId::ProcessCPUTime)) * 1e6) as u64
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// A wall-clock time as `2026-11-21 15:04:05`, in UTC.
pub fn utc(wall_ms: i64) -> String {
    let (days, second) = (wall_ms.div_euclid(86_400_000), wall_ms.rem_euclid(86_400_000) / 1000);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a day counted from 1970-01-01 (Gregorian; years begin in March on the way).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_795_273_445_999), "2026-11-21 15:04:05");
    }

    #[test]
    fn this_boot_has_a_name_and_an_age() {
        let now = now();
        assert!(now.up_s > 0.0 && !now.boot_id.is_empty() && now.wall_ms > 0);
    }
}
