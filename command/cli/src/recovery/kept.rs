//! What is kept of a data directory between runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use seawall_media::durable;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::user;

/// The file for one kind of it. Its name is the directory's, so that people find it.
pub fn file(data: &Path, kind: &str) -> PathBuf {
    below(&user::state_directory(), data, kind)
}

fn below(state: &Path, data: &Path, kind: &str) -> PathBuf {
    let name = data.to_string_lossy().trim_matches('/').replace('%', "%25").replace('/', "%2f");
    state.join("recoveries").join(format!("{name}.{kind}"))
}

/// What was kept: by this user, or else by root, whose hooks accompany a service of this user's.
pub fn read<T: DeserializeOwned>(data: &Path, kind: &str) -> Option<T> {
    let known = [file(data, kind), below(user::STATE_OF_ROOT.as_ref(), data, kind)];
    known.iter().find_map(|file| serde_json::from_slice(&fs::read(file).ok()?).ok())
}

/// The same of this user's own, which is not kept any longer.
pub fn take<T: DeserializeOwned>(data: &Path, kind: &str) -> Option<T> {
    let file = file(data, kind);
    let text = fs::read(&file).ok()?;
    fs::remove_file(&file).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Keeps this from now on.
///
/// # Errors
/// The file's, with its name.
pub fn write(data: &Path, kind: &str, what: &impl Serialize) -> io::Result<()> {
    write_text(data, kind, &serde_json::to_vec(what)?)
}

/// The same of a text.
///
/// # Errors
/// As above.
pub fn write_text(data: &Path, kind: &str, text: &[u8]) -> io::Result<()> {
    let file = file(data, kind);
    let write = || {
        fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        durable::replace(&file, &file.with_extension(format!("{kind}.new")), text, |_| Ok(()))
    };
    write().map_err(|e: io::Error| io::Error::new(e.kind(), format!("cannot write {}: {e}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_has_a_file_of_its_own() {
        let file = |data: &str| file(Path::new(data), "json");
        assert_ne!(file("/a/b"), file("/a%2fb"));
        assert!(file("/srv/pg").ends_with("recoveries/srv%2fpg.json"));
    }
}
