//! Finding the files: from the top of a library or a program along its `mod` lines.

use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta, Token, punctuated::Punctuated};

/// A module: its way from the top, the file that holds it, and what stands in it.
pub struct Module {
    /// The names from the top; empty for the top itself.
    pub path: Vec<String>,
    /// Where it is written. Modules with a body in braces share their parent's.
    pub file: PathBuf,
    /// Its items, without tests. The bodies of modules inside it are modules of their own.
    pub items: Vec<Item>,
}

/// The files that a compiler begins with: of the library, and of each program.
///
/// # Errors
/// If the directory of the programs cannot be read.
pub fn tops(at: &Path) -> Result<Vec<PathBuf>, String> {
    let mut tops: Vec<PathBuf> = ["src/lib.rs", "src/main.rs"].map(|name| at.join(name)).into();
    if let Ok(programs) = std::fs::read_dir(at.join("src/bin")) {
        for entry in programs {
            tops.push(entry.map_err(|e| format!("{}: {e}", at.display()))?.path());
        }
    }
    tops.retain(|top| top.is_file());
    tops.sort();
    Ok(tops)
}

/// All modules below the file `top`, itself the first.
///
/// # Errors
/// A file that is missing, or that is no Rust.
pub fn modules(top: &Path) -> Result<Vec<Module>, String> {
    let mut all = Vec::new();
    let children = top.parent().unwrap_or(top).to_owned();
    read(top, Vec::new(), &children, &mut all)?;
    Ok(all)
}

fn read(file: &Path, path: Vec<String>, children: &Path, all: &mut Vec<Module>) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| failed(&e))?;
    let parsed = syn::parse_file(&text).map_err(|e| failed(&e))?;
    if is_test(&parsed.attrs) {
        return Ok(());
    }
    enter(file, path, children, parsed.items, all)
}

/// Takes up a module and those inside it, whose files lie in the directory `children`.
fn enter(
    file: &Path,
    path: Vec<String>,
    children: &Path,
    items: Vec<Item>,
    all: &mut Vec<Module>,
) -> Result<(), String> {
    let items: Vec<Item> = items.into_iter().filter(|item| !is_test(attributes(item))).collect();
    let place = all.len();
    all.push(Module { path: path.clone(), file: file.to_owned(), items: Vec::new() });
    for item in &items {
        let Item::Mod(module) = item else { continue };
        // A file of another crate, which is looked at there.
        if module.attrs.iter().any(|a| a.path().is_ident("path")) {
            continue;
        }
        let name = module.ident.to_string();
        let path = [path.clone(), vec![name.clone()]].concat();
        let below = children.join(&name);
        match &module.content {
            Some((_, items)) => enter(file, path, &below, items.clone(), all)?,
            None => {
                let beside = children.join(format!("{name}.rs"));
                let file = if beside.exists() { beside } else { below.join("mod.rs") };
                read(&file, path, &below, all)?;
            }
        }
    }
    all[place].items = items;
    Ok(())
}

/// True for `#[cfg(test)]`, and for `#[cfg(all(test, …))]`.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|a| a.path().is_ident("cfg")).any(|a| {
        a.parse_args::<Meta>().is_ok_and(|condition| match condition {
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .is_ok_and(|all| all.iter().any(|one| one.path().is_ident("test"))),
            one => one.path().is_ident("test"),
        })
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}
