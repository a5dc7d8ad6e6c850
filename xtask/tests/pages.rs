//! The pages are current and true.

use xtask::{FORMAT_PAGE, check_links, check_named_tests, format_page, root};

#[test]
fn the_format_page_shows_the_format() {
    let now = std::fs::read_to_string(root().join(FORMAT_PAGE)).expect("the page");
    let wanted = format_page(&now).expect("a page with a sentence for every field");
    assert!(now == wanted, "{FORMAT_PAGE} is not current: run `make docs`");
}

#[test]
fn every_link_leads_to_what_it_names() {
    let wrong = check_links(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_named_test_exists() {
    let wrong = check_named_tests(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
