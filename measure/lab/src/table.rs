//! Plain tables for the terminal: first column left, the others right.

/// Formats rows under a header.
pub fn format(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut text = String::from("  ");
        for (i, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[i].saturating_sub(cell.chars().count()));
            text += &if i == 0 { format!("{cell}{pad}") } else { format!("   {pad}{cell}") };
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut out = line(header.to_vec());
    out +=
        &line(widths.iter().map(|w| "─".repeat(*w)).collect::<Vec<_>>().iter().map(String::as_str).collect());
    rows.iter().for_each(|row| out += &line(row.iter().map(String::as_str).collect()));
    out
}

/// `12,345`
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Two or three significant digits: `0.98`, `12.3`, `456`.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(thousands(1234567.0), "1,234,567");
        assert_eq!(thousands(12.0), "12");
        assert_eq!(short(0.984), "0.98");
        assert_eq!(short(12.34), "12.3");
        assert_eq!(short(45678.0), "45,678");
    }

    #[test]
    fn columns_line_up() {
        let text = format(&["a", "tps"], &[vec!["long name".into(), "1".into()]]);
        assert_eq!(text, "  a           tps\n  ─────────   ───\n  long name     1\n");
    }
}
