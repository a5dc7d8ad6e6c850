//! `xtask modules`: do the files of a crate import each other in circles?
//!
//! Inputs: the sources of every crate. A file depends on another of its crate if a `use` or a path in it leads to what
//! the other defines ([`resolve`]): through re-exports, globs and macros, but not in tests. A `mod` line alone is no
//! dependency. Output: the circles, with the edges that make them.
//!
//! Two files may lean on each other: a module and its child often do. In a circle of more nothing can be read, tested
//! or moved by itself. [`NOT_YET`] is what is still to be mended; it may only shrink.
//!
//! Not handled here: a method that is called on a value. Without its type nobody can say in which file it stands.

mod circles;
mod mentions;
mod resolve;
mod scope;
mod tree;

use std::path::Path;

use crate::groups;
use circles::Edges;
pub use circles::{Circle, Edge};
use resolve::Sources;

/// How many files may lean on each other.
pub const LIMIT: usize = 2;

/// Crates with circles that are not mended yet, and how many files their widest has. It may not grow.
pub const NOT_YET: &[(&str, usize)] = &[];

/// The circles of one crate.
pub struct Found {
    /// The crate's directory in its group, or `xtask`.
    pub name: String,
    /// How many files it has, without tests.
    pub files: usize,
    /// Its circles, the widest first.
    pub circles: Vec<Circle>,
}

impl Found {
    /// The number of files in the widest circle, 0 if there is none.
    pub fn widest(&self) -> usize {
        self.circles.first().map_or(0, |circle| circle.files.len())
    }
}

/// The circles of every crate of the tree at `root`.
///
/// # Errors
/// A file that cannot be read, or that is no Rust.
pub fn survey(root: &Path) -> Result<Vec<Found>, String> {
    groups::crates(root)?.iter().map(|at| of_crate(at)).collect()
}

/// The circles of the crate in the directory `at`. Its library and its programs are trees of modules of their own.
///
/// # Errors
/// A file that cannot be read, or that is no Rust.
pub fn of_crate(at: &Path) -> Result<Found, String> {
    let name = at.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Found { name, files: 0, circles: Vec::new() };
    for top in tree::tops(at)? {
        let sources = Sources::new(tree::modules(&top)?);
        let edges: Edges = sources.edges();
        found.files += sources.files();
        found.circles.extend(edges.circles(at));
    }
    found.circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    Ok(found)
}

/// What is wrong: circles wider than they may be, and words of [`NOT_YET`] that are no longer true.
pub fn wrong(found: &[Found]) -> Vec<String> {
    wrong_by(found, NOT_YET)
}

fn wrong_by(found: &[Found], not_yet: &[(&str, usize)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for of in found {
        let exempt = not_yet.iter().find(|(name, _)| *name == of.name).map(|(_, files)| *files);
        let allowed = exempt.unwrap_or(LIMIT);
        for circle in of.circles.iter().filter(|circle| circle.files.len() > allowed) {
            wrong.push(format!("{}: a circle of more than {allowed} files\n{circle}", of.name));
        }
        if exempt.is_some() && of.widest() <= LIMIT {
            wrong.push(format!("{}: its circles are mended: take it out of NOT_YET", of.name));
        }
    }
    wrong
}

/// A table of what was found, and every circle with its edges.
pub fn table(found: &[Found]) -> String {
    let mut out = String::from("crate        files  files in circles of more than two\n");
    for of in found {
        let wide: Vec<String> = wide(of).map(|circle| circle.files.len().to_string()).collect();
        out.push_str(&format!("{:<12} {:>5}  {}\n", of.name, of.files, wide.join(", ")));
    }
    for of in found {
        for circle in wide(of) {
            out.push_str(&format!("\n{}, {} files:\n{circle}\n", of.name, circle.files.len()));
        }
    }
    out
}

fn wide(of: &Found) -> impl Iterator<Item = &Circle> {
    of.circles.iter().filter(|circle| circle.files.len() > LIMIT)
}

#[cfg(test)]
mod tests;
