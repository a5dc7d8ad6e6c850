//! The programs that a power cut is about.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The directory of our own program, with the others in it: what is missing is built, for the features of the preload are
/// not the others'.
pub fn directory() -> PathBuf {
    static BUILT: Once = Once::new();
    let own = Path::new(env!("CARGO_BIN_EXE_seawall-powercut"));
    let profile = own.parent().expect("a program is in a directory");
    BUILT.call_once(|| build(profile));
    profile.to_owned()
}

fn build(profile: &Path) {
    let wanted = [
        ("seawall", "seawall-cli"),
        ("seawall-load", "seawall-load"),
        ("libseawall_preload.so", "seawall-preload"),
    ];
    for (file, package) in wanted.iter().filter(|(file, _)| !profile.join(file).exists()) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", package]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().is_ok_and(|status| status.success()), "{file} could not be built");
    }
}
