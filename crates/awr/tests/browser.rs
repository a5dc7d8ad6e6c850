//! Reports in a real browser: nothing in its console, nothing wider than the page, and a picture to look at.
//!
//! Skipped by name where there is no Chromium. `SEAWALL_PICTURES=DIR` keeps pages and pictures.

mod history;

use std::path::{Path, PathBuf};
use std::process::Command;

use history::Hour;
use seawall_awr::compare::{Known, compare, document as compared};
use seawall_awr::period::Period;
use seawall_awr::report::document;
use seawall_page::html;

/// What measures the page from inside; a page that is wider than its window complains in the console.
const MEASURE: &str = "<script>addEventListener('load', () => {
  const wide = document.documentElement.scrollWidth, window_ = document.documentElement.clientWidth;
  if (wide > window_) console.error('the page is ' + wide + ' wide, its window ' + window_);
  for (const svg of document.querySelectorAll('svg'))
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBBox(), view = svg.viewBox.baseVal;
      if (box.x < -1 || box.x + box.width > view.width + 1)
        console.error('cut off in a chart: ' + text.textContent);
    }
});</script>";

fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).flat_map(|d| names.map(|name| d.join(name))).find(|p| p.is_file());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no Chromium here (apt-get install chromium), so pages are not opened in a browser"
        );
    }
    found
}

fn period(hour: Hour) -> Period {
    Period::of(&history::snapshots(hour), &history::samples(hour)).expect("a period")
}

/// Opens a page and returns what the console says.
fn console(browser: &Path, directory: &Path, page: &str, more: &[&str]) -> String {
    let said = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
        .args([
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(more)
        .arg(format!("file://{}", directory.join(page).display()))
        .current_dir(directory)
        .output()
        .expect("a browser");
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{errors}");
    errors.lines().filter(|line| line.contains("CONSOLE")).map(|line| format!("{line}\n")).collect()
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
    let directory = tempfile::tempdir().expect("a directory");
    for (name, page) in pages() {
        assert!(!page.contains("<script"), "reports need no scripts");
        std::fs::write(directory.path().join(name), page.replace("</body>", &format!("{MEASURE}</body>")))
            .expect("written");
        // A laptop's window, and a telephone's (the narrowest that Chromium opens).
        for size in ["--window-size=1280,800", "--window-size=500,800"] {
            let said = console(&browser, directory.path(), name, &[size, "--dump-dom"]);
            assert_eq!(said, "", "{name} at {size}");
        }
        if let Some(kept) = std::env::var_os("SEAWALL_PICTURES").map(PathBuf::from) {
            std::fs::create_dir_all(&kept).expect("a directory");
            std::fs::write(kept.join(name), &page).expect("written");
            let picture =
                |to: &str| format!("--screenshot={}", kept.join(name.replace(".html", to)).display());
            console(&browser, directory.path(), name, &["--window-size=1280,6000", &picture(".png")]);
            let dark = "--blink-settings=preferredColorScheme=0";
            console(
                &browser,
                directory.path(),
                name,
                &["--window-size=1280,6000", dark, &picture("-dark.png")],
            );
            let pdf = format!("--print-to-pdf={}", kept.join(name.replace(".html", ".pdf")).display());
            console(&browser, directory.path(), name, &["--no-pdf-header-footer", &pdf]);
        }
    }
}

#[test]
fn a_page_with_a_fault_is_noticed() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let faults = [
        "<script>nothing.at.all()</script>",
        "<div style=\"width:3000px\">x</div>",
        "<svg viewBox=\"0 0 10 10\"><text x=\"9\">too long</text></svg>",
    ];
    for fault in faults {
        let page = format!("<!doctype html><html><body>{fault}{MEASURE}</body></html>");
        std::fs::write(directory.path().join("x.html"), page).expect("written");
        let said = console(&browser, directory.path(), "x.html", &["--window-size=1280,800", "--dump-dom"]);
        assert!(!said.is_empty(), "{fault}");
    }
}
