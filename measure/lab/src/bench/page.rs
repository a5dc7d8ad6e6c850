//! docs/measure/BENCHMARKS.md and docs/measure/LAB.md: their tables are generated, between marks, from [`super::keys`] and the cases.

use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result};
use seawall_page::regions;

use super::keys;
use crate::case;

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
    let table = |name: &str, _: &str| match name {
        "cases" => case::table().map_err(|e| format!("{e:#}")),
        _ => keys::table(name).ok_or_else(|| format!("bench.json has no section {name:?}")),
    };
    regions::rewrite(now, table).map_err(Error::msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labs_page_names_every_case() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure/LAB.md");
        let now = fs::read_to_string(page).expect("the page");
        assert!(now.contains(&regions::begin("cases")), "docs/measure/LAB.md has no table of cases");
        assert!(current(&now).expect("a page") == now, "docs/measure/LAB.md is not current: run `make docs`");
    }

    #[test]
    fn the_benchmarks_page_names_every_key() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure/BENCHMARKS.md");
        let now = fs::read_to_string(page).expect("the page");
        for (section, _) in keys::SECTIONS {
            assert!(now.contains(&regions::begin(section)), "{section} has no table");
        }
        assert!(
            current(&now).expect("a page") == now,
            "docs/measure/BENCHMARKS.md is not current: run `make docs`"
        );
    }
}
