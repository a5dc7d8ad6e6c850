//! MariaDB's data directory: from the command, else from the option files, as the server finds it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
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
    use std::path::Path;

    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_command_comes_before_the_files() {
        assert_eq!(directory(&args("--no-defaults --datadir=/d")), Path::new("/d"));
        assert_eq!(directory(&args("--no-defaults")), Path::new(DEFAULT));
    }

    #[test]
    fn only_leading_options_name_files() {
        let all = args("--defaults-file=/a --defaults-group-suffix=b --port=1 --no-defaults");
        assert_eq!(which_files(&all).count(), 2);
    }
}
