//! Axes: round steps, and words for them.

/// Zero and three to five round steps below `top`.
pub fn ticks(top: f64) -> Vec<f64> {
    let magnitude = 10f64.powf((top / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|f| f * magnitude).into_iter().find(|s| top / s <= 5.0);
    let step = step.unwrap_or(top);
    (0..=5).map(|i| f64::from(i) * step).take_while(|tick| *tick <= top).collect()
}

/// Nanoseconds as people say them: `1 µs`, `250 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Three digits that count: `0.052`, `7.31`, `84.2`, `1,204`.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        0.0 => return "0".into(),
        size if size >= 99.95 => return thousands(value),
        size if size >= 9.995 => 1,
        size if size >= 0.995 => 2,
        size if size >= 0.0005 => 3,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number with commas.
pub fn thousands(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (i, digit) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 && text != "0" { format!("-{out}") } else { out }
}

/// Bytes in binary units.
pub fn bytes(value: f64) -> String {
    let mut rest = value;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if rest.abs() < 1024.0 {
            return format!("{} {unit}", digits(rest));
        }
        rest /= 1024.0;
    }
    format!("{} TiB", digits(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(14_800.0), [0.0, 5000.0, 10_000.0]);
        assert_eq!(ticks(60_000.0), [0.0, 20_000.0, 40_000.0, 60_000.0]);
        for top in [0.013, 1.0, 7.0, 99.0, 12_345.0, 1e7] {
            assert!((3..=6).contains(&ticks(top).len()), "{top}");
        }
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let cases = [
            (0.0, "0"),
            (0.05184, "0.052"),
            (7.309, "7.31"),
            (84.2, "84.2"),
            (99.97, "100"),
            (1e6, "1,000,000"),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!((digits(-7.309), digits(-1204.4)), ("-7.31".into(), "-1,204".into()));
        assert_eq!((time(511_490.0), bytes(1536.0)), ("511 µs".into(), "1.5 KiB".into()));
    }
}
