//! A page in a real browser: what its console says, whether everything fits, and pictures to look at.
//!
//! Of a page and its name. Skipped by name where there is no Chromium. `SEAWALL_PICTURES=DIR` keeps pages and pictures.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What measures the page from inside; a page that is wider than its window complains in the console, and so does a
/// table that is wider than the page, unless the window is a telephone's.
const MEASURE: &str = "<script>addEventListener('load', () => {
  const wide = document.documentElement.scrollWidth, window_ = document.documentElement.clientWidth;
  if (wide > window_) console.error('the page is ' + wide + ' wide, its window ' + window_);
  if (window_ > 600)
    for (const box of document.querySelectorAll('.scroll'))
      if (box.scrollWidth > box.clientWidth)
        console.error('a table is ' + box.scrollWidth + ' wide, its room ' + box.clientWidth + ': ' + box.innerText.slice(0, 60));
  for (const svg of document.querySelectorAll('svg'))
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBBox(), view = svg.viewBox.baseVal;
      if (box.x < -1 || box.x + box.width > view.width + 1)
        console.error('cut off in a chart: ' + text.textContent);
    }
});</script>";

/// The browser, if there is one.
pub fn browser() -> Option<PathBuf> {
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

/// A page that fits a laptop's window, a telephone's (the narrowest that Chromium opens) and a sheet of paper.
#[track_caller]
pub fn assert_fits(browser: &Path, name: &str, page: &str) {
    assert!(!page.contains("<script"), "reports need no scripts");
    // Paper is a narrow window with the rules for print: A4 upright has some 720 px between its margins.
    let paper = page.replace("@media print", "@media screen");
    for (page, size) in [(page, "1280,800"), (page, "500,800"), (&paper, "720,1000")] {
        assert_eq!(said(browser, page, size), "", "{name} at {size}");
    }
    if let Some(kept) = std::env::var_os("SEAWALL_PICTURES").map(PathBuf::from) {
        keep(browser, &kept, name, page);
    }
}

/// What the console says about a page in a window of this size.
pub fn said(browser: &Path, page: &str, size: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html");
    std::fs::write(&file, page.replace("</body>", &format!("{MEASURE}</body>"))).expect("written");
    console(browser, &file, &[&format!("--window-size={size}"), "--dump-dom"])
}

/// The page itself, pictures of it, and how it is printed.
fn keep(browser: &Path, kept: &Path, name: &str, page: &str) {
    std::fs::create_dir_all(kept).expect("a directory");
    let file = kept.join(name);
    std::fs::write(&file, page).expect("written");
    let to = |end: &str| kept.join(name.replace(".html", end)).display().to_string();
    let size = "--window-size=1280,6000";
    console(browser, &file, &[size, &format!("--screenshot={}", to(".png"))]);
    let dark = "--blink-settings=preferredColorScheme=0";
    console(browser, &file, &[size, dark, &format!("--screenshot={}", to("-dark.png"))]);
    console(browser, &file, &["--no-pdf-header-footer", &format!("--print-to-pdf={}", to(".pdf"))]);
}

/// Opens a page and returns what the console says.
fn console(browser: &Path, page: &Path, more: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a directory");
    let said = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
        .args([
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .current_dir(profile.path())
        .output()
        .expect("a browser");
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{errors}");
    errors.lines().filter(|line| line.contains("CONSOLE")).map(|line| format!("{line}\n")).collect()
}
