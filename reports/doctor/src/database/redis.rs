//! Redis and Valkey: the configuration file whose `dir` is this directory.

use std::path::{Path, PathBuf};

use super::found::{Database, Engine};
use super::process;
use super::settings::Settings;
use crate::finding::Unseen;
use crate::root::Root;

const DEPTH: usize = 10;

/// Reads what is there.
pub fn read(root: &Root, data: &Path) -> Database {
    let mut found = Database::new(Engine::Redis, data);
    let of_data = candidates(root, data).into_iter().find_map(|file| {
        let mut settings = Settings::default();
        include(root, &file, &mut settings, 0);
        let dir = settings.value("dir").map(|dir| root.resolve(Path::new(dir)));
        let beside = file.parent() == Some(data);
        (dir.map_or(beside, |dir| dir.is_ok_and(|dir| dir == data))).then_some(settings)
    });
    match of_data {
        Some(settings) => found.settings = settings,
        None => found.unseen.push(Unseen::asked(
            "Redis's settings",
            format!(
                "no readable configuration has `dir {}`: CONFIG GET '*' shows the values in force",
                data.display()
            ),
        )),
    }
    let named = found.settings.value("appenddirname").unwrap_or("appendonlydir");
    let log = data.join(named);
    found.log = root.resolve(&log).unwrap_or_else(|_| data.to_owned());
    let pid = found.settings.value("pidfile").and_then(|file| root.number(file));
    found.process = pid.and_then(|pid| process::read(root, pid, &["redis", "valkey"]));
    found.unseen.push(Unseen::aside(
        "settings that were changed by CONFIG SET",
        "they are in the server: CONFIG GET '*'",
    ));
    found
}

fn candidates(root: &Root, data: &Path) -> Vec<PathBuf> {
    let dirs = [
        data.to_owned(),
        "/etc/redis".into(),
        "/etc/valkey".into(),
        "/etc".into(),
        "/usr/local/etc/redis".into(),
    ];
    let is_one =
        |name: &String| name.ends_with(".conf") && (name.starts_with("redis") || name.starts_with("valkey"));
    dirs.iter()
        .flat_map(|dir| root.names(dir).into_iter().filter(is_one).map(|name| dir.join(name)))
        .collect()
}

fn include(root: &Root, file: &Path, settings: &mut Settings, depth: usize) {
    let Some(text) = root.text(file).filter(|_| depth < DEPTH) else { return };
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some((name, value)) = line.split_once(char::is_whitespace).filter(|_| !line.starts_with('#'))
        else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        match name.to_ascii_lowercase().as_str() {
            "include" => include(root, Path::new(value), settings, depth + 1),
            _ => settings.set(name, value, format!("{}:{}", file.display(), i + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_names_the_directory_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        for made in ["etc/redis", "var/a", "var/b"] {
            std::fs::create_dir_all(dir.path().join(made)).expect("made");
        }
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        write("etc/redis/redis-a.conf", "dir /var/a\nappendonly no\n");
        write("etc/redis/redis-b.conf", "# x\ndir \"/var/b\"\nappendonly yes\nAppendFsync no\n");
        let found = read(&Root::at(dir.path()), Path::new("/var/b"));
        assert_eq!(found.settings.value("appendfsync"), Some("no"));
        assert!(found.unseen.iter().all(|unseen| !unseen.asked));
        let lost = read(&Root::at(dir.path()), Path::new("/var"));
        assert!(lost.unseen.iter().any(|unseen| unseen.asked));
    }
}
