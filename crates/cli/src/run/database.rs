//! Which database, and where its data is: from --preset and --data, else from the command itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::AddRoot;

use super::program::Program;

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

/// The directories to manage.
///
/// # Errors
/// If neither the options nor the command say, or a directory is not there.
pub fn find(
    preset: Option<&str>,
    data: &[PathBuf],
    program: &Program,
    arguments: &[OsString],
) -> Result<Vec<AddRoot>> {
    let preset = match preset.or_else(|| by_name(&program.name)) {
        Some(preset) => preset,
        None => bail!(
            "what does {} write: PostgreSQL or SQLite data? Say so with --preset postgres --data PGDATA, or \
             --preset sqlite --data DIRECTORY",
            program.name
        ),
    };
    let found = if data.is_empty() { vec![from_command(preset, arguments)?] } else { data.to_vec() };
    found.iter().map(|dir| root(preset, dir)).collect()
}

fn by_name(program: &str) -> Option<&'static str> {
    match program {
        "postgres" | "postmaster" | "pg_ctl" => Some("postgres"),
        "sqlite3" => Some("sqlite"),
        _ => None,
    }
}

fn from_command(preset: &str, arguments: &[OsString]) -> Result<PathBuf> {
    if preset == "postgres" {
        return pgdata(arguments)
            .or_else(|| std::env::var_os("PGDATA").map(PathBuf::from))
            .context("where is the data? Give -D, PGDATA or --data");
    }
    let file = sqlite_file(arguments)
        .context("which database? Give a file to sqlite3, or its directory with --data")?;
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(parent.to_owned())
}

/// `-D DIR`, `-DDIR`, `--pgdata DIR`, `--pgdata=DIR`.
fn pgdata(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"-D" || bytes == b"--pgdata" {
            return rest.next().map(PathBuf::from);
        }
        let attached = bytes.strip_prefix(b"--pgdata=").or_else(|| bytes.strip_prefix(b"-D"));
        if let Some(dir) = attached {
            return Some(OsStr::from_bytes(dir).into());
        }
    }
    None
}

/// The first argument that is no option, nor an option's value.
fn sqlite_file(arguments: &[OsString]) -> Option<PathBuf> {
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

/// What is managed: of PostgreSQL the log, of SQLite the directory.
fn root(preset: &str, data: &Path) -> Result<AddRoot> {
    let real = |path: &Path| {
        std::fs::canonicalize(path).with_context(|| {
            format!("{}: has the directory moved? Give the present one with --data", path.display())
        })
    };
    let data = real(data)?;
    let path = match preset {
        "postgres" if !data.join("PG_VERSION").exists() => {
            bail!("{} is no PGDATA (it has no PG_VERSION): run initdb first, without Seawall", data.display())
        }
        "postgres" => real(&data.join("pg_wal"))?,
        _ => data.clone(),
    };
    if !path.is_dir() {
        bail!("{} is not a directory", path.display());
    }
    Ok(AddRoot { preset: preset.into(), path, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn pgdata_is_found_in_every_spelling() {
        for text in ["-D /d", "-D/d", "start -w --pgdata /d -l x", "--pgdata=/d"] {
            assert_eq!(pgdata(&args(text)), Some("/d".into()), "{text}");
        }
        assert_eq!(pgdata(&args("-c fsync=on")), None);
    }

    #[test]
    fn the_database_of_the_shell_is_its_first_argument() {
        for text in [
            "/d/a.db",
            "-batch /d/a.db .dump",
            "-cmd .timer /d/a.db",
            "-separator , /d/a.db",
            "file:/d/a.db?mode=rw",
        ] {
            assert_eq!(sqlite_file(&args(text)), Some("/d/a.db".into()), "{text}");
        }
        assert_eq!(sqlite_file(&args(":memory:")), None);
        assert_eq!(sqlite_file(&args("-version")), None);
    }

    #[test]
    fn a_directory_that_is_gone_is_named() {
        let error = root("sqlite", Path::new("/no/such/place")).expect_err("no directory");
        assert!(format!("{error:#}").contains("/no/such/place"));
        let dir = tempfile::tempdir().expect("a directory");
        let error = root("postgres", dir.path()).expect_err("no PGDATA");
        assert!(error.to_string().contains("initdb"), "{error}");
    }
}
