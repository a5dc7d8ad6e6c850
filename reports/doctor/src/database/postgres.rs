//! PostgreSQL: its configuration files, what was given on the command line, and its control file.

use std::path::{Path, PathBuf};

use super::found::{Database, Engine};
use super::process;
use super::settings::{COMMAND_LINE, Settings};
use crate::finding::Unseen;
use crate::root::Root;

/// Includes of includes: the server's own limit.
const DEPTH: usize = 10;
/// Where the control file says whether pages have checksums, and of which versions that was looked at.
const CHECKSUMS_AT: usize = 252;
const CONTROL_VERSIONS: [u32; 2] = [1300, 1800];

/// Reads what is there.
pub fn read(root: &Root, data: &Path) -> Database {
    let mut found = Database::new(Engine::Postgres, data);
    let opts = root.text(data.join("postmaster.opts")).map(|line| words(&line)).unwrap_or_default();
    match configuration(root, data, &opts) {
        Some(file) => include(root, &file, &mut found.settings, 0),
        None => found.unseen.push(Unseen::asked(
            "PostgreSQL's settings",
            format!("no readable postgresql.conf belongs to {}", data.display()),
        )),
    }
    include(root, &data.join("postgresql.auto.conf"), &mut found.settings, 0);
    arguments(&opts, &mut found.settings);
    found.log = root.resolve(&data.join("pg_wal")).unwrap_or_else(|_| data.join("pg_wal"));
    found.page = 8192;
    found.checksums = checksums(root, data);
    let pid = root.text(data.join("postmaster.pid"));
    let pid = pid.and_then(|text| text.lines().next()?.parse().ok());
    found.process = pid.and_then(|pid| process::read(root, pid, &["postgres", "postmaster"]));
    found.unseen.push(Unseen::aside(
        "settings of roles, databases and sessions",
        "they are in the database: SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting",
    ));
    found
}

/// The configuration file: the one that the server's options name, else beside the data, else where Debian has it.
fn configuration(root: &Root, data: &Path, opts: &[String]) -> Option<PathBuf> {
    let told = opts.iter().find_map(|word| word.strip_prefix("config_file=")).map(PathBuf::from);
    let debian = || {
        let base = Path::new("/etc/postgresql");
        let clusters = root.names(base).into_iter().flat_map(|version| {
            let at = base.join(version);
            root.names(&at).into_iter().map(move |cluster| at.join(cluster).join("postgresql.conf"))
        });
        clusters.into_iter().find(|file| is_for(root, file, data))
    };
    let readable = |file: &PathBuf| root.read(file).is_ok();
    told.filter(readable).or_else(|| Some(data.join("postgresql.conf")).filter(readable)).or_else(debian)
}

fn is_for(root: &Root, file: &Path, data: &Path) -> bool {
    let mut settings = Settings::default();
    include(root, file, &mut settings, 0);
    let named = settings.value("data_directory").map(|dir| root.resolve(Path::new(dir)));
    named.is_some_and(|dir| dir.is_ok_and(|dir| dir == data))
}

fn include(root: &Root, file: &Path, settings: &mut Settings, depth: usize) {
    let Some(text) = root.text(file).filter(|_| depth < DEPTH) else { return };
    let dir = file.parent().unwrap_or(Path::new("/"));
    for (i, line) in text.lines().enumerate() {
        let Some((name, value)) = setting(line) else { continue };
        match name.to_ascii_lowercase().as_str() {
            "include" | "include_if_exists" => include(root, &dir.join(value), settings, depth + 1),
            "include_dir" => {
                let dir = dir.join(value);
                let files =
                    root.names(&dir).into_iter().filter(|n| n.ends_with(".conf") && !n.starts_with('.'));
                files.for_each(|name| include(root, &dir.join(name), settings, depth + 1));
            }
            _ => settings.set(&name, &value, format!("{}:{}", file.display(), i + 1)),
        }
    }
}

/// `name = value # comment`, the value in quotes or not, the `=` there or not.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.replace("''", "\u{1}").split('\'').next()?.replace('\u{1}', "'"),
        None => rest.split(|c: char| c.is_whitespace() || c == '#').next()?.to_owned(),
    };
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value))
}

/// postmaster.opts: the program and its arguments, each in double quotes.
fn words(line: &str) -> Vec<String> {
    line.split(" \"").map(|word| word.trim().trim_end_matches('"').to_owned()).collect()
}

fn arguments(words: &[String], settings: &mut Settings) {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let pair = match word.as_str() {
            "-c" => rest.next().and_then(|next| next.split_once('=')),
            "-F" => Some(("fsync", "off")),
            word => {
                word.strip_prefix("--").or_else(|| word.strip_prefix("-c")).and_then(|w| w.split_once('='))
            }
        };
        if let Some((name, value)) = pair {
            settings.set(name, value, COMMAND_LINE);
        }
    }
}

fn checksums(root: &Root, data: &Path) -> Option<bool> {
    let control = root.bytes(data.join("global/pg_control")).ok()?;
    let word = |at: usize| Some(u32::from_le_bytes(control.get(at..at + 4)?.try_into().ok()?));
    let known = CONTROL_VERSIONS.contains(&word(8)?);
    known.then(|| word(CHECKSUMS_AT)).flatten().map(|version| version != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_server_reads_them() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(setting("fsync = off   # faster"), pair("fsync", "off"));
        assert_eq!(setting("  wal_sync_method 'open_datasync'"), pair("wal_sync_method", "open_datasync"));
        assert_eq!(setting("a='it''s' # x"), pair("a", "it's"));
        assert_eq!(setting("#fsync = off"), None);
        assert_eq!(setting(""), None);
    }

    #[test]
    fn the_command_line_has_the_last_word() {
        let mut settings = Settings::default();
        settings.set("fsync", "on", "a file");
        let line = "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/d\" \"-c\" \"fsync=off\" \"--synchronous-commit=off\"";
        arguments(&words(line), &mut settings);
        assert!(
            settings.off("fsync").is_some() && settings.off("synchronous_commit").is_some(),
            "{settings:?}"
        );
        arguments(&words("postgres \"-F\""), &mut settings);
        assert_eq!(settings.value("fsync"), Some("off"));
    }
}
