//! The files of a crate do not import each other in circles.

use xtask::{modules, root};

#[test]
fn no_circle_of_modules_is_wider_than_it_may_be() {
    let found = modules::survey(&root()).expect("sources that can be read");
    let wrong = modules::wrong(&found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
