//! Where a `redis-server` command keeps its files: `--dir`, else `dir` in the configuration file, else here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::options;

/// A longer file is no configuration.
const LONGEST: u64 = 1 << 20;

/// The working directory. Files that the configuration includes are not read.
pub fn directory(arguments: &[OsString]) -> PathBuf {
    let configured = || {
        let file = arguments.first().filter(|first| !first.to_string_lossy().starts_with('-'))?;
        dir_of(&read(Path::new(file))?)
    };
    options::value(arguments, "--dir", "").or_else(configured).unwrap_or(Path::new(".").into())
}

/// A configuration: an ordinary file, and not a large one.
fn read(file: &Path) -> Option<String> {
    let is_one = std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.len() <= LONGEST);
    is_one.then(|| std::fs::read_to_string(file).ok())?
}

/// The last `dir` of a configuration.
fn dir_of(configuration: &str) -> Option<PathBuf> {
    let value = |line: &str| {
        let (key, value) = line.trim().split_once(char::is_whitespace)?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.eq_ignore_ascii_case("dir") && !value.is_empty()).then(|| value.into())
    };
    configuration.lines().filter_map(value).next_back()
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_directory_is_an_option_or_in_the_configuration() {
        assert_eq!(directory(&args("--port 0 --dir /d")), Path::new("/d"));
        assert_eq!(directory(&args("--port 0")), Path::new("."));
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("redis.conf");
        std::fs::write(&file, "# dir /no\nport 0\ndir ./old\n  Dir \"/var/lib/re dis\"\n").expect("written");
        assert_eq!(directory(&[file.clone().into()]), Path::new("/var/lib/re dis"));
        assert_eq!(directory(&[file.into(), "--dir".into(), "/d".into()]), Path::new("/d"));
    }
}
