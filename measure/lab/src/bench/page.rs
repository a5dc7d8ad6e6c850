//! docs/measure/BENCHMARKS.md and docs/measure/LAB.md: their tables are generated, between marks, from [`super::keys`] and the cases.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::keys;
use crate::case;

const BEGIN: &str = "<!-- generated: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Rewrites the tables of the page.
pub fn write(page: &Path) -> Result<()> {
    let now = fs::read_to_string(page).with_context(|| format!("read {}", page.display()))?;
    let wanted = current(&now)?;
    if wanted != now {
        fs::write(page, wanted).with_context(|| format!("write {}", page.display()))?;
        outln!("{} rewritten", page.display());
    }
    Ok(())
}

/// The page as it has to be.
fn current(now: &str) -> Result<String> {
    let mut out = String::new();
    let mut lines = now.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE)) else { continue };
        let table = match name {
            "cases" => case::table()?,
            _ => keys::table(name).with_context(|| format!("bench.json has no section {name:?}"))?,
        };
        lines.find(|line| *line == END).with_context(|| format!("the table of {name:?} is not closed"))?;
        out += &format!("{table}{END}\n");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labs_page_names_every_case() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure/LAB.md");
        let now = fs::read_to_string(page).expect("the page");
        assert!(now.contains(&format!("{BEGIN}cases{CLOSE}")), "docs/measure/LAB.md has no table of cases");
        assert!(current(&now).expect("a page") == now, "docs/measure/LAB.md is not current: run `make docs`");
    }

    #[test]
    fn the_benchmarks_page_names_every_key() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure/BENCHMARKS.md");
        let now = fs::read_to_string(page).expect("the page");
        for (section, _) in keys::SECTIONS {
            assert!(now.contains(&format!("{BEGIN}{section}{CLOSE}")), "{section} has no table");
        }
        assert!(
            current(&now).expect("a page") == now,
            "docs/measure/BENCHMARKS.md is not current: run `make docs`"
        );
    }
}
