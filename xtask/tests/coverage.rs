//! The coverage table against this machine's libc, and against what the library really exports.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSymbol};
use xtask::coverage::{self, What};
use xtask::root;

/// The functions that a shared library offers to others.
fn exported(path: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(path).expect("a library");
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).expect("an ELF file");
    let versions = file.elf_header().sections(file.endian(), &*bytes).expect("sections");
    let versions = versions.versions(file.endian(), &*bytes).expect("versions");
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() != object::SymbolKind::Data)
        .filter(|symbol| {
            let index = versions.as_ref().map(|v| (v, v.version_index(file.endian(), symbol.index())));
            let name = index.and_then(|(v, index)| v.version(index).ok().flatten().map(|v| v.name()));
            name != Some(b"GLIBC_PRIVATE")
        })
        .map(|symbol| symbol.name().expect("a name").to_owned())
        .collect()
}

fn libc() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).expect("a dynamic libc");
    line[line.find('/').expect("a path")..].into()
}

#[test]
fn every_file_call_of_libc_is_in_the_table() {
    let looks_like_one = |name: &&String| coverage::FILE_WORDS.iter().any(|word| name.contains(word));
    let all = exported(&libc());
    assert!(all.len() > 1000, "libc exports only {} functions", all.len());
    let missing: Vec<_> = all.iter().filter(looks_like_one).filter(|name| !coverage::knows(name)).collect();
    assert!(missing.is_empty(), "not in the coverage table: {missing:?}");
}

#[test]
fn what_is_said_to_be_handled_is_exported_and_nothing_else_is() {
    let handled: BTreeSet<String> = coverage::table()
        .filter(|row| row.what == What::Handled)
        .flat_map(|row| row.symbols.iter().map(|name| (*name).to_owned()))
        .collect();
    assert_eq!(exported(common::library()), handled);
}

#[test]
fn no_name_is_in_the_table_twice() {
    let mut seen = BTreeSet::new();
    for name in coverage::table().flat_map(|row| row.symbols) {
        assert!(seen.insert(name), "{name} is there twice");
    }
}

#[test]
fn the_page_is_current() {
    let page = std::fs::read_to_string(root().join(coverage::PAGE)).unwrap_or_default();
    assert!(page == coverage::document(), "{} is not current: run `make docs`", coverage::PAGE);
}
