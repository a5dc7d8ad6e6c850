//! Dependencies go one way: between the groups of the tree, and between the files of a crate.

use xtask::{groups, modules, root};

#[test]
fn no_circle_of_modules_is_wider_than_it_may_be() {
    let found = modules::survey(&root()).expect("sources that can be read");
    let wrong = modules::wrong(&found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_group_depends_on_one_behind_it() {
    let wrong = groups::wrong(&root()).expect("manifests that can be read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
