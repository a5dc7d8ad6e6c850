//! The database of an `sqlite3` command.

use std::ffi::OsString;
use std::path::PathBuf;

/// Options of the sqlite3 shell that take values, and how many.
const SQLITE_OPTIONS: [(&str, usize); 14] = [
    ("A", 1),
    ("cmd", 1),
    ("init", 1),
    ("separator", 1),
    ("newline", 1),
    ("nullvalue", 1),
    ("vfs", 1),
    ("mmap", 1),
    ("maxsize", 1),
    ("lookaside", 2),
    ("pagecache", 2),
    ("nonce", 1),
    ("escape", 1),
    ("zip", 0),
];

/// The first argument that is no option, nor an option's value.
pub fn file(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if !text.starts_with('-') {
            return file_of(&text).map(|name| if name == text { argument.into() } else { name.into() });
        }
        let name = text.trim_start_matches('-');
        let values = SQLITE_OPTIONS.iter().find(|(option, _)| *option == name).map_or(0, |(_, n)| *n);
        for _ in 0..values {
            rest.next();
        }
    }
    None
}

/// A database's name as SQLite takes it: a path, or a `file:` URI. `None`: it is kept in memory.
fn file_of(name: &str) -> Option<String> {
    let path = match name.strip_prefix("file:") {
        Some(uri) => uri.split(['?', '#']).next().unwrap_or(uri).trim_start_matches("//"),
        None => name,
    };
    (!path.is_empty() && path != ":memory:").then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_database_of_the_shell_is_its_first_argument() {
        for text in [
            "/d/a.db",
            "-batch /d/a.db .dump",
            "-cmd .timer /d/a.db",
            "-separator , /d/a.db",
            "file:/d/a.db?mode=rw",
        ] {
            assert_eq!(file(&args(text)), Some("/d/a.db".into()), "{text}");
        }
        assert_eq!(file(&args(":memory:")), None);
        assert_eq!(file(&args("-version")), None);
    }
}
