//! The library as it ships: built by itself, so that no other package's `std` gets into it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Path of the built library.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let me = std::env::current_exe().expect("a test has a path");
    let profile = me.ancestors().nth(2).expect("target/PROFILE/deps/test");
    let target = profile.parent().expect("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "seawall-preload", "--target-dir"]).arg(target);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success(), "the library does not build");
    profile.join("libseawall_preload.so")
}
