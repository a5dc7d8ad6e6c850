//! A document as text.

use std::fmt::Write;

use crate::document::{Block, Document, Note, Section, Table, Weight, heading};

/// How wide a column of long words gets.
const LONG: usize = 60;

/// The document for a terminal.
pub fn text(document: &Document) -> String {
    let mut out = format!("{}\n{}\n\n", document.title, "=".repeat(document.title.chars().count()));
    let medium = document.medium.iter().map(|m| ("log's medium".to_owned(), m.clone()));
    facts(&mut out, &medium.chain(document.facts.iter().cloned()).collect::<Vec<_>>());
    for section in &document.sections {
        write_section(&mut out, section);
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    let shown: Vec<&Block> = section.blocks.iter().filter(|b| !matches!(b, Block::Chart(_))).collect();
    if shown.is_empty() {
        return;
    }
    let _ = write!(out, "\n{}\n{}\n", section.title, "-".repeat(section.title.chars().count()));
    for block in shown {
        match block {
            Block::Words(words) => *out += &wrapped(words, ""),
            Block::Note(note) => write_note(out, note),
            Block::Commands(lines) => lines.iter().for_each(|line| *out += &format!("     {line}\n")),
            Block::Facts(pairs) => facts(out, pairs),
            Block::Table(table) => write_table(out, table),
            Block::Chart(_) => {}
        }
    }
}

fn write_note(out: &mut String, note: &Note) {
    let mark = match note.weight {
        Weight::Bad => "!!",
        Weight::Warn => "!",
        Weight::Info => "i",
        Weight::Good => "+",
    };
    *out += &wrapped(&format!("{mark:<2} {}", note.title), "   ");
    note.lines.iter().for_each(|line| *out += &wrapped(&format!("   {line}"), "   "));
}

fn facts(out: &mut String, pairs: &[(String, String)]) {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in pairs {
        let _ = writeln!(out, "{name:<width$}  {value}");
    }
}

/// Lines of at most 110 characters.
fn wrapped(words: &str, indent: &str) -> String {
    let lead: String = words.chars().take_while(|c| *c == ' ').collect();
    let (mut out, mut line) = (String::new(), lead);
    for word in words.split_whitespace() {
        let empty = line.trim().is_empty();
        if !empty && line.chars().count() + word.chars().count() >= 110 {
            out += line.trim_end();
            out.push('\n');
            line = indent.to_owned();
        } else if !empty {
            line.push(' ');
        }
        line += word;
    }
    out + &line + "\n"
}

fn write_table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = writeln!(out, "\n{}", table.caption);
    }
    let cell = |column: usize, text: &str| {
        let long = table.head[column].starts_with("<<") && text.chars().count() > LONG;
        if long { text.chars().take(LONG - 1).chain(['…']).collect() } else { text.to_owned() }
    };
    let head: Vec<_> = table.head.iter().map(|h| heading(h).to_owned()).collect();
    let rows = table.rows.iter().map(|row| row.iter().enumerate().map(|(i, c)| cell(i, c)).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |i: usize| all.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..table.head.len()).map(width).collect();
    for row in &all {
        let cells = row.iter().zip(&widths).zip(&table.head).enumerate().map(|(i, ((cell, width), head))| {
            if i == 0 || head.starts_with('<') {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
