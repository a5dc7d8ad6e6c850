//! Options that name a directory, in the spellings databases know.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The value of the option `long` (`--long VALUE`, `--long=VALUE`) or `short` (`-D VALUE`, `-DVALUE`; empty for
/// none). The last one counts.
pub fn value(arguments: &[OsString], long: &str, short: &str) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    let mut found = None;
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == long.as_bytes() || !short.is_empty() && bytes == short.as_bytes() {
            found = rest.next().map(PathBuf::from);
        } else if let Some(value) = attached(bytes, long, short) {
            found = Some(OsStr::from_bytes(value).into());
        }
    }
    found
}

fn attached<'a>(argument: &'a [u8], long: &str, short: &str) -> Option<&'a [u8]> {
    let long = argument.strip_prefix(long.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
    long.or_else(|| argument.strip_prefix(short.as_bytes()).filter(|_| !short.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn a_directory_is_found_in_every_spelling() {
        for text in ["-D /d", "-D/d", "start -w --pgdata /d -l x", "--pgdata=/d", "-D /old -D /d"] {
            assert_eq!(value(&args(text), "--pgdata", "-D"), Some("/d".into()), "{text}");
        }
        assert_eq!(value(&args("-c fsync=on"), "--pgdata", "-D"), None);
        assert_eq!(value(&args("--db=/d -x"), "--db", ""), Some("/d".into()));
        assert_eq!(value(&args("--dbx=/d"), "--db", ""), None);
    }
}
