//! A document as Markdown. Charts are left out: their figures stand in tables.

use std::fmt::Write;

use crate::document::{Block, Document, Note, Section, Table, Weight, heading};

/// The document as Markdown.
pub fn markdown(document: &Document) -> String {
    let mut out = format!("# {}\n", document.title);
    let medium = document.medium.iter().map(|m| ("Medium of the log".to_owned(), m.clone()));
    facts(&mut out, &medium.chain(document.facts.iter().cloned()).collect::<Vec<_>>());
    document
        .sections
        .iter()
        .filter(|s| !s.blocks.is_empty())
        .for_each(|section| write_section(&mut out, section));
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = write!(out, "\n## {}\n", section.title);
    for block in &section.blocks {
        match block {
            Block::Words(words) => {
                let _ = write!(out, "\n{}\n", escape(words));
            }
            Block::Note(note) => write_note(out, note),
            Block::Commands(lines) => {
                let _ = write!(out, "\n```sh\n{}\n```\n", lines.join("\n"));
            }
            Block::Facts(pairs) => facts(out, pairs),
            Block::Table(table) => write_table(out, table),
            Block::Chart(_) => {}
        }
    }
}

fn write_note(out: &mut String, note: &Note) {
    let mark = match note.weight {
        Weight::Bad => "**Wrong:** ",
        Weight::Warn => "**Note:** ",
        Weight::Info | Weight::Good => "",
    };
    let _ = write!(out, "\n> {mark}**{}**\n", escape(&note.title));
    note.lines.iter().for_each(|line| {
        let _ = write!(out, ">\n> {}\n", escape(line));
    });
}

fn facts(out: &mut String, pairs: &[(String, String)]) {
    if pairs.is_empty() {
        return;
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in pairs {
        let _ = writeln!(out, "| {} | {} |", cell(name), cell(value));
    }
}

fn write_table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = write!(out, "\n**{}**\n", escape(&table.caption));
    }
    let heads: Vec<String> = table.head.iter().map(|h| cell(heading(h))).collect();
    let lines =
        table.head.iter().enumerate().map(|(i, h)| if i == 0 || h.starts_with('<') { "---" } else { "---:" });
    let _ = write!(out, "\n| {} |\n|{}|\n", heads.join(" | "), lines.collect::<Vec<_>>().join("|"));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// Characters that Markdown would take for its own.
fn escape(text: &str) -> String {
    text.replace('<', "&lt;").replace('*', "\\*")
}

fn cell(text: &str) -> String {
    escape(text).replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_table() {
        let mut section = Section::new("Rates");
        let mut table = Table::new("Found", &["side", "tps", "<word"]);
        table.row(["a|b", "1", "<x>"]);
        section.table(table);
        section.blocks.push(Block::Commands(vec!["a  b*".into()]));
        let document = Document { title: "Lab".into(), sections: vec![section], ..Document::default() };
        let wanted = "# Lab\n\n## Rates\n\n**Found**\n\n| side | tps | word |\n|---|---:|---|\n| a\\|b | 1 | &lt;x> |\n\n```sh\na  b*\n```\n";
        assert_eq!(markdown(&document), wanted);
    }
}
