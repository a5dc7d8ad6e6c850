//! The paths that a module's code mentions: in types, expressions, patterns, and inside the calls of macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, Path, Visibility};

use super::scope::Scope;
use super::tree::is_test;

/// All paths that `items` mention. A `use` inside a function goes to `scope`.
pub fn of(items: &[Item], scope: &mut Scope) -> Vec<Vec<String>> {
    let mut reader = Reader { paths: Vec::new(), scope };
    for item in items {
        match item {
            Item::Use(_) => {}
            item => reader.visit_item(item),
        }
    }
    reader.paths
}

struct Reader<'a> {
    paths: Vec<Vec<String>>,
    scope: &'a mut Scope,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    /// Modules in braces are read by themselves.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_use(&mut self, using: &'ast ItemUse) {
        self.scope.import(Vec::new(), &using.tree);
    }

    /// Who may see something is no dependency: `pub(super)`, `pub(in crate::log)`.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if !is_test(&method.attrs) {
            visit::visit_impl_item_fn(self, method);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        visit::visit_macro(self, called);
        self.tokens(called.tokens.clone());
    }
}

impl Reader<'_> {
    /// What a macro is given need be no Rust: every run `a::b::c` in it is taken for a path.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(p) if p.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.end(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.paths.push(std::mem::take(path));
        }
    }
}
