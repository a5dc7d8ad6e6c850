//! Publishing through a mapping, in a program like a database with a redo log of fixed size.

use crate::common::{Place, cc};

#[test]
fn a_file_overwritten_in_place_is_published_by_stores_and_survives_a_truncate_behind_our_back() {
    let place = Place::new();
    let Some(program) = cc(&place, "overwrite", include_str!("programs/overwrite.c"), &["-O1"]) else {
        panic!("no C compiler: make deps installs one");
    };
    let said = place.run(&[program.to_str().expect("a path"), "x-wal"]);
    assert_eq!(said.succeeds().out, "overwritten\n");
}
