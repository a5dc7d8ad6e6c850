//! Times as people write them: `500ms`, `1s`, `5m`, `30d`.

use std::str::FromStr;
use std::time::Duration;

/// How long a recovery may take, less than a day: `1s`, `1.5`, `500ms`, `2m`.
///
/// # Errors
/// If it is no such time.
pub fn goal(text: &str) -> Result<Duration, String> {
    // Nobody wants to wait so long.
    const DAY: Duration = Duration::from_secs(86_400);
    let units = [("ms", 0.001), ("", 1.0), ("s", 1.0), ("m", 60.0), ("min", 60.0)];
    parts(text, &units)
        .and_then(|(number, unit)| Duration::try_from_secs_f64(number * unit).ok())
        .filter(|time| !time.is_zero() && *time < DAY)
        .ok_or_else(|| format!("not a time: {text:?}; write for example 1s, 500ms or 2m"))
}

/// How long something goes on, or is kept, in whole seconds: `90s`, `5m`, `1h`, `30d`.
///
/// # Errors
/// If it is no such time.
pub fn period(text: &str) -> Result<Duration, String> {
    // A thousand years: what is added to the present stays a time.
    const MOST: u64 = 1000 * 365 * 86_400;
    let units = [("", 1), ("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400)];
    parts(text, &units)
        .and_then(|(number, unit): (u64, u64)| number.checked_mul(unit))
        .filter(|seconds| (1..=MOST).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("not a duration: {text:?}; write for example 60s, 5m, 1h or 30d"))
}

/// The number that stands before the unit, and what the unit is worth; none if either is unknown.
fn parts<N: Copy + FromStr>(text: &str, units: &[(&str, N)]) -> Option<(N, N)> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (_, unit) = units.iter().find(|(name, _)| *name == &text[number.len()..])?;
    Some((number.parse().ok()?, *unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_units() {
        assert_eq!(goal("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(goal("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(goal("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "s", "1h", "0s", "-1s", "1e99s", "999999m"] {
            assert!(goal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn periods_have_units() {
        assert_eq!(period("90"), Ok(Duration::from_secs(90)));
        assert_eq!(period("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(period("30d"), Ok(Duration::from_secs(2_592_000)));
        for wrong in ["", "0s", "m", "-1s", "1x", "99999999999999999999d", "18446744073709551615", "365001d"]
        {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
