//! MariaDB's data directory: from the command, else from the option files, as the server finds it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options;

/// What the server has compiled in, on every distribution we know.
const DEFAULT: &str = "/var/lib/mysql";
/// MariaDB's own reader of option files; it has the older name everywhere.
const READER: &str = "my_print_defaults";
/// Options that say which files are read. The server wants them first, and so does the reader.
const FILE_OPTIONS: [&str; 4] =
    ["--no-defaults", "--defaults-file", "--defaults-extra-file", "--defaults-group-suffix"];

/// The directory. The last option counts; the command comes after the files.
pub fn directory(arguments: &[OsString]) -> PathBuf {
    value(arguments).or_else(|| value(&from_files(arguments))).unwrap_or_else(|| PathBuf::from(DEFAULT))
}

/// True if an option has the server run as root, which it does not do by itself.
pub fn stays_root(arguments: &[OsString]) -> bool {
    let all: Vec<OsString> = from_files(arguments).iter().chain(arguments).cloned().collect();
    options::value(&all, "--user", "-u")
        .is_some_and(|user| ["root", "0"].iter().any(|root| user == Path::new(root)))
}

/// Directories that hold tablespaces outside of the data directory: by options, and by InnoDB's own notes of
/// where a table is (`SCHEMA/TABLE.isl`).
pub fn elsewhere(data: &Path, arguments: &[OsString]) -> Vec<PathBuf> {
    let all: Vec<OsString> = from_files(arguments).iter().chain(arguments).map(dashed).collect();
    let options = ["--innodb-data-home-dir", "--innodb-undo-directory"];
    let by_option = options.iter().filter_map(|name| options::value(&all, name, ""));
    let by_option = by_option.map(|path| data.join(path));
    let list = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let notes = list(data).filter(|path| path.is_dir()).flat_map(|schema| list(&schema));
    let notes = notes.filter(|path| path.extension().is_some_and(|end| end == "isl"));
    let by_note = notes.filter_map(|note| {
        let table = std::fs::read_to_string(note).ok()?;
        Path::new(table.trim()).parent().map(Path::to_owned)
    });
    by_option.chain(by_note).collect()
}

/// The server takes `_` for `-` in a name.
fn dashed(option: &OsString) -> OsString {
    let bytes = option.as_bytes();
    let name = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
    let mut all = bytes.to_vec();
    all[..name].iter_mut().filter(|byte| **byte == b'_').for_each(|byte| *byte = b'-');
    OsString::from_vec(all)
}

fn value(options: &[OsString]) -> Option<PathBuf> {
    options::value(options, "--datadir", "-h")
}

/// The options that the server finds in its files; none if they cannot be read.
fn from_files(arguments: &[OsString]) -> Vec<OsString> {
    let mut command = Command::new(READER);
    command.args(which_files(arguments)).arg("--mysqld").stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().map(|output| output.stdout).unwrap_or_default();
    said.split(|byte| *byte == b'\n').map(|line| OsString::from_vec(line.to_vec())).collect()
}

fn which_files(arguments: &[OsString]) -> impl Iterator<Item = &OsString> {
    arguments.iter().take_while(|argument| {
        let name = argument.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        FILE_OPTIONS.iter().any(|option| option.as_bytes() == name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_command_comes_before_the_files() {
        assert_eq!(directory(&args("--no-defaults --datadir=/d")), Path::new("/d"));
        assert_eq!(directory(&args("--no-defaults")), Path::new(DEFAULT));
    }

    #[test]
    fn tablespaces_elsewhere_are_found_by_options_and_by_notes() {
        let data = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(data.path().join("test")).expect("a schema");
        std::fs::write(data.path().join("test/t.isl"), "/other/test/t.ibd").expect("written");
        let found = elsewhere(data.path(), &args("--no-defaults --innodb_undo_directory=/undo --port=1"));
        assert_eq!(found, [Path::new("/undo"), Path::new("/other/test")]);
        let found = elsewhere(data.path(), &args("--no-defaults --innodb-data-home-dir=sys"));
        assert_eq!(found, [data.path().join("sys"), "/other/test".into()]);
    }

    #[test]
    fn it_is_root_only_if_it_is_told() {
        for (text, stays) in
            [("--user=root", true), ("-uroot", true), ("--user=mysql", false), ("--port=1", false)]
        {
            assert_eq!(stays_root(&args(&format!("--no-defaults {text}"))), stays, "{text}");
        }
    }

    #[test]
    fn only_leading_options_name_files() {
        let all = args("--defaults-file=/a --defaults-group-suffix=b --port=1 --no-defaults");
        assert_eq!(which_files(&all).count(), 2);
    }
}
