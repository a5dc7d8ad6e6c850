//! Links: every page, heading, file and name that a page points to exists.
//!
//! A link into a source file whose text is code, as [`Engine::write`](…/engine/write.rs), must lead to a file
//! that defines that name. Addresses on other hosts are not looked at.

use std::path::{Path, PathBuf};

use crate::markdown::{self, anchor, links_of};
use crate::{pages, source};

/// A link as it stands in a page.
pub struct Link<'p> {
    pub text: &'p str,
    pub target: &'p str,
    pub line: usize,
}

/// What is wrong with the links of all pages.
pub fn check_links(root: &Path) -> Vec<String> {
    let pages = match pages::pages(root) {
        Ok(pages) => pages,
        Err(e) => return vec![format!("{}: {e}", root.display())],
    };
    pages.iter().flat_map(|page| check_page(root, page)).collect()
}

fn check_page(root: &Path, page: &Path) -> Vec<String> {
    let name = page.strip_prefix(root).unwrap_or(page).display();
    let text = match std::fs::read_to_string(page) {
        Ok(text) => text,
        Err(e) => return vec![format!("{name}: {e}")],
    };
    let found = links(&text);
    let wrong = found.iter().filter_map(|link| {
        let why = check(page, &text, link).err()?;
        Some(format!("{name}:{}: {} -> {}: {why}", link.line, link.text, link.target))
    });
    wrong.collect()
}

/// The links of a page, those in code blocks left out.
pub fn links(text: &str) -> Vec<Link<'_>> {
    let of_line = |(number, line)| {
        links_of(line).into_iter().map(move |(text, target)| Link { text, target, line: number })
    };
    markdown::lines(text).flat_map(of_line).collect()
}

/// The file a target names, from the page it stands in.
pub fn resolve(page: &Path, target: &str) -> PathBuf {
    let file = target.split('#').next().unwrap_or_default();
    page.parent().unwrap_or(Path::new(".")).join(file)
}

/// The name a link's text stands for, if it is code: the last part of a path, without its parentheses.
pub fn code(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    let last = inner.rsplit("::").next()?.trim_end_matches("()");
    let is_name = !last.is_empty() && last.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some(last)
}

fn check(page: &Path, text: &str, link: &Link<'_>) -> Result<(), String> {
    if link.target.contains("://") {
        return Ok(());
    }
    if let Some(heading) = link.target.strip_prefix('#') {
        return has_heading(text, heading);
    }
    let path = resolve(page, link.target);
    if path.is_dir() {
        return Ok(());
    }
    let found = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    if let Some((_, heading)) = link.target.split_once('#') {
        return has_heading(&found, heading);
    }
    match code(link.text).filter(|_| path.extension().is_some_and(|e| e == "rs")) {
        Some(name) if !source::defines(&found, name) && !source::has_test(&found, name) => {
            Err(format!("it does not define {name}"))
        }
        _ => Ok(()),
    }
}

fn has_heading(text: &str, wanted: &str) -> Result<(), String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
    if headings.into_iter().any(|heading| heading == wanted) { Ok(()) } else { Err("no such heading".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_its_last_part() {
        assert_eq!(code("`Engine::write()`"), Some("write"));
        assert_eq!(code("the page"), None);
    }
}
