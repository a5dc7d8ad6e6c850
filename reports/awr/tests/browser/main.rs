//! Reports in a real browser: nothing in its console, nothing wider than the page, and a picture to look at.

mod chromium;
#[path = "../history/mod.rs"]
mod history;

use chromium::{assert_fits, browser, said};
use history::Hour;
use seawall_awr::compare::{Known, compare, document as compared};
use seawall_awr::period::Period;
use seawall_awr::report::document;
use seawall_page::html;

fn period(hour: Hour) -> Period {
    Period::of(&history::snapshots(hour), &history::samples(hour)).expect("a period")
}

fn pages() -> [(&'static str, String); 3] {
    let both = compare(period(Hour::Disk), period(Hour::Seawall), Known::default());
    [
        ("disk.html", html(&document(&period(Hour::Disk)))),
        ("seawall.html", html(&document(&period(Hour::Seawall)))),
        ("compare.html", html(&compared(&both))),
    ]
}

#[test]
fn an_hours_report_opens_without_a_word_in_the_console() {
    let Some(browser) = browser() else { return };
    for (name, page) in pages() {
        assert_fits(&browser, name, &page);
    }
}

#[test]
fn a_page_with_a_fault_is_noticed() {
    let Some(browser) = browser() else { return };
    let faults = [
        "<script>nothing.at.all()</script>",
        "<div style=\"width:3000px\">x</div>",
        "<div style=\"overflow-x:auto\" class=\"scroll\"><table style=\"width:3000px\"><tr><td>x</table></div>",
        "<svg viewBox=\"0 0 10 10\"><text x=\"9\">too long</text></svg>",
    ];
    for fault in faults {
        let page = format!("<!doctype html><html><body>{fault}</body></html>");
        assert!(!said(&browser, &page, "1280,800").is_empty(), "{fault}");
    }
}
