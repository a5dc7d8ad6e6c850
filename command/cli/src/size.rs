//! Sizes as people write them: `256M`, `1G`, `16777216`.

/// Parses a size. K, M, G and T are powers of 1024; a `B` or `iB` behind them changes nothing.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("not a size: {text:?}; write for example 256M or 1G")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("not a size: {text:?}; write for example 256M"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("too large: {text}"))
}

/// For people: `256 MiB`.
pub fn human(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() < 0.05 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse("256M"), Ok(256 << 20));
        assert_eq!(parse("1GiB"), Ok(1 << 30));
        assert_eq!(parse("4096"), Ok(4096));
        for wrong in ["", "M", "12X", "-1M", "99999999999T", "1.5G"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(human(256 << 20), "256 MiB");
        assert_eq!(human(1536), "1.5 KiB");
    }
}
