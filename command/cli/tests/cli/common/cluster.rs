//! A directory that the preset takes for PostgreSQL's, and a program in Perl that stands for the server.

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{Place, has, wait_for};

/// A place whose directory the preset takes for PGDATA. `None` without Perl, whose syswrite is write(2) and nothing else.
pub fn place() -> Option<Place> {
    if !has("perl") {
        return None;
    }
    let place = Place::new();
    fs::write(place.file("PG_VERSION"), "15\n").expect("written");
    for dir in ["base", "base/5", "pg_wal", "pg_tblspc"] {
        fs::create_dir(place.file(dir)).expect("made");
    }
    Some(place)
}

/// Runs this Perl under `policy` and returns when it is through: then it makes the file `done`, and waits for the end of
/// its input.
pub fn start(place: &Place, policy: &str, body: &str) -> Child {
    start_until(place, policy, body, "done")
}

/// The same of a program that stops before: it makes this file and reads a line, [`go_on`].
pub fn start_until(place: &Place, policy: &str, body: &str, file: &str) -> Child {
    let program = format!("$| = 1; {body} open(my $d, '>', 'done') or die; close $d; <STDIN>;");
    let run =
        ["run", "--pool", place.pool(), "--preset", "postgres", "--policy", policy, "--data", ".", "--"];
    let mut run = place.command(&run);
    let run = run.args(["perl", "-e", &program]).stdin(Stdio::piped()).spawn().expect("seawall starts");
    wait_for("the program", || place.file(file).exists());
    run
}

/// Gives a program the line that it reads.
pub fn go_on(run: &mut Child) {
    run.stdin.as_mut().expect("piped").write_all(b"\n").expect("it lives");
}

/// Ends its input, and so the program and the run.
pub fn finish(mut run: Child) {
    drop(run.stdin.take());
    assert!(run.wait().expect("the run ends").success());
}

/// The managed file whose path ends so, as `status` tells of it.
pub fn file<'a>(status: &'a Value, end: &str) -> Option<&'a Value> {
    let mut files = status["files"].as_array().expect("files").iter();
    files.find(|file| file["path"].as_str().is_some_and(|path| path.ends_with(end)))
}
