//! Redis before 7 keeps one append-only file, and replaces it: the new one is in the log too, and guarded.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Place, cc};

#[test]
fn a_single_append_only_file_is_managed_before_and_after_it_was_replaced() {
    let place = Place::new();
    let Some(program) = cc(&place, "append_only", include_str!("programs/append_only.c"), &[]) else {
        return;
    };
    let mut run = place.command(&["run", "--pool", place.pool(), "--preset", "redis", "--data", "."]);
    run.arg("--").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = run.spawn().expect("seawall starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("piped")).read_line(&mut line).expect("read");
    assert_eq!(line, "done\n");
    let status = place.status();
    let files = status["files"].as_array().expect("files");
    let tracked: Vec<_> = files.iter().filter(|file| file["tracked"] == true).collect();
    assert_eq!(tracked.len(), 1, "the new file, under the name beside the guard: {status:#}");
    assert!(tracked[0]["path"].as_str().is_some_and(|path| path.ends_with("/appendonly.aof.seawall")));
    assert!(tracked[0]["writes"].as_u64().is_some_and(|n| n >= 9), "{status:#}");
    let text = fs::read_to_string(place.file("appendonly.aof")).expect("the guard");
    assert!(text.contains("run-seawall-recover"), "{text}");
    drop(run.stdin.take());
    assert!(run.wait().expect("the run ends").success());
    let text = fs::read_to_string(place.file("appendonly.aof")).expect("the file");
    assert_eq!(text, format!("base\n{}", "new\n".repeat(10)));
    assert!(!place.file("appendonly.aof.seawall").exists());
}
