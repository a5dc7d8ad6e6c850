//! A struct drawn 8 bytes wide. Long fields take one row, whose end the next row's offset tells.

use crate::fields::Struct;

/// Columns of one byte, its border included.
const BYTE: usize = 8;
const WIDTH: usize = 8 * BYTE - 1;

/// A field's share of a row.
struct Piece {
    from: usize,
    to: usize,
    label: String,
}

/// One line of the drawing.
struct Row {
    at: usize,
    pieces: Vec<Piece>,
}

/// The drawing.
pub fn render(of: &Struct) -> String {
    let rows = rows(of);
    let mut out = String::from("      ");
    (0..8).for_each(|i| out.push_str(&format!("{i:<BYTE$}")));
    out = out.trim_end().to_owned() + "\n";
    let mut above: Option<&Row> = None;
    for row in &rows {
        out.push_str(&border(above, Some(row)));
        out.push_str(&line(row));
        above = Some(row);
    }
    out.push_str(&border(above, None));
    out
}

fn rows(of: &Struct) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for field in of.fields() {
        let (mut at, end) = (field.at, field.at + field.bytes);
        while at < end {
            let whole = at.is_multiple_of(8).then(|| (end - at) / 8 * 8).filter(|n| *n > 8);
            let to = whole.map_or((at / 8 * 8 + 8).min(end), |n| at + n);
            let label = match at == field.at {
                true if field.bytes > 8 => format!("{}, {} bytes", field.name, field.bytes),
                true => field.name.to_owned(),
                false => "…".to_owned(),
            };
            let piece = Piece { from: at % 8, to: if whole.is_some() { 8 } else { (to - 1) % 8 + 1 }, label };
            match rows.last_mut().filter(|_| piece.from != 0) {
                Some(row) => row.pieces.push(piece),
                None => rows.push(Row { at, pieces: vec![piece] }),
            }
            at = to;
        }
    }
    rows
}

fn line(row: &Row) -> String {
    let mut out = format!("{:>4} │", row.at);
    for piece in &row.pieces {
        let width = (piece.to - piece.from) * BYTE - 1;
        let label: String = piece.label.chars().take(width).collect();
        out.push_str(&format!("{:<width$}│", format!(" {label}").chars().take(width).collect::<String>()));
    }
    out.push('\n');
    out
}

/// The line between two rows: a stroke up or down wherever a piece ends there.
fn border(above: Option<&Row>, below: Option<&Row>) -> String {
    let ends = |row: Option<&Row>, column: usize| {
        row.is_some_and(|row| row.pieces.iter().any(|p| p.to * BYTE == column + 1 && p.to < 8))
    };
    let mut out = String::from("     ");
    out.push(corner(above, below, ['┌', '├', '└']));
    for column in 0..WIDTH {
        out.push(match (ends(above, column), ends(below, column)) {
            (true, true) => '┼',
            (true, false) => '┴',
            (false, true) => '┬',
            (false, false) => '─',
        });
    }
    out.push(corner(above, below, ['┐', '┤', '┘']));
    out.push('\n');
    out
}

fn corner(above: Option<&Row>, below: Option<&Row>, [first, middle, last]: [char; 3]) -> char {
    match (above, below) {
        (None, _) => first,
        (_, None) => last,
        _ => middle,
    }
}
