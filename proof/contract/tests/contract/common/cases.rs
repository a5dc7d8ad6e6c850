//! The cases, and what the bare file system says to all of them.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::bounded::{self, Finished};
use super::seawall::bare;
use super::work::Work;

/// For one pass over all cases; a case that hangs costs half a minute of it.
pub const LIMIT: Duration = Duration::from_secs(400);

/// The program that runs these cases in a directory; without any those that `SEAWALL_CONTRACT_CASE` chooses, or all.
pub fn program(directory: &Path, work: &Work, wanted: &[&str]) -> Command {
    let mut command = bare(&["run"]);
    command.arg(directory);
    let chosen = std::env::var("SEAWALL_CONTRACT_CASE").ok();
    for case in wanted.iter().copied().chain(chosen.as_deref().filter(|_| wanted.is_empty())) {
        command.args(["--case", case]);
    }
    if let Some(library) = work.native_library() {
        command.env("SEAWALL_CONTRACT_NATIVE", library);
    }
    command
}

/// What all cases are compared with: once for all tests of this process, since it is the same for each.
pub fn expected() -> &'static Finished {
    static ONCE: OnceLock<Finished> = OnceLock::new();
    ONCE.get_or_init(|| {
        let work = Work::new("bare");
        let mut program = program(&work.directory("bare"), &work, &[]);
        bounded::run(&mut program, "the cases, bare", LIMIT).expect_success("the cases, bare")
    })
}
