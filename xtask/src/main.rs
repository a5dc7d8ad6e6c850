//! `cargo run -p xtask -- docs`: rewrites the generated parts of the pages, then checks all of them.
//! `cargo run -p xtask -- results [DIRECTORY]`: writes docs/RESULTS.md from what the campaigns said (out/).
//! `cargo run -p xtask -- mutate-fences [PART OF A NAME [POINTS]]`: breaks what keeps the promises, one thing at a time;
//! the fates go to out/mutants.json.

use std::process::ExitCode;

use xtask::{
    FORMAT_PAGE, RESULTS_PAGE, check_links, check_named_tests, format_page, mutate, results_page, root,
};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["docs"] => docs(),
        ["results"] => results("out"),
        ["results", dir] => results(dir),
        ["mutate-fences"] => mutate_fences("", mutate::POINTS),
        ["mutate-fences", only] if !only.starts_with('-') => mutate_fences(only, mutate::POINTS),
        ["mutate-fences", only, points] => mutate_fences(only, points),
        _ => Err("usage: xtask docs | xtask results [DIRECTORY] | xtask mutate-fences [PART OF A NAME [CRASH POINTS]]".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

fn mutate_fences(only: &str, points: &str) -> Result<(), String> {
    match mutate::run(&root(), only, points, &root().join("out/mutants.json"))? {
        0 => Ok(()),
        n => Err(format!("{n} mutants survived: a hole in the simulator, or something needless")),
    }
}

fn results(dir: &str) -> Result<(), String> {
    let root = root();
    let page = results_page(&root.join(dir));
    std::fs::write(root.join(RESULTS_PAGE), page).map_err(|e| format!("{RESULTS_PAGE}: {e}"))
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
