//! The environment of a command of LMDB's own tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options that take a value: `-f FILE`, `-s TABLE`.
const WITH_VALUE: [&str; 2] = ["-f", "-s"];

/// The directory of the environment, which is the first argument that is no option, nor an option's value.
pub fn directory(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if WITH_VALUE.contains(&&*text) {
            rest.next();
        } else if !text.starts_with('-') {
            let path = Path::new(argument);
            // With -n it is a file: the data itself.
            return Some(if path.is_dir() { path.to_owned() } else { super::directory_of(path) });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn the_environment_is_the_first_argument() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().to_str().expect("a name");
        for text in ["", "-n ", "-T -f dump -s table "] {
            assert_eq!(directory(&args(&format!("{text}{path}"))).as_deref(), Some(dir.path()), "{text}");
        }
        assert_eq!(directory(&args(&format!("-n {path}/a.mdb"))).as_deref(), Some(dir.path()));
        assert_eq!(directory(&args("-V")), None);
    }
}
