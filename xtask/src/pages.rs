//! Which pages there are, and whether they can be read: tables that render, paragraphs that end.

use std::path::{Path, PathBuf};

use crate::markdown::{lines, seen};
use crate::source;

/// Characters that a paragraph may have.
const LONGEST: usize = 600;

/// Every page of the tree: those at its root, and those in `docs/` and below.
///
/// # Errors
/// If a directory cannot be read.
pub fn pages(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages = source::below(&root.join("docs"), "md")?;
    for entry in std::fs::read_dir(root)? {
        pages.push(entry?.path());
    }
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.sort();
    Ok(pages)
}

/// What is wrong with the form of the tree's pages.
pub fn check_form(root: &Path) -> Vec<String> {
    let pages = match pages(root) {
        Ok(pages) => pages,
        Err(e) => return vec![format!("{}: {e}", root.display())],
    };
    let of_page = |page: &PathBuf| {
        let name = page.strip_prefix(root).unwrap_or(page).display().to_string();
        let text = std::fs::read_to_string(page).unwrap_or_default();
        let mut wrong = broken_tables(&text);
        if name != "CHANGELOG.md" {
            wrong.extend(long_paragraphs(&text));
        }
        wrong.into_iter().map(|(line, why)| format!("{name}:{line}: {why}")).collect::<Vec<_>>()
    };
    pages.iter().flat_map(of_page).collect()
}

/// A table is a heading, a line of dashes, and rows, all with as many cells. Rows that no heading stands above (an empty
/// line cut them off) are shown as text with bars.
fn broken_tables(text: &str) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    let mut rows: Vec<(usize, &str)> = Vec::new();
    for (number, line) in lines(text).chain([(0, "")]) {
        if line.trim_start().starts_with('|') {
            rows.push((number, line));
            continue;
        }
        if let Some((first, _)) = rows.first() {
            if !rows.get(1).is_some_and(|(_, line)| is_delimiter(line)) {
                wrong.push((*first, "rows of a table without its heading".to_owned()));
            } else {
                let columns = cells(rows[0].1);
                let other = rows.iter().filter(|(_, line)| cells(line) != columns);
                wrong.extend(other.map(|(at, line)| (*at, format!("{} cells of {columns}", cells(line)))));
            }
        }
        rows.clear();
    }
    wrong
}

fn is_delimiter(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| "|-: ".contains(c))
}

/// How many cells a row has: a bar ends one, also in code, unless a backslash stands before it.
fn cells(line: &str) -> usize {
    let line = line.trim();
    let bars = line.replace("\\|", "").matches('|').count();
    bars + usize::from(!line.ends_with('|')) - usize::from(line.starts_with('|'))
}

/// Paragraphs, items and cells' rows are one thing each; tables are left alone.
fn long_paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    let (mut begin, mut length) = (0, 0);
    let mut end = |begin: usize, length: usize| {
        if length > LONGEST {
            wrong.push((begin, format!("a paragraph of {length} characters: at most {LONGEST}")));
        }
    };
    for (number, line) in lines(text).chain([(0, "")]) {
        let trimmed = line.trim();
        let starts = trimmed.is_empty()
            || ["- ", "* ", "#", "|", "```", ">"].iter().any(|mark| trimmed.starts_with(mark))
            || trimmed.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        if starts {
            end(begin, length);
            (begin, length) = (number, 0);
        }
        if !trimmed.starts_with('|') && !trimmed.starts_with("```") {
            length += seen(trimmed).chars().count();
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_cut_in_two_is_found() {
        assert_eq!(broken_tables("| a | b |\n|---|---|\n| 1 | 2 |\n"), []);
        let cut = "| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n";
        assert_eq!(broken_tables(cut), [(5, "rows of a table without its heading".to_owned())]);
        let short = "| a | b |\n|---|---|\n| `x \\| y` | 2 |\n| 1 |\n";
        assert_eq!(broken_tables(short), [(4, "1 cells of 2".to_owned())]);
        assert_eq!(broken_tables("```\n| no table |\n```\n"), []);
    }

    #[test]
    fn a_long_paragraph_is_found_and_a_list_is_many() {
        let long = "word ".repeat(130);
        assert_eq!(long_paragraphs(&format!("# T\n\n{long}\n")).len(), 1);
        assert_eq!(long_paragraphs(&"- words and words\n".repeat(100)).len(), 0);
        assert_eq!(long_paragraphs(&format!("a [b](https://{})\n", "x".repeat(900))).len(), 0);
    }
}
