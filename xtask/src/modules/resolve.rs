//! Where a path leads: to the file that defines what it names, past all that only passes it on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::circles::Edges;
use super::mentions;
use super::scope::Scope;
use super::tree::Module;

/// Imports of imports that are followed before we call it a circle of imports.
const PATIENCE: usize = 16;

/// What a path was found to mean.
#[derive(Clone)]
enum Meaning {
    Module(Vec<String>),
    /// What this module defines by this name.
    Item(Vec<String>, String),
}

/// The modules of one library or program, with their names.
pub struct Sources {
    modules: BTreeMap<Vec<String>, Read>,
}

struct Read {
    file: PathBuf,
    scope: Scope,
    paths: Vec<Vec<String>>,
}

impl Sources {
    /// Reads the names and paths of `modules`.
    pub fn new(modules: Vec<Module>) -> Self {
        let read = |module: Module| {
            let mut scope = Scope::of(&module.items);
            let paths = mentions::of(&module.items, &mut scope);
            (module.path, Read { file: module.file, scope, paths })
        };
        Self { modules: modules.into_iter().map(read).collect() }
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.modules.values().map(|m| &m.file).collect::<BTreeSet<_>>().len()
    }

    /// Which file depends on which, and for what names.
    pub fn edges(&self) -> Edges {
        let mut edges = Edges::default();
        for (at, module) in &self.modules {
            for path in module.scope.used.iter().chain(&module.paths) {
                if let Some((to, name)) = self.home(at, path) {
                    edges.add(&module.file, to, &name);
                }
            }
        }
        edges
    }

    /// The file that defines what `path`, written in the module `at`, names; and its name there. A module itself is
    /// nothing that a file defines.
    fn home(&self, at: &[String], path: &[String]) -> Option<(&Path, String)> {
        match self.follow(at, path, PATIENCE)? {
            Meaning::Item(module, name) => self.modules.get(&module).map(|m| (m.file.as_path(), name)),
            Meaning::Module(_) => None,
        }
    }

    fn follow(&self, at: &[String], path: &[String], patience: usize) -> Option<Meaning> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Meaning::Module(Vec::new()),
            "self" => Meaning::Module(at.to_vec()),
            "super" => Meaning::Module(at.split_last()?.1.to_vec()),
            name => self.named(at, name, !rest.is_empty(), patience)?,
        };
        rest.iter().enumerate().try_fold(start, |meaning, (i, name)| match (meaning, name.as_str()) {
            (Meaning::Module(module), "super") => Some(Meaning::Module(module.split_last()?.1.to_vec())),
            // What a macro made is known by no name: it is where the path leads.
            (Meaning::Module(module), name) => Some(
                self.named(&module, name, i + 1 < rest.len(), patience)
                    .unwrap_or(Meaning::Item(module, name.to_owned())),
            ),
            (item, _) => Some(item),
        })
    }

    /// What `name` means in the module `at`; nothing if it comes from another crate. A module and a function may have the
    /// same name: with more behind it the module `is_meant`.
    fn named(&self, at: &[String], name: &str, is_meant: bool, patience: usize) -> Option<Meaning> {
        let child = [at, &[name.to_owned()]].concat();
        let scope = &self.modules.get(at)?.scope;
        let is_module = self.modules.contains_key(&child);
        if scope.defined.contains(name) && !(is_module && is_meant) {
            return Some(Meaning::Item(at.to_vec(), name.to_owned()));
        }
        if is_module {
            return Some(Meaning::Module(child));
        }
        let patience = patience.checked_sub(1)?;
        if let Some(path) = scope.imported.get(name) {
            // `use name;` of another crate imports a name under itself.
            return if path.len() == 1 && path[0] == name { None } else { self.follow(at, path, patience) };
        }
        scope.globs.iter().find_map(|glob| self.opened(at, glob, name, is_meant, patience))
    }

    /// What `name` means by `use glob::*`, if the module `glob` knows it.
    fn opened(
        &self,
        at: &[String],
        glob: &[String],
        name: &str,
        is_meant: bool,
        patience: usize,
    ) -> Option<Meaning> {
        match self.follow(at, glob, patience)? {
            Meaning::Module(module) if module != at => self.named(&module, name, is_meant, patience),
            _ => None,
        }
    }
}
