//! The check must be able to fail: small crates, made up, whose circles are known.

use std::path::Path;

use super::*;

/// A crate of these files, and the circles that were found in it.
fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    found(files)
        .circles
        .iter()
        .map(|circle| circle.files.iter().map(|f| f.display().to_string()).collect())
        .collect()
}

fn found(files: &[(&str, &str)]) -> Found {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = dir.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    of_crate(dir.path()).expect("a crate")
}

const TOP: (&str, &str) = ("lib.rs", "mod a; mod b; mod c;");
const ROUND: [&str; 3] = ["src/a.rs", "src/b.rs", "src/c.rs"];

#[test]
fn three_files_in_a_circle_are_found() {
    let files = [
        TOP,
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B(super::c::C);"),
        ("c.rs", "pub struct C; fn f() { vec![crate::a::A::new()]; }"),
    ];
    assert_eq!(circles(&files), [ROUND]);
}

#[test]
fn what_has_an_order_is_no_circle() {
    let files = [
        TOP,
        ("a.rs", "use crate::b::B; use crate::c; pub struct A(B, c::C);"),
        ("b.rs", "use crate::c::C; pub(in crate::a) struct B(C);"),
        ("c.rs", "pub struct C; #[cfg(test)] mod tests { use crate::a::A; }"),
    ];
    assert!(circles(&files).is_empty());
}

#[test]
fn a_re_export_leads_to_where_the_thing_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::B as Renamed; pub use c::*;"),
        ("a.rs", "pub struct A(crate::Renamed);"),
        ("b.rs", "pub struct B(crate::C);"),
        ("c.rs", "use super::A; pub struct C(A);"),
    ];
    assert_eq!(circles(&files), [ROUND]);
}

#[test]
fn children_that_lean_on_their_parent_make_a_circle_with_it() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; mod c; pub use b::B; use c::C; pub fn deep() {} struct A(C);"),
        ("a/b.rs", "pub fn f() { super::deep(); } pub struct B;"),
        ("a/c.rs", "use super::*; pub fn f() { deep(); } pub struct C;"),
    ];
    assert_eq!(circles(&files), [["src/a/b.rs", "src/a/c.rs", "src/a/mod.rs"]]);
}

#[test]
fn a_module_is_told_from_a_function_of_its_name() {
    let files = [
        ("lib.rs", "mod a; mod b; fn a() { b::f(a::A); }"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use super::a::A; pub fn f(_: A) {}"),
    ];
    assert!(circles(&files).is_empty());
}

#[test]
fn a_module_in_braces_belongs_to_its_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub mod inner { pub struct I(crate::b::B); } pub struct A(inner::I);"),
        ("b.rs", "pub struct B(); fn f(_: crate::a::inner::I) {}"),
    ];
    assert_eq!(circles(&files), [["src/a.rs", "src/b.rs"]]);
}

#[test]
fn only_what_is_wider_than_it_may_be_is_wrong() {
    let three = found(&[
        TOP,
        ("a.rs", "pub struct A(crate::b::B);"),
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "pub struct C(crate::a::A);"),
    ]);
    let three = Found { name: "three".to_owned(), ..three };
    let wrong = |allowed: &[(&str, usize)]| wrong_by(std::slice::from_ref(&three), allowed).join("\n");
    assert!(wrong(&[]).contains("src/b.rs -> src/c.rs: C"));
    assert!(wrong(&[("three", 3)]).is_empty());
    assert!(!wrong(&[("three", 2)]).is_empty());

    let mended = Found { name: "three".to_owned(), files: 3, circles: Vec::new() };
    assert!(wrong_by(&[mended], &[("three", 3)])[0].contains("take it out"));
}
