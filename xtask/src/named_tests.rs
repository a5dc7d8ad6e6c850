//! The failure model names the tests that hold it: each of them exists, and no row goes without.
//!
//! Looked at: tables whose last column is headed `held by`. A cell there links to tests, by their names and
//! the files they are in, or says in words why there is none, beginning with `no test:`.

use std::path::Path;

use crate::links::{code, links_of, resolve};
use crate::source;

const PAGE: &str = "docs/internals/FAILURE_MODEL.md";
const HEADING: &str = "held by";

/// What is wrong with the page's tests.
pub fn check_named_tests(root: &Path) -> Vec<String> {
    let page = root.join(PAGE);
    let text = match std::fs::read_to_string(&page) {
        Ok(text) => text,
        Err(e) => return vec![format!("{PAGE}: {e}")],
    };
    let cells = cells(&text);
    let mut wrong: Vec<String> = cells
        .iter()
        .flat_map(|(line, cell)| check(&page, cell).into_iter().map(move |w| format!("{PAGE}:{line}: {w}")))
        .collect();
    if cells.is_empty() {
        wrong.push(format!("{PAGE}: no table has a column {HEADING:?}"));
    }
    wrong
}

/// The last cells of the tables' rows, with their line numbers.
fn cells(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (i, line) in text.lines().enumerate() {
        let Some(last) = last_cell(line) else {
            inside = false;
            continue;
        };
        match last {
            HEADING => inside = true,
            rule if rule.starts_with("---") => {}
            cell if inside => found.push((i + 1, cell)),
            _ => {}
        }
    }
    found
}

fn last_cell(line: &str) -> Option<&str> {
    line.strip_prefix('|')?.trim_end().strip_suffix('|')?.rsplit('|').next().map(str::trim)
}

fn check(page: &Path, cell: &str) -> Vec<String> {
    let links = links_of(cell);
    if links.is_empty() && !cell.starts_with("no test:") {
        return vec![format!("no test is named in {cell:?}")];
    }
    links.iter().filter_map(|(text, target)| missing(page, text, target)).collect()
}

fn missing(page: &Path, text: &str, target: &str) -> Option<String> {
    let Some(name) = code(text) else { return Some(format!("{text} is not the name of a test")) };
    match std::fs::read_to_string(resolve(page, target)) {
        Ok(source) if source::has_test(&source, name) => None,
        Ok(_) => Some(format!("{target} has no test {name}")),
        Err(e) => Some(format!("{target}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_column_of_such_tables_counts() {
        let text = "| a | held by |\n|---|---|\n| x | [`t`](f.rs) |\n\n| a | b |\n|---|---|\n| x | y |\n";
        assert_eq!(cells(text), [(3, "[`t`](f.rs)")]);
        assert_eq!(check(Path::new("p.md"), "in words").len(), 1);
        assert!(check(Path::new("p.md"), "no test: it needs a reboot").is_empty());
    }
}
