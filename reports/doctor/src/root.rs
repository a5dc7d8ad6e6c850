//! Files below a root directory: `/` in production, a recorded machine in tests.
//!
//! Every path is absolute as the machine names it. Symbolic links are followed inside the root, as chroot(2) would, because
//! sysfs is made of them. Nothing is written, and only ordinary files are opened: a FIFO would hold us up.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// A longer file is none of those that are read here.
const LONGEST: u64 = 4 << 20;
/// As many links as the kernel follows.
const LINKS: usize = 40;

/// The directory that stands for `/`.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The machine whose `/` is `dir`.
    pub fn at(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// Where the host that runs us has this path.
    pub fn host_path(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The content of a file, without the line's end.
    ///
    /// # Errors
    /// It is not there, or we may not read it.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).trim_end().to_owned())
    }

    /// The same as bytes.
    ///
    /// # Errors
    /// It is not there, or we may not read it.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let real = self.host_path(&self.resolve(path.as_ref())?);
        if !fs::metadata(&real)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut found = Vec::new();
        File::open(real)?.take(LONGEST).read_to_end(&mut found)?;
        Ok(found)
    }

    /// The content, if the file can be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok().map(|text| text.trim().to_owned())
    }

    /// A number, if the file holds one.
    pub fn number<N: FromStr>(&self, path: impl AsRef<Path>) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let Ok(real) = self.resolve(dir.as_ref()) else { return Vec::new() };
        let entries = fs::read_dir(self.host_path(&real)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// True if something is there.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.resolve(path.as_ref()).is_ok()
    }

    /// The path with every link followed.
    ///
    /// # Errors
    /// A part of it is not there, or cannot be looked at.
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut rest: VecDeque<OsString> = parts(path);
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let there = self.host_path(&next);
            if !fs::symlink_metadata(&there)?.is_symlink() {
                real = next;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            let target = fs::read_link(&there)?;
            if target.is_absolute() {
                real = "/".into();
            }
            parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
        }
        Ok(real)
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let meant = path.components().filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir));
    meant.map(|c| c.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_inside_the_root() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("wal/pg_wal")).expect("made");
        fs::create_dir(dir.path().join("data")).expect("made");
        fs::write(dir.path().join("wal/pg_wal/x"), "12\n").expect("written");
        symlink("/wal/pg_wal", dir.path().join("data/pg_wal")).expect("a link");
        symlink("../wal/./pg_wal", dir.path().join("data/relative")).expect("a link");
        symlink("loop", dir.path().join("data/loop")).expect("a link");
        let root = Root::at(dir.path());
        for path in ["/data/pg_wal/x", "/data/relative/x", "/../data/pg_wal/x"] {
            assert_eq!(root.number::<u32>(path), Some(12), "{path}");
        }
        assert_eq!(root.resolve(Path::new("/data/pg_wal/x")).expect("there"), Path::new("/wal/pg_wal/x"));
        assert!(root.resolve(Path::new("/data/loop")).is_err() && !root.has("/data/nothing"));
        assert_eq!(root.names("/data"), ["loop", "pg_wal", "relative"]);
        assert!(root.read("/data").is_err(), "a directory is no file");
    }
}
