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

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// The contract's operations, on the bare file system or under Seawall
#[derive(Parser)]
enum Command {
    /// Print the names of all cases
    List,
    /// Run cases and print their traces
    Run(runner::Options),
    /// Let many processes and threads write, and compare with a model
    Smoke(smoke::Options),
    /// Do the same random operations in two directories
    Stress(stress::Options),
    /// Look for what is older than it may be
    Coherence(coherence::Options),
    /// Play a scene
    Scene { name: String, directory: String },
    /// One case
    #[command(hide = true)]
    Case { name: String, variant: context::Variant, directory: PathBuf },
    /// What cases execute
    #[command(hide = true)]
    Child {
        role: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::List => list(),
        Command::Run(options) => runner::run(&options),
        Command::Case { name, variant, directory } => runner::one_case(&name, variant, &directory),
        Command::Child { role, words } => {
            child::play(&role, &words.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Command::Smoke(options) => smoke::run(&options),
        Command::Stress(options) => stress::run(&options),
        Command::Coherence(options) => coherence::run(&options),
        Command::Scene { name, directory } => scene::play(&name, &directory),
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
