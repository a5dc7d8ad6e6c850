//! The smoke run, bare and under Seawall: file contents equal the model, whoever is killed.
//!
//! `SEAWALL_SMOKE_SECONDS=600` makes it long; `SEAWALL_SMOKE_SEED=N` repeats a run.

use crate::common::bounded;
use crate::common::seawall::{Pool, bare, bare_only, setting};
use crate::common::work::Work;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn limit() -> Duration {
    Duration::from_secs(150 + 2 * setting("SEAWALL_SMOKE_SECONDS", 4))
}

fn program(directory: &Path, more: &[&str]) -> Command {
    let mut command = bare(&["smoke"]);
    command.arg(directory);
    command.args(["--seconds", &setting("SEAWALL_SMOKE_SECONDS", 4).to_string()]);
    command.args(["--seed", &setting("SEAWALL_SMOKE_SEED", 1).to_string()]);
    command.args(more);
    command
}

fn under_seawall(name: &str, pool: &Pool, more: &[&str]) {
    if bare_only() {
        return;
    }
    let work = Work::new(name);
    let directory = work.directory("data");
    let mut command = pool.around(&directory, &program(&directory, more));
    let finished = bounded::run(&mut command, "the smoke run under seawall", limit());
    eprintln!("{}", finished.expect_success("the smoke run under seawall").stdout);
}

#[test]
fn bare_contents_equal_the_model() {
    let work = Work::new("smoke-bare");
    let directory = work.directory("data");
    let finished = bounded::run(&mut program(&directory, &[]), "the smoke run, bare", limit());
    eprintln!("{}", finished.expect_success("the smoke run, bare").stdout);
}

// Holds: K1
#[test]
fn contents_equal_the_model_under_seawall() {
    under_seawall("smoke", &Pool::new("smoke", "256M"), &[]);
}

#[test]
fn contents_equal_the_model_with_a_block_cache() {
    under_seawall("smoke-cached", &Pool::cached("smoke-cached", "64M"), &[]);
}

/// The smallest pool: most of the time the log is full.
#[test]
fn contents_equal_the_model_with_a_full_log() {
    under_seawall("smoke-small", &Pool::new("smoke-small", "16M"), &["--processes", "8", "--threads", "8"]);
}
