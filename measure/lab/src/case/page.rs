//! docs/measure/LAB.md: its table of cases is generated, between marks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result};
use seawall_page::regions;

use super::builtin;

/// Rewrites the table of the page.
///
/// # Errors
/// If there is a mistake in a case; of the file.
pub fn write(page: &Path) -> Result<()> {
    let now = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let wanted = current(&now)?;
    if wanted != now {
        fs::write(page, wanted).with_context(|| format!("cannot write {}", page.display()))?;
        outln!("{} rewritten", page.display());
    }
    Ok(())
}

/// The page as it has to be.
fn current(now: &str) -> Result<String> {
    let table = |name: &str, _: &str| match name {
        "cases" => builtin::table().map_err(|e| format!("{e:#}")),
        _ => Err(format!("nothing is generated under the name {name:?}")),
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
}
