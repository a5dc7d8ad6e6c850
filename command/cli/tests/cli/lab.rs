//! `seawall lab` hands over to `seawall-lab`, with its words as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn lab(program: &Path, path: &Path) -> Output {
    Command::new(program).args(["lab", "run", "redo", "--help"]).env("PATH", path).output().expect("seawall")
}

fn plant(dir: &Path, says: &str) {
    let file = dir.join("seawall-lab");
    fs::write(&file, format!("#!/bin/sh\necho {says}: \"$@\"\nexit 3\n")).expect("a script");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn the_lab_is_found_beside_the_program_then_in_path_or_missed_clearly() {
    let here = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let program = here.path().join("seawall");
    fs::copy(env!("CARGO_BIN_EXE_seawall"), &program).expect("a copy");

    let said = lab(&program, elsewhere.path());
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{error}");
    assert!(error.contains("seawall-lab is not installed") && error.contains("make build"), "{error}");

    for (dir, says) in [(elsewhere.path(), "path"), (here.path(), "beside")] {
        plant(dir, says);
        let said = lab(&program, elsewhere.path());
        assert_eq!(String::from_utf8_lossy(&said.stdout), format!("{says}: run redo --help\n"));
        assert_eq!(said.status.code(), Some(3), "its exit code is not handed on");
    }
}
