//! What names mean in one module: what it defines, what it imports, what it opens wholesale.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree};

/// The names of a module.
#[derive(Default)]
pub struct Scope {
    /// What is defined here, modules excepted.
    pub defined: BTreeSet<String>,
    /// What a `use` brings in: by what name, and from where.
    pub imported: BTreeMap<String, Vec<String>>,
    /// Where `use …::*` points.
    pub globs: Vec<Vec<String>>,
    /// All that stands in a `use`, whether it gets a name (`as _` gives none) or not.
    pub used: Vec<Vec<String>>,
}

impl Scope {
    /// The names of the module that consists of `items`.
    pub fn of(items: &[Item]) -> Self {
        let mut scope = Self::default();
        for item in items {
            match item {
                Item::Use(using) => scope.import(Vec::new(), &using.tree),
                item => scope.defined.extend(defined(item)),
            }
        }
        scope
    }

    /// Takes up a `use` that stands inside a function, too: what it names is meant in the whole module, to us.
    pub fn import(&mut self, mut before: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
            }
            UseTree::Name(name) => self.name(before, name.ident.to_string(), None),
            UseTree::Rename(rename) => {
                self.name(before, rename.ident.to_string(), Some(rename.rename.to_string()));
            }
            UseTree::Glob(_) => self.globs.push(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(before.clone(), tree)),
        }
    }

    fn name(&mut self, mut path: Vec<String>, name: String, renamed: Option<String>) {
        if name != "self" {
            path.push(name);
        }
        let called = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
        self.used.push(path.clone());
        self.imported.insert(called, path);
    }
}

fn defined(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(i) => i.ident.to_string(),
        Item::Enum(i) => i.ident.to_string(),
        Item::Fn(i) => i.sig.ident.to_string(),
        Item::Macro(i) => i.ident.as_ref()?.to_string(),
        Item::Static(i) => i.ident.to_string(),
        Item::Struct(i) => i.ident.to_string(),
        Item::Trait(i) => i.ident.to_string(),
        Item::Type(i) => i.ident.to_string(),
        Item::Union(i) => i.ident.to_string(),
        _ => return None,
    })
}
