//! `contract`: what a database may rely on, as a program.
//!
//! * **Purpose.** Run the same file operations on the bare file system and under `seawall run` and
//!   compare what the program saw. Four kinds of work live here:
//!   [`cases`] (named POSIX-semantics cases that print a canonical trace), [`smoke`] (many
//!   processes and threads against a model), [`coherence`] (what is read is what was last written)
//!   and [`scene`] (the application side of the crash-and-recover regressions, driven by
//!   `tests/regression.rs`).
//! * **Inputs.** A directory on a real file system. Files named `*-wal` in it are managed when
//!   `seawall run --preset sqlite --data DIR` surrounds the program; `*-plain` files never are.
//! * **Outputs.** Traces on standard output; exit status 0 unless the program itself failed.
//! * **Invariants.** Every file call is a libc call (interposable); traces hold nothing that may
//!   differ between two right runs (no times, inode or descriptor numbers, addresses). No process
//!   outlives its case.
//!
//! ```text
//! contract list
//! contract run DIR [--case NAME]... [--variant tracked|untracked|bypass] [--keep] [--linger]
//! contract smoke DIR [--processes N] [--threads N] [--seconds S] [--seed N] [--no-kills]
//! contract stress LEFT RIGHT [--threads N] [--seconds S] [--seed N]
//! contract coherence DIR [--behind DIR] [--seconds S] [--seed N]
//! contract scene NAME DIR
//! ```
//! `contract case …` and `contract child …` are internal: one case, and the programs cases execute.

mod aio;
#[macro_use]
mod call;
mod cases;
mod child;
mod coherence;
mod context;
mod process;
mod runner;
mod scene;
mod smoke;
mod stress;
mod trace;
mod uring;

use std::process::ExitCode;

const USAGE: &str = "usage: contract list
       contract run DIR [--case NAME]... [--variant tracked|untracked|bypass] [--keep] [--linger]
       contract smoke DIR [--processes N] [--threads N] [--seconds S] [--seed N] [--no-kills]
       contract stress LEFT RIGHT [--threads N] [--seconds S] [--seed N]
       contract coherence DIR [--behind DIR] [--seconds S] [--seed N]
       contract scene NAME DIR";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["list"] => list(),
        ["run", rest @ ..] => runner::Options::parse(rest).and_then(|options| runner::run(&options)),
        ["case", name, variant, directory] => runner::one_case(name, variant, directory),
        ["child", role, rest @ ..] => child::play(role, rest),
        ["smoke", rest @ ..] => smoke::Options::parse(rest).and_then(|options| smoke::run(&options)),
        ["stress", rest @ ..] => stress::Options::parse(rest).and_then(|options| stress::run(&options)),
        ["coherence", rest @ ..] => {
            coherence::Options::parse(rest).and_then(|options| coherence::run(&options))
        }
        ["scene", name, directory] => scene::play(name, directory),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("contract: {message}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<(), String> {
    for case in cases::all() {
        println!("{}", case.name);
    }
    Ok(())
}
