//! Pages that stay true: the generated parts of `docs/`, and what all pages say about the tree.
//!
//! Inputs: the layout constants of `seawall-core`, what `seawall-cache` simulates, the pages, the sources they link
//! to. Outputs: the marked regions of `docs/internals/FORMAT.md` and `docs/internals/CACHE.md`, and a list of what is wrong. `cargo test -p xtask` fails on a page that is
//! not current; `make docs` rewrites it.
//!
//! And [`mutate`]: everything that keeps a promise is broken once, and something must notice. And [`modules`]: no
//! circles of imports; and [`groups`]: dependencies between the tree's directories go one way.

#![forbid(unsafe_code)]

pub mod cache;
pub mod coverage;
mod drawing;
mod fields;
pub mod groups;
pub mod held;
mod layout;
mod links;
mod markdown;
pub mod modules;
pub mod mutate;
mod pages;
mod results;
mod source;
mod table;

use std::path::{Path, PathBuf};

use seawall_page::regions;

pub use cache::CACHE_PAGE;
pub use links::check_links;
pub use pages::check_form;
pub use results::{RESULTS_PAGE, results_page};

/// The page of the format, from the root of the tree.
pub const FORMAT_PAGE: &str = "docs/internals/FORMAT.md";

/// The root of the tree this program was built in.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The format's page with its regions as they have to be.
///
/// # Errors
/// What the page lacks: a region that is unknown or not closed, a field without a sentence.
pub fn format_page(now: &str) -> Result<String, String> {
    regions::rewrite(now, layout::region)
}

/// The cache's page with its regions as they have to be.
///
/// # Errors
/// A region that is unknown or not closed, or a recorded trace that is damaged.
pub fn cache_page(now: &str) -> Result<String, String> {
    regions::rewrite(now, cache::region)
}
