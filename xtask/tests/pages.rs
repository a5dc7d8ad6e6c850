//! The pages are current and true.

use xtask::{CACHE_PAGE, FORMAT_PAGE, cache_page, check_form, check_links, format_page, held, root};

#[test]
fn the_format_page_shows_the_format() {
    let now = std::fs::read_to_string(root().join(FORMAT_PAGE)).expect("the page");
    let wanted = format_page(&now).expect("a page with a sentence for every field");
    assert!(now == wanted, "{FORMAT_PAGE} is not current: run `make docs`");
}

#[test]
fn the_cache_page_shows_what_the_algorithms_do() {
    let now = std::fs::read_to_string(root().join(CACHE_PAGE)).expect("the page");
    let wanted = cache_page(&now).expect("a page with known regions");
    assert!(now == wanted, "{CACHE_PAGE} is not current: run `make docs`");
}

#[test]
fn every_link_leads_to_what_it_names() {
    let wrong = check_links(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_table_renders_and_no_paragraph_is_endless() {
    let wrong = check_form(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_of_tests_is_current_and_every_promise_has_one() {
    let now = std::fs::read_to_string(root().join(held::PAGE)).unwrap_or_default();
    let wanted = held::page(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(now == wanted, "{} is not current: run `make docs`", held::PAGE);
}
