//! A unit as its files describe it: only what attaching has to know.
//!
//! In: a service's name as people write it. Out: its full name, and the settings of the unit file and its
//! drop-ins, the last one winning. No systemd is needed, so it works below `--root` too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::machine::{Machine, UNIT_DIRS};

/// Name of our drop-in.
pub const DROP_IN: &str = "seawall.conf";

/// A unit that exists.
pub struct Unit {
    /// Its name, `.service` and all.
    pub name: String,
    /// Settings in the order in which systemd reads them.
    settings: Vec<(String, String)>,
}

/// The name with its suffix.
///
/// # Errors
/// If it cannot be a service's name.
pub fn full_name(service: &str) -> Result<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if service.is_empty() || !service.chars().all(legal) {
        bail!(
            "{service:?} is not the name of a service: give it as systemctl shows it, for example \
               postgresql@15-main"
        );
    }
    Ok(if service.ends_with(".service") { service.to_owned() } else { format!("{service}.service") })
}

/// The service's own name, without its suffix.
pub fn short_name(unit: &str) -> &str {
    unit.strip_suffix(".service").unwrap_or(unit)
}

/// Where the drop-in of a unit is.
pub fn drop_in(unit: &str) -> PathBuf {
    Path::new("/etc/systemd/system").join(format!("{unit}.d")).join(DROP_IN)
}

impl Unit {
    /// Finds a service's unit; an alias (a symbolic link) leads to the real one.
    ///
    /// # Errors
    /// If there is none, or it is masked.
    pub fn find(machine: &Machine, service: &str) -> Result<Self> {
        let asked = full_name(service)?;
        let Some(file) = locate(machine, &asked) else {
            bail!(
                "there is no service {service}: `systemctl list-units --type=service` shows those that run. \
                 Debian calls a PostgreSQL service postgresql@VERSION-CLUSTER (pg_lsclusters)"
            );
        };
        let real = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
        if real == Path::new("/dev/null") || fs::metadata(&file).is_ok_and(|m| m.len() == 0) {
            bail!("the service {service} is masked: `systemctl unmask {service}` first");
        }
        let real_name = real.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let name =
            if real_name.contains("@.") || !real_name.ends_with(".service") { asked } else { real_name };
        let mut settings = parse(&fs::read_to_string(&file)?);
        for path in drop_ins(machine, &name) {
            settings.extend(parse(&fs::read_to_string(path)?));
        }
        Ok(Self { name, settings })
    }

    /// The last value of a setting; an empty one counts as unset.
    pub fn get(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|(k, _)| k == key);
        last.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a setting that adds up, since the last empty one.
    pub fn all(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (_, value) in self.settings.iter().filter(|(k, _)| k == key) {
            if value.is_empty() {
                values.clear();
            } else {
                values.push(value.as_str());
            }
        }
        values
    }

    /// A variable that its Environment= settings set.
    pub fn variable(&self, name: &str) -> Option<String> {
        let words = self.all("Environment").into_iter().flat_map(str::split_whitespace);
        let unquoted = words.map(|word| word.trim_matches(['"', '\'']));
        unquoted.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next_back().map(str::to_owned)
    }
}

/// The unit's file; an instance's is its template.
fn locate(machine: &Machine, unit: &str) -> Option<PathBuf> {
    let template = unit.split_once('@').map(|(prefix, _)| format!("{prefix}@.service"));
    let names = std::iter::once(unit.to_owned()).chain(template);
    names
        .flat_map(|name| UNIT_DIRS.map(|dir| machine.at(dir).join(&name)))
        .find(|path| path.symlink_metadata().is_ok())
}

/// Drop-ins of others, by name over all directories.
fn drop_ins(machine: &Machine, unit: &str) -> Vec<PathBuf> {
    let template = unit.split_once('@').map(|(prefix, _)| format!("{prefix}@.service"));
    let dirs = template.into_iter().chain([unit.to_owned()]);
    let dirs = dirs.flat_map(|name| UNIT_DIRS.map(|dir| machine.at(dir).join(format!("{name}.d"))));
    let entries = dirs.filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten().map(|e| e.path());
    let mut found: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "conf") && p.file_name().is_some_and(|n| n != DROP_IN))
        .collect();
    found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    found.dedup_by(|a, b| a.file_name() == b.file_name());
    found
}

/// `Key=value` lines; a backslash at the end goes on in the next one.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '[']));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// A path as part of a unit's name: `systemd-escape --path`.
pub fn escape_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let trimmed = text.trim_matches('/');
    let mut name = String::new();
    for (i, byte) in trimmed.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if i == 0 => name.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => name.push(byte as char),
            other => name.push_str(&format!("\\x{other:02x}")),
        }
    }
    name
}

/// Where a unit of ours is.
pub fn made(unit: &str) -> PathBuf {
    Path::new("/etc/systemd/system").join(unit)
}

/// The name of the unit that asks a service for its checkpoints.
pub fn pacer(service: &str) -> String {
    format!("seawall-pace-{service}")
}

/// The name of the unit that follows a service's tables.
pub fn follower(service: &str) -> String {
    format!("seawall-follow-{service}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_as_systemd_does() {
        for (path, name) in [
            ("/mnt/pmem/pg.pool", "mnt-pmem-pg.pool"),
            ("/dev/shm/seawall-115.pool", "dev-shm-seawall\\x2d115.pool"),
            ("/.a b/c", "\\x2ea\\x20b-c"),
        ] {
            assert_eq!(escape_path(Path::new(path)), name, "{path}");
        }
    }

    #[test]
    fn the_last_setting_wins_and_an_empty_one_starts_anew() {
        let text = "[Service]\n# User=x\nUser=a\nEnvironment=A=1 \\\n  \"B=2\"\nUser = b\nEnvironment=B=3\n";
        let unit = Unit { name: "x.service".into(), settings: parse(text) };
        assert_eq!(unit.get("User"), Some("b"));
        assert_eq!(unit.variable("A").as_deref(), Some("1"));
        assert_eq!(unit.variable("B").as_deref(), Some("3"));
        let unit = Unit { name: "x.service".into(), settings: parse("Environment=A=1\nEnvironment=\n") };
        assert_eq!(unit.variable("A"), None);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        assert_eq!(full_name("a@15-b").expect("a name"), "a@15-b.service");
        for wrong in ["", "a/b", "a b", "../x"] {
            assert!(full_name(wrong).is_err(), "{wrong}");
        }
    }
}
