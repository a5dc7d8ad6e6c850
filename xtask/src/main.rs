//! `cargo run -p xtask -- docs`: rewrites the generated parts of the pages, then checks all of them.
//! `cargo run -p xtask -- check-pages`: checks them, and writes nothing.
//! `cargo run -p xtask -- cache-algorithms`: prints the table of docs/internals/CACHE.md, which `docs` writes into that page.
//! `cargo run -p xtask -- cache-trace STRACE PART_OF_PATH BLOCK_BYTES LIMIT OUT`: a recorded trace for that table;
//! measure/cache-study/traces/record.sh runs it.
//! `cargo run -p xtask -- results [DIRECTORY]`: writes docs/results/RESULTS.md from what the campaigns said (out/).
//! `cargo run -p xtask -- modules`: which files of a crate import each other in circles.
//! `cargo run -p xtask -- mutate-fences [PARTS OF NAMES [POINTS]]`: breaks what keeps the promises, one thing at a time;
//! the fates go to out/mutants.json.

use std::process::ExitCode;

use std::path::Path;

use seawall_cache_study::trace::Recording;
use xtask::{
    CACHE_PAGE, FORMAT_PAGE, RESULTS_PAGE, cache, cache_page, check_form, check_links, coverage, format_page,
    held, modules, mutate, results_page, root,
};

const USAGE: &str = "usage: xtask docs | xtask check-pages | xtask cache-algorithms | xtask cache-trace STRACE PART_OF_PATH BLOCK_BYTES LIMIT OUT \
    | xtask results [DIRECTORY] | xtask modules | xtask mutate-fences [PART OF A NAME[|…] [CRASH POINTS]]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["docs"] => docs(),
        ["check-pages"] => check_pages(),
        ["cache-algorithms"] => cache::algorithms().map(|table| print!("{table}")),
        ["cache-trace", strace, part, bytes, limit, to] => cache_trace(strace, part, [bytes, limit], to),
        ["results"] => results("out"),
        ["results", dir] => results(dir),
        ["modules"] => circles(),
        ["mutate-fences"] => mutate_fences("", mutate::POINTS),
        ["mutate-fences", only] if !only.starts_with('-') => mutate_fences(only, mutate::POINTS),
        ["mutate-fences", only, points] => mutate_fences(only, points),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

fn circles() -> Result<(), String> {
    let found = modules::survey(&root())?;
    print!("{}", modules::table(&found));
    let wrong = modules::wrong(&found);
    let first_lines = || wrong.iter().filter_map(|text| text.lines().next()).collect::<Vec<_>>();
    if wrong.is_empty() { Ok(()) } else { Err(first_lines().join("\n")) }
}

fn mutate_fences(only: &str, points: &str) -> Result<(), String> {
    match mutate::run(&root(), only, points, &root().join("out/mutants.json"))? {
        0 => Ok(()),
        n => Err(format!("{n} mutants survived: a hole in the simulator, or something needless")),
    }
}

fn results(dir: &str) -> Result<(), String> {
    let root = root();
    let path = root.join(RESULTS_PAGE);
    let now = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, results_page(&root.join(dir), &now)).map_err(|e| format!("{RESULTS_PAGE}: {e}"))
}

fn cache_trace(strace: &str, path_part: &str, numbers: [&str; 2], to: &str) -> Result<(), String> {
    let [block_bytes, limit] = numbers.map(|text| text.parse::<u64>().map_err(|e| format!("{text}: {e}")));
    let (block_bytes, limit) = (block_bytes?.max(1), limit? as usize);
    cache::record(Path::new(strace), Recording { path_part, block_bytes, limit }, Path::new(to))
}

fn docs() -> Result<(), String> {
    let root = root();
    rewrite(&root, FORMAT_PAGE, format_page)?;
    rewrite(&root, CACHE_PAGE, cache_page)?;
    rewrite(&root, held::PAGE, |_| held::page(&root))?;
    rewrite(&root, coverage::PAGE, |_| Ok(coverage::document()))?;
    check_pages()
}

fn check_pages() -> Result<(), String> {
    let root = root();
    let wrong = [check_links(&root), check_form(&root)].concat();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn rewrite(root: &Path, page: &str, wanted: impl Fn(&str) -> Result<String, String>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{page}: {e}");
    let now = std::fs::read_to_string(root.join(page)).map_err(failed)?;
    let wanted = wanted(&now)?;
    if wanted != now {
        std::fs::write(root.join(page), wanted).map_err(failed)?;
        println!("{page} rewritten");
    }
    Ok(())
}
