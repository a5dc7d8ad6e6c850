//! Files that reach each other along their dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Which file depends on which.
#[derive(Default)]
pub struct Edges(BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>);

/// Files that all depend on each other, directly or through one another.
pub struct Circle {
    /// The files, by their way from the crate.
    pub files: Vec<PathBuf>,
    /// Their dependencies on each other.
    pub edges: Vec<Edge>,
}

/// One file takes something from another.
pub struct Edge {
    /// Who takes.
    pub from: PathBuf,
    /// From whom.
    pub to: PathBuf,
    /// The names it takes.
    pub names: Vec<String>,
}

impl Edges {
    /// `from` mentions a `name` that `to` defines.
    pub fn add(&mut self, from: &Path, to: &Path, name: &str) {
        if from != to {
            let names = self.0.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default();
            names.insert(name.to_owned());
        }
    }

    /// Every circle, its files named from the directory `root`.
    pub fn circles(&self, root: &Path) -> Vec<Circle> {
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            self.0.keys().map(|from| (from.as_path(), self.reached(from))).collect();
        let mut done = BTreeSet::new();
        let mut circles = Vec::new();
        for (&file, far) in &reached {
            let back = |other: &&Path| reached.get(other).is_some_and(|far| far.contains(file));
            let together: BTreeSet<&Path> = far.iter().copied().filter(back).collect();
            if !together.is_empty() && done.insert(together.clone()) {
                circles.push(self.circle(&together, root));
            }
        }
        circles
    }

    /// All that `from` depends on, directly or through others; itself too, if it is in a circle.
    fn reached(&self, from: &Path) -> BTreeSet<&Path> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Path> = self.direct(from).collect();
        while let Some(file) = next.pop() {
            if reached.insert(file) {
                next.extend(self.direct(file));
            }
        }
        reached
    }

    fn direct(&self, from: &Path) -> impl Iterator<Item = &Path> {
        self.0.get(from).into_iter().flat_map(|to| to.keys().map(PathBuf::as_path))
    }

    fn circle(&self, files: &BTreeSet<&Path>, root: &Path) -> Circle {
        let short = |file: &Path| file.strip_prefix(root).unwrap_or(file).to_owned();
        let edges = files.iter().filter_map(|from| self.0.get(*from).map(|to| (from, to)));
        let edges = edges.flat_map(|(from, to)| {
            let inside = to.iter().filter(|(to, _)| files.contains(to.as_path()));
            inside.map(|(to, names)| Edge {
                from: short(from),
                to: short(to),
                names: names.iter().cloned().collect(),
            })
        });
        Circle { edges: edges.collect(), files: files.iter().map(|file| short(file)).collect() }
    }
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |e: &Edge| format!("  {} -> {}: {}", e.from.display(), e.to.display(), e.names.join(", "));
        f.write_str(&self.edges.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}
