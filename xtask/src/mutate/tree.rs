//! A copy of the crates in which every line of the list can be broken by name, at run time: built once, run
//! many times, and the sources stay as they are.

use std::fs;
use std::path::{Path, PathBuf};

use super::list::{MUTANTS, Mutant};

/// What is copied: the stages, what they stand on, the simulator, the block cache, the daemon, the keeper, and the
/// disk with its guest.
const CRATES: [&str; 11] = [
    "storage/media",
    "storage/stats",
    "storage/wire",
    "storage/core",
    "storage/cache",
    "storage/daemon",
    "storage/keeper",
    "storage/front",
    "storage/disk",
    "measure/guest",
    "proof/sim",
];

/// Says which mutant this process is.
const CHOSEN: &str = r#"
/// True if this process is that mutant.
pub fn is_mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("SEAWALL_MUTANT").ok()).as_deref() == Some(name)
}
"#;

/// The file with the mutants of the list that belong to it. Line numbers stay.
///
/// # Errors
/// A line that is not there exactly once.
pub fn broken(file: &str, text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    let chosen = if file.starts_with("storage/media/") { "crate" } else { "seawall_media" };
    // A line may have several mutants: later ones are found in what earlier ones left.
    for Mutant { name, find, with, .. } in MUTANTS.iter().filter(|m| m.file == file) {
        let found = text.matches(find).count();
        if found != 1 {
            return Err(format!("{file}: mutant \"{name}\": found {found} times: {find}"));
        }
        text = text.replace(find, &with.replace("{m}", &format!("{chosen}::is_mutant({name:?})")));
    }
    Ok(text)
}

/// Makes the copy in `to`, whose `target` directory is kept.
///
/// # Errors
/// What could not be read, written or found.
pub fn make(root: &Path, to: &Path) -> Result<(), String> {
    for name in CRATES {
        let made = to.join(name);
        if made.exists() {
            fs::remove_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
        }
        copy(&root.join(name), &made, &format!("{name}/"))?;
    }
    fs::copy(root.join("Cargo.lock"), to.join("Cargo.lock")).map_err(|e| format!("Cargo.lock: {e}"))?;
    let manifest = root.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    write(&to.join("Cargo.toml"), &members(&text)?)
}

/// The workspace with these members only.
fn members(manifest: &str) -> Result<String, String> {
    let (before, rest) = manifest.split_once("members = [").ok_or("no members in Cargo.toml")?;
    let (_, after) = rest.split_once(']').ok_or("no end of members in Cargo.toml")?;
    let ours: Vec<String> = CRATES.iter().map(|name| format!("{name:?}")).collect();
    Ok(format!("{before}members = [{}]{after}", ours.join(", ")))
}

fn copy(from: &Path, to: &Path, below: &str) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    for entry in fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let file = format!("{below}{}", name.to_string_lossy());
        if path.is_dir() {
            copy(&path, &to.join(&name), &format!("{file}/"))?;
            continue;
        }
        if path.extension().is_none_or(|e| e != "rs" && e != "toml") {
            fs::copy(&path, to.join(&name)).map_err(|e| format!("{}: {e}", path.display()))?;
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut text = broken(&file, &text)?;
        if file == "storage/media/src/lib.rs" {
            text.push_str(CHOSEN);
        }
        write(&to.join(&name), &text)?;
    }
    Ok(())
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
