//! Under the policy `atomic` nobody gets an io_uring: every write of a data file goes through the log.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Place, cc};

/// What the program said, and its data file as `status` shows it.
fn answers(policy: &str) -> Option<(Vec<String>, serde_json::Value)> {
    let place = Place::new();
    let program = cc(&place, "uring", include_str!("programs/uring.c"), &["-ldl"])?;
    fs::write(place.file("ib_logfile0"), [0; 4096]).expect("what a guard stands in for");
    let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "mariadb", "--data", "."]);
    run.args(["--policy", policy, "--"]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = run.spawn().expect("seawall starts");
    let said = BufReader::new(run.stdout.as_mut().expect("piped")).lines().map(|line| line.expect("read"));
    let said: Vec<String> = said.take_while(|line| line != "done").collect();
    let status = place.status();
    drop(run.stdin.take());
    assert!(run.wait().expect("the run ends").success(), "{said:?}");
    let named = |file: &&serde_json::Value| file["path"].as_str().is_some_and(|p| p.ends_with("/ibdata1"));
    let file = status["files"].as_array().and_then(|files| files.iter().find(named).cloned());
    Some((said, file.unwrap_or_default()))
}

// Holds: internals/FAILURE_MODEL#promises
#[test]
fn under_atomic_there_is_no_io_uring_and_data_files_stay_in_the_log() {
    let Some((said, file)) = answers("atomic") else { return };
    const ENOSYS: u32 = 38;
    let refused = format!(" {ENOSYS}");
    assert_eq!(said.len(), 5);
    assert!(said.iter().all(|answer| answer.ends_with(&refused)), "{said:?}");
    assert_eq!((&file["tracked"], &file["writes"]), (&true.into(), &1.into()), "{file}");
}

#[test]
fn under_tail_the_kernel_answers() {
    let Some((said, file)) = answers("tail") else { return };
    assert!(said.iter().any(|answer| answer == "io_setup 0"), "{said:?}");
    assert!(file.is_null(), "data files are the kernel's: {file}");
}
