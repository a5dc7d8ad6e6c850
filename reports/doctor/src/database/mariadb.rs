//! MariaDB and MySQL: option files, in the order and the groups that the server reads.

use std::path::{Path, PathBuf};

use super::found::{Database, Engine};
use super::process;
use super::settings::Settings;
use crate::finding::Unseen;
use crate::root::Root;

const FILES: [&str; 3] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/etc/mysql/mariadb.cnf"];
const GROUPS: [&str; 5] = ["mysqld", "server", "mariadb", "mariadbd", "galera"];
const DEPTH: usize = 10;

/// Reads what is there.
pub fn read(root: &Root, data: &Path) -> Database {
    let mut found = Database::new(Engine::Mariadb, data);
    let mut seen = Vec::new();
    for file in FILES {
        include(root, Path::new(file), &mut found.settings, &mut seen, 0);
    }
    let elsewhere = found
        .settings
        .get("datadir")
        .filter(|dir| root.resolve(Path::new(&dir.value)).is_ok_and(|dir| dir != data));
    let unsure = match (seen.is_empty(), elsewhere.cloned()) {
        (true, _) => Some("no option file can be read below /etc".to_owned()),
        (_, Some(dir)) => Some(format!("{} is for {}", dir.place, dir.value)),
        _ => None,
    };
    if let Some(why) = unsure {
        found.settings = Settings::default();
        found.unseen.push(Unseen::asked(
            "MariaDB's settings",
            format!("{why}: SHOW VARIABLES shows the values in force"),
        ));
    }
    let named = found.settings.value("innodb_log_group_home_dir").map(|dir| data.join(dir));
    found.log = named.and_then(|dir| root.resolve(&dir).ok()).unwrap_or_else(|| data.to_owned());
    if root.has(data.join("mysql.ibd")) && found.settings.get("sync_binlog").is_none() {
        found.settings.set("sync_binlog", "1", "MySQL's default");
    }
    found.page = found.settings.value("innodb_page_size").and_then(bytes).unwrap_or(16384);
    found.process =
        pid(root, data, &found.settings).and_then(|pid| process::read(root, pid, &["mariadbd", "mysqld"]));
    found.unseen.push(Unseen::aside(
        "settings that were changed by SET GLOBAL, or given on the command line",
        "they are in the server: SHOW GLOBAL VARIABLES",
    ));
    found
}

fn pid(root: &Root, data: &Path, settings: &Settings) -> Option<u32> {
    let named = settings.value("pid_file").map(|file| data.join(file));
    let usual = ["/run/mysqld/mysqld.pid", "/var/run/mysqld/mysqld.pid"].map(PathBuf::from);
    named.into_iter().chain(usual).find_map(|file| root.number(file))
}

/// `16k`, `4096`
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * factor)
}

fn include(root: &Root, file: &Path, settings: &mut Settings, seen: &mut Vec<PathBuf>, depth: usize) {
    let Ok(real) = root.resolve(file) else { return };
    let Some(text) = root.text(&real).filter(|_| depth < DEPTH && !seen.contains(&real)) else { return };
    seen.push(real);
    let mut ours = false;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            ours = is_ours(group);
        } else if let Some(other) = line.strip_prefix("!includedir") {
            let dir = PathBuf::from(other.trim());
            let files = root.names(&dir).into_iter().filter(|name| name.ends_with(".cnf"));
            files.for_each(|name| include(root, &dir.join(name), settings, seen, depth + 1));
        } else if let Some(other) = line.strip_prefix("!include") {
            include(root, Path::new(other.trim()), settings, seen, depth + 1);
        } else if ours {
            option(line, settings, || format!("{}:{}", file.display(), i + 1));
        }
    }
}

/// `mariadb-10.11` and `mysqld-8.0` are of one version: which one runs is not known, so they count.
fn is_ours(group: &str) -> bool {
    let (name, version) = group.split_once('-').unwrap_or((group, ""));
    GROUPS.contains(&name) && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn option(line: &str, settings: &mut Settings, place: impl Fn() -> String) {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() || line.starts_with(';') {
        return;
    }
    let (name, value) = line.split_once('=').map_or((line, "1"), |(name, value)| (name.trim(), value.trim()));
    let value = value.trim_matches(['"', '\'']);
    let name = name.replace('-', "_");
    match name.strip_prefix("skip_").filter(|_| value == "1") {
        Some(off) => settings.set(off, "0", place()),
        None => settings.set(name.strip_prefix("loose_").unwrap_or(&name), value, place()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_their_spellings() {
        let mut settings = Settings::default();
        let lines = [
            "innodb-flush-log-at-trx-commit = 2 # fast",
            "skip-innodb-doublewrite",
            "log_bin",
            "; x=1",
            "sync_binlog=0",
        ];
        lines.iter().for_each(|line| option(line, &mut settings, || "f".into()));
        assert_eq!(settings.value("innodb_flush_log_at_trx_commit"), Some("2"));
        assert!(settings.off("innodb_doublewrite").is_some() && settings.get("x").is_none());
        assert_eq!((settings.value("log_bin"), settings.value("sync_binlog")), (Some("1"), Some("0")));
        assert!(
            is_ours("mariadb-10.11")
                && is_ours("mysqld")
                && !is_ours("client-server")
                && !is_ours("mysqldump")
        );
        assert_eq!((bytes("16k"), bytes("4096"), bytes("x")), (Some(16384), Some(4096), None));
    }
}
