//! Bytes in what people read.

use std::fmt;

/// So many bytes: `64 MiB`, `1.5 GiB`.
#[derive(Clone, Copy)]
pub(super) struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= 1024.0 && unit + 1 < units.len() {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        let digits = usize::from(value.fract() >= 0.05);
        write!(f, "{value:.digits$} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_and_a_digit_where_it_says_something() {
        let said = [0, 1023, 64 << 20, (3 << 30) / 2, 16 << 40].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(said, ["0 bytes", "1023 bytes", "64 MiB", "1.5 GiB", "16 TiB"]);
    }
}
