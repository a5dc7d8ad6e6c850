//! `xtask mutate-fences`: what keeps the promises is removed, one thing at a time, and something must die.
//!
//! Every flush and fence that the simulator reaches is broken at run time, by its line. Every checksum check,
//! watermark, real fsync, row of the decision table and step of the protocol in [`list`] is broken in a copy of
//! the sources ([`tree`]). Each mutant faces the simulator, and if it survives that, core's own tests; first it is
//! looked for where it died before ([`deaths`]). Some face the tests of another crate, and nothing else ([`kind::ALONE`]).
//!
//! What fails with nothing broken kills nobody: all tests are run so at first, and a seed in which a mutant dies is run
//! once more without it.
//!
//! Output: a table, a JSON file, status 1 if a mutant survives. A survivor is a hole in the simulator or
//! something needless: close the one or delete the other.

mod built;
mod deaths;
mod fate;
mod kind;
mod list;
mod tree;

use std::path::{Path, PathBuf};

use deaths::Deaths;
pub use fate::Fate;
use list::NEEDLESS;
pub use list::{MUTANTS, Mutant};
pub use tree::broken;

/// Crash points after which a mutant counts as a survivor of the simulator.
pub const POINTS: &str = "150000";

/// Runs all mutants whose name contains `only`, or one of the parts that `|` separates in it, against so many crash points;
/// returns how many survived.
///
/// # Errors
/// Whatever keeps them from being run.
pub fn run(root: &Path, only: &str, points: &str, json: &Path) -> Result<usize, String> {
    let copy = target(root).join("mutants");
    tree::make(root, &copy)?;
    let built = built::build(&copy)?;
    // As many as a mutant faces: else one could be said to be killed by what fails without it.
    let whole = built.face("", None, points);
    if let Some(what) = whole.killed_by {
        return Err(format!("with nothing broken, {what} fails: {}", whole.because));
    }
    let mut deaths = Deaths::of(target(root).join("mutants-died.json"));
    let mut fates = Vec::new();
    for name in built.sites()?.into_iter().chain(MUTANTS.iter().map(|m| m.name.to_owned())) {
        if is_wanted(&name, only) {
            let mut fate = built.face(&name, deaths.place(&name), points);
            fate.needless = needless(root, &name);
            deaths.note(&fate)?;
            println!("{}", fate.line());
            fates.push(fate);
        }
    }
    write(json, &fates)?;
    let survivors = fates.iter().filter(|fate| fate.is_survival()).count();
    let killed = fates.iter().filter(|fate| fate.killed_by.is_some()).count();
    println!("{} mutants, {killed} killed, {survivors} survived", fates.len());
    Ok(survivors)
}

fn is_wanted(name: &str, only: &str) -> bool {
    only.split('|').any(|part| name.contains(part))
}

/// Why nobody needs what is at this site, if that is known.
fn needless(root: &Path, name: &str) -> Option<&'static str> {
    let site = name.strip_prefix("flush:").or_else(|| name.strip_prefix("fence:"))?;
    let (file, line) = site.rsplit_once(':')?;
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    let text = text.lines().nth(line.parse::<usize>().ok()?.checked_sub(1)?)?;
    NEEDLESS.iter().find(|(of, part, _)| *of == file && text.contains(part)).map(|(_, _, why)| *why)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn write(json: &Path, fates: &[Fate]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", json.display());
    if let Some(dir) = json.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    let text = serde_json::to_string_pretty(fates).map_err(|e| e.to_string())?;
    std::fs::write(json, text + "\n").map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::is_wanted;

    #[test]
    fn several_parts_of_names_are_wanted_at_once() {
        for (name, only, expected) in [
            ("row R2: slot not used", "", true),
            ("row R2: slot not used", "R2", true),
            ("row R2: slot not used", "spill: |row R2", true),
            ("row R1: retired", "spill: |row R2", false),
        ] {
            assert_eq!(is_wanted(name, only), expected, "{name} of {only}");
        }
    }
}
