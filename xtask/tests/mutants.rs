//! The list of mutants follows the sources. Running them is `xtask mutate-fences`.

use xtask::mutate::{MUTANTS, broken};
use xtask::root;

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn every_mutant_finds_its_line() {
    let mut files: Vec<&str> = MUTANTS.iter().map(|m| m.file).collect();
    files.dedup();
    for file in files {
        let text = std::fs::read_to_string(root().join(file)).expect("a source");
        let broken = broken(file, &text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(broken.lines().count(), text.lines().count(), "{file}: lines moved");
    }
}

#[test]
fn names_are_unique() {
    for (i, m) in MUTANTS.iter().enumerate() {
        assert!(MUTANTS[i + 1..].iter().all(|other| other.name != m.name), "{}", m.name);
    }
}
