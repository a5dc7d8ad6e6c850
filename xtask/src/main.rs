//! `cargo run -p xtask -- docs`: rewrites the generated parts of the pages, then checks all of them.

use std::process::ExitCode;

use xtask::{FORMAT_PAGE, check_links, check_named_tests, format_page, root};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["docs"] => docs(),
        _ => Err("usage: xtask docs".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

fn docs() -> Result<(), String> {
    let root = root();
    let page = root.join(FORMAT_PAGE);
    let failed = |e: std::io::Error| format!("{}: {e}", page.display());
    let now = std::fs::read_to_string(&page).map_err(failed)?;
    let wanted = format_page(&now)?;
    if wanted != now {
        std::fs::write(&page, wanted).map_err(failed)?;
        println!("{FORMAT_PAGE} rewritten");
    }
    let wrong = [check_links(&root), check_named_tests(&root)].concat();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
