//! Which crates may depend on which: the directories at the root of the tree are groups, and dependencies go one way.
//!
//! Inputs: the manifests. Output: what points the wrong way. Dev-dependencies are free: a test may use anything.

use std::path::{Path, PathBuf};

/// The groups, each of which may use itself and those before it.
pub const GROUPS: [&str; 5] = [
    // What runs below a database.
    "storage", // What looks, and changes nothing.
    "reports", // The program `seawall`.
    "command", // What measures.
    "measure", // What tries to break it.
    "proof",
];

/// The directories of all crates of the tree at `root`, `xtask` among them, in order.
///
/// # Errors
/// If a group cannot be read.
pub fn crates(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut crates = vec![root.join("xtask")];
    for group in GROUPS {
        let at = root.join(group);
        let failed = |e: std::io::Error| format!("{}: {e}", at.display());
        for entry in std::fs::read_dir(&at).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.join("Cargo.toml").exists() {
                crates.push(path);
            }
        }
    }
    crates.sort();
    Ok(crates)
}

/// Dependencies that go against the order of the groups of the tree at `root`.
///
/// # Errors
/// A manifest that cannot be read.
pub fn wrong(root: &Path) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for at in crates(root)? {
        let manifest = at.join("Cargo.toml");
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", manifest.display());
        let text = std::fs::read_to_string(&manifest).map_err(|e| failed(&e))?;
        all.push(Crate::of(root, &at, &text).map_err(|e| failed(&e))?);
    }
    Ok(against_the_order(&all))
}

/// A crate, and what it depends on.
struct Crate {
    name: String,
    group: String,
    uses: Vec<String>,
}

impl Crate {
    fn of(root: &Path, at: &Path, manifest: &str) -> Result<Self, toml::de::Error> {
        let manifest: toml::Table = toml::from_str(manifest)?;
        let keys = |table: &str| {
            let table = manifest.get(table).and_then(toml::Value::as_table);
            table.map(|table| table.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
        };
        let group = at.strip_prefix(root).unwrap_or(at).iter().next().unwrap_or_default();
        let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        Ok(Self {
            name: name.unwrap_or_default().to_owned(),
            group: group.to_string_lossy().into_owned(),
            uses: [keys("dependencies"), keys("build-dependencies")].concat(),
        })
    }

    /// Its group's place in the order; `xtask` stands outside.
    fn place(&self) -> Option<usize> {
        GROUPS.iter().position(|group| *group == self.group)
    }
}

fn against_the_order(all: &[Crate]) -> Vec<String> {
    let mut wrong = Vec::new();
    for of in all {
        let Some(place) = of.place() else { continue };
        for used in all.iter().filter(|other| of.uses.contains(&other.name)) {
            if used.place().is_none_or(|other| other > place) {
                wrong.push(format!("{}/{} depends on {}/{}", of.group, of.name, used.group, used.name));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(group: &str, name: &str, uses: &str) -> Crate {
        let text = format!(
            "[package]\nname = {name:?}\n[dependencies]\n{uses}\n[dev-dependencies]\nproof-x = \"1\""
        );
        Crate::of(Path::new("/r"), &Path::new("/r").join(group).join(name), &text).expect("a manifest")
    }

    #[test]
    fn what_points_back_is_found_and_what_tests_use_is_not() {
        let all = [
            made_up("storage", "core", "measure-x = \"1\""),
            made_up("measure", "measure-x", "core.workspace = true"),
            made_up("proof", "proof-x", "measure-x = \"1\""),
        ];
        assert_eq!(against_the_order(&all), ["storage/core depends on measure/measure-x"]);
    }
}
