//! Files of the tree, and whether a source file defines a name: by the look of its lines, which is enough for links.

use std::path::{Path, PathBuf};

const KEYWORDS: [&str; 8] =
    ["struct ", "enum ", "const ", "static ", "trait ", "type ", "mod ", "macro_rules! "];

/// Every file below `dir` whose name ends so, in no order.
///
/// # Errors
/// If a directory cannot be read.
pub fn below(dir: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(below(&path, extension)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// True if `source` defines `name`: a function (several names share one body in the preload's `entry!`),
/// a type, a constant, a module, a macro, or a variant of an enum.
pub fn defines(source: &str, name: &str) -> bool {
    source.lines().any(|line| is_function(line, name) || is_item(line, name) || is_variant(line, name))
}

/// True if `source` has a test of this name: marked `#[test]`, a case of the contract suite, or an entry
/// `name: …,` of a macro that makes tests.
pub fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let by_macro = source.contains("fn $test()");
    lines.iter().enumerate().any(|(i, line)| {
        let marked = || lines[..i].iter().rev().take(4).any(|above| above.trim() == "#[test]");
        let listed =
            by_macro && line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        listed || is_function(line, name) && (line.contains(": &Context") || marked())
    })
}

fn is_function(line: &str, name: &str) -> bool {
    let Some((before, after)) = line.split_once("fn ") else { return false };
    let starts_here = before.is_empty() || before.ends_with(' ') || before.ends_with('(');
    let names = after.split(['(', '<']).next().unwrap_or_default();
    starts_here && !before.contains("//") && names.split('|').any(|n| n.trim() == name)
}

fn is_item(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let public = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    KEYWORDS.iter().filter_map(|k| public.strip_prefix(k)).any(|rest| begins_with_word(rest, name))
}

fn is_variant(line: &str, name: &str) -> bool {
    let indented = line.starts_with("    ") && name.starts_with(char::is_uppercase);
    indented
        && line
            .trim_start()
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([',', ' ', '(']) || rest == "{")
}

fn begins_with_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_and_uses_are_not() {
        let source =
            "pub(crate) struct Lane<'a> {\n    fn close | __close (fd: c_int) {\n    Open = 1,\n// fn no()\n";
        for name in ["Lane", "close", "__close", "Open"] {
            assert!(defines(source, name), "{name}");
        }
        for name in ["Lan", "no", "c_int"] {
            assert!(!defines(source, name), "{name}");
        }
    }

    #[test]
    fn a_test_is_marked_or_a_case() {
        assert!(has_test("#[test]\nfn a() {}\n", "a"));
        assert!(has_test("fn a(cx: &Context) {\n", "a"));
        assert!(has_test("    fn $test() {\n    a: \"scene\",\n", "a"));
        assert!(!has_test("fn a() {}\n", "a"));
    }
}
