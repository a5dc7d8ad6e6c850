//! What `make install` and the package put where, and that it works from there: `seawall lab` included.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Alone, SIDES};

/// Everything installed below a directory of its own.
fn installed(alone: &Alone) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_seawall-lab")).parent().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install.sh");
    let root = alone.dir().join("root");
    let done = Command::new("sh").arg(script).args([built, Path::new("/usr"), &root]).output();
    expect_success(done.expect("sh starts"));
    root.join("usr")
}

#[track_caller]
fn expect_success(said: Output) -> String {
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// `make install`, the package and the drop-ins speak of the same places.
#[test]
fn the_package_holds_what_attach_and_lab_look_for() {
    let alone = Alone::new();
    let usr = installed(&alone);
    for file in [
        "bin/seawall",
        "bin/seawall-lab",
        "bin/seawall-load",
        "lib/seawall/libseawall_preload.so",
        "lib/systemd/system/seawalld@.service",
        "lib/systemd/system/basic.target.wants/seawall-recover.service",
        "lib/systemd/system/seawall-keeper.service",
        "lib/systemd/system/seawall-disk@.service",
        "share/seawall/libvirt/disk.xml",
        "lib/sysusers.d/seawall.conf",
        "lib/tmpfiles.d/seawall.conf",
        "share/man/man1/seawall.1.gz",
        "share/man/man1/seawall-attach.1.gz",
        "share/man/man1/seawall-lab.1.gz",
        "share/bash-completion/completions/seawall",
        "share/zsh/vendor-completions/_seawall",
        "share/fish/vendor_completions.d/seawall.fish",
    ] {
        assert!(usr.join(file).is_file(), "no {file}");
    }
    let unit = fs::read_to_string(usr.join("lib/systemd/system/seawalld@.service")).expect("a unit");
    assert!(unit.contains("ExecStart=/usr/bin/seawall daemon --service --pool %f\n"), "{unit}");
    let at_boot = fs::read_to_string(usr.join("lib/systemd/system/seawall-recover.service")).expect("a unit");
    assert!(at_boot.contains("ExecStart=/usr/bin/seawall recover --all\n"), "{at_boot}");
    let unit = unit + &at_boot;
    // The first takes openat2 away, and no recovery finds its files; the others hide clients and pools.
    for harmful in ["RestrictSUIDSGID=", "PrivateUsers=", "ProtectProc=", "ProcSubset=", "PrivateDevices="] {
        assert!(!unit.lines().any(|line| line.starts_with(harmful)), "{harmful}");
    }
}

/// Beside the program, or in PATH; and a case runs with nothing but what was installed.
#[test]
fn the_lab_runs_from_where_it_was_installed() {
    let alone = Alone::new();
    let usr = installed(&alone);
    let seawall = usr.join("bin/seawall");
    let list = || Command::new(&seawall).args(["lab", "list"]).output().expect("seawall");
    assert!(expect_success(list()).contains("redo: "));

    let case = alone.dir().join("tiny.toml");
    fs::write(&case, format!("{TINY}{SIDES}")).expect("a case");
    let mut run = Command::new(&seawall);
    run.args(["lab", "run"]).arg(&case).args(["--rounds", "1", "--pool-size", "16M"]);
    run.arg("--work").arg(alone.dir().join("work")).arg("--out").arg(alone.dir().join("out"));
    expect_success(run.output().expect("seawall"));

    let elsewhere = alone.dir().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    for program in ["seawall-lab", "seawall-load"] {
        fs::rename(usr.join("bin").join(program), elsewhere.join(program)).expect("moved");
    }
    let said = list();
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && words.contains("make install"), "{words}");
    let path = format!("{}:/usr/bin:/bin", elsewhere.display());
    let found = Command::new(&seawall).args(["lab", "list"]).env("PATH", path).output();
    assert!(expect_success(found.expect("seawall")).contains("redo: "));
}

const TINY: &str = r#"name = "tiny"
title = "Tiny"
question = "Does it run?"
seconds = 1
measures = ["throughput"]
controls = ["fs"]

[pgbench]
test = "simple-update"
clients = 1
scale = 1
"#;
