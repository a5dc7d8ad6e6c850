//! Where a log's directories are on this host.
//!
//! A directory is known by file system and handle, not by its path: so it is found wherever its volume is mounted, and a
//! copy of it that was made file by file is another one, to which nothing in the log belongs.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use seawall_core::table::RootEntry;
use seawall_media::identity;
use serde::Serialize;

/// One of the log's directories.
#[derive(Debug, Serialize)]
pub struct Directory {
    /// Where it was on the former host.
    #[serde(with = "seawall_core::path_text")]
    pub registered: PathBuf,
    /// Where it is here; empty: nowhere.
    #[serde(with = "seawall_core::path_text")]
    pub here: PathBuf,
    /// Why not.
    pub trouble: Option<String>,
}

/// Looks for them: at `data`, and where they were. By their indices as they are to be from now on; those that are not here
/// are as they were.
pub(super) fn find(
    registered: &[(u32, RootEntry)],
    data: &[PathBuf],
) -> (BTreeMap<u32, RootEntry>, Vec<Directory>) {
    let (mut roots, mut seen) = (BTreeMap::new(), Vec::new());
    for (i, root) in registered {
        let mut candidates: Vec<(PathBuf, PathBuf)> =
            data.iter().flat_map(|dir| candidates(root, dir)).collect();
        candidates.push((root.path.clone(), root.data.clone()));
        let found = candidates.into_iter().find(|(path, _)| is(path, root));
        let trouble = found.is_none().then(|| why_not(root, data));
        let (path, of) = found.unwrap_or_default();
        seen.push(Directory { registered: root.path.clone(), here: path.clone(), trouble });
        let moved = RootEntry { path, data: of, ..root.clone() };
        roots.insert(*i, if moved.path.as_os_str().is_empty() { root.clone() } else { moved });
    }
    (roots, seen)
}

/// Where it may be if its database's directory is `dir` now, and where that one is then.
fn candidates(root: &RootEntry, dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(dir) = std::fs::canonicalize(dir) else { return Vec::new() };
    match root.path.strip_prefix(&root.data) {
        Ok(rest) => vec![(dir.join(rest).components().collect(), dir)],
        // A directory of its own, a log's for example: the database's is where it was.
        Err(_) => vec![(dir, root.data.clone())],
    }
}

fn is(path: &Path, root: &RootEntry) -> bool {
    let found = File::open(path).ok().and_then(|dir| identity(&dir).ok());
    found.is_some_and(|found| found == root.identity)
}

fn why_not(root: &RootEntry, data: &[PathBuf]) -> String {
    let there = data.iter().chain([&root.path]).find(|path| path.exists());
    match there {
        Some(path) => no_place(path),
        None => format!(
            "{} does not exist: is its volume mounted? Name its place with --data",
            root.path.display()
        ),
    }
}

/// The message about a place where nothing of the log's is.
pub(super) fn no_place(path: &Path) -> String {
    format!(
        "{} is not the log's directory: it is on another file system, or is another inode. A copy that was \
         made file by file cannot be brought up to date from the log",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use seawall_wire::shm::{Policy, Preset};

    use super::*;

    fn root(path: &Path, data: &Path) -> RootEntry {
        let identity = identity(File::open(path).expect("there")).expect("a stable handle");
        RootEntry {
            preset: Preset::Postgres,
            policy: Policy::Tail,
            path: path.into(),
            uid: 0,
            data: data.into(),
            identity,
        }
    }

    #[test]
    fn a_directory_is_found_under_another_path_and_a_copy_is_not_it() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = std::fs::canonicalize(place.path()).expect("real");
        let (was, now, copy) = (place.join("was"), place.join("now"), place.join("copy"));
        std::fs::create_dir_all(was.join("wal")).expect("made");
        std::fs::create_dir_all(copy.join("wal")).expect("made");
        let registered = [(0, root(&was.join("wal"), &was)), (3, root(&was, &was))];
        let (roots, seen) = find(&registered, &[]);
        assert!(seen.iter().all(|seen| seen.trouble.is_none() && seen.here == seen.registered), "{seen:?}");
        assert_eq!(roots[&3], registered[1].1);

        std::fs::rename(&was, &now).expect("moved");
        let (roots, seen) = find(&registered, std::slice::from_ref(&now));
        assert!(seen.iter().all(|seen| seen.trouble.is_none()), "{seen:?}");
        assert_eq!((&roots[&0].path, &roots[&0].data), (&now.join("wal"), &now));
        assert_eq!((&roots[&3].path, &roots[&3].data), (&now, &now));

        let (roots, seen) = find(&registered, &[]);
        assert!(
            seen[0].trouble.as_ref().is_some_and(|why| why.contains("is its volume mounted")),
            "{seen:?}"
        );
        assert_eq!(roots[&0], registered[0].1, "as it was");
        let (_, seen) = find(&registered, &[copy]);
        assert!(
            seen[0].trouble.as_ref().is_some_and(|why| why.contains("is not the log's directory")),
            "{seen:?}"
        );
    }
}
