//! A document as one HTML file.

use std::fmt::Write;

use crate::document::{Block, Document, Note, Section, Table, Weight, heading};
use crate::{escape, shell};

/// The document as a page.
pub fn html(document: &Document) -> String {
    let mut body = format!(
        "<header class=\"report\">\n<p class=\"brand\">{}</p>\n<h1>{}</h1>\n",
        escape(&document.brand),
        escape(&document.title)
    );
    if let Some(medium) = &document.medium {
        // A log that survives less than people expect stands out; one that survives a power cut needs no warning.
        let class = if medium.contains("emulated") { "medium" } else { "medium strong" };
        let _ = writeln!(
            body,
            "<p class=\"{class}\"><span>Medium of the log</span> <strong>{}</strong></p>",
            escape(medium)
        );
    }
    body += &contents(document);
    body += "</header>\n";
    if !document.facts.is_empty() {
        body += &format!("<section class=\"report\">\n{}</section>\n", facts(&document.facts));
    }
    for (i, section) in document.sections.iter().enumerate().filter(|(_, s)| !s.blocks.is_empty()) {
        body += &write_section(i, section);
    }
    shell(&document.title, "", &body)
}

fn contents(document: &Document) -> String {
    let shown = document.sections.iter().enumerate().filter(|(_, s)| !s.blocks.is_empty());
    let links = shown.map(|(i, s)| format!("<a href=\"#s{i}\">{}</a>\n", escape(&s.title)));
    format!("<nav class=\"contents\">\n{}</nav>\n", links.collect::<String>())
}

fn write_section(number: usize, section: &Section) -> String {
    let mut out =
        format!("<section class=\"report\" id=\"s{number}\">\n<h2>{}</h2>\n", escape(&section.title));
    for block in &section.blocks {
        match block {
            Block::Words(words) => {
                let _ = writeln!(out, "<p>{}</p>", escape(words));
            }
            Block::Note(note) => out += &write_note(note),
            Block::Commands(lines) => {
                let _ = writeln!(out, "<pre>{}</pre>", escape(&lines.join("\n")));
            }
            Block::Facts(pairs) => out += &facts(pairs),
            Block::Table(table) => out += &write_table(table),
            Block::Chart(chart) => out += &chart.svg(),
        }
    }
    out + "</section>\n"
}

fn write_note(note: &Note) -> String {
    let class = match note.weight {
        Weight::Bad => "bad",
        Weight::Warn => "warn",
        Weight::Info => "info",
        Weight::Good => "good",
    };
    let lines: String = note.lines.iter().map(|line| format!("<p>{}</p>", escape(line))).collect();
    format!("<div class=\"note {class}\"><p><b>{}</b></p>{lines}</div>\n", escape(&note.title))
}

fn facts(pairs: &[(String, String)]) -> String {
    let rows =
        pairs.iter().map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)));
    format!("<dl class=\"facts\">\n{}</dl>\n", rows.collect::<String>())
}

fn write_table(table: &Table) -> String {
    let mut out = String::new();
    if !table.caption.is_empty() {
        let _ = writeln!(out, "<h3>{}</h3>", escape(&table.caption));
    }
    let class = |i: usize, cell: bool| match &table.head[i] {
        head if head.starts_with("<<") && cell => " class=\"text wrap\"",
        head if head.starts_with('<') => " class=\"text\"",
        _ => "",
    };
    out += "<div class=\"scroll\"><table><thead><tr>";
    for (i, head) in table.head.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(i, false), escape(heading(head)));
    }
    out += "</tr></thead><tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let tag = if i == 0 { "th" } else { "td" };
            let _ = write!(out, "<{tag}{}>{}</{tag}>", class(i, true), escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}
