//! A directory that is not the current one any more has a text in the place of its manifest: a server that is started on it
//! quotes the first line and ends.
//!
//! The manifest itself is kept beside it, under another name. Each step is atomic; a crash between them leaves either.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::log::Place;
use crate::state::{replace, sync_directory};

/// How a guard begins. Redis quotes the whole line.
const FIRST_WORD: &str = "SEAWALL-superseded";

fn kept(place: &Place) -> PathBuf {
    place.directory.join(format!("{}.superseded", place.name))
}

/// Raises the guard, durably. A directory that has one keeps it.
///
/// # Errors
/// If it is not up.
pub fn raise(place: &Place, current: &Path, state: &Path) -> Result<()> {
    if is_up(place) {
        return Ok(());
    }
    let manifest = place.manifest();
    let text = std::fs::read(&manifest).with_context(|| manifest.display().to_string())?;
    replace(&kept(place), &text)?;
    let guard = format!(
        "{FIRST_WORD}:start-it-by-seawall-twin\n\
         A twin took this server's place. Everything that was acknowledged is in {}.\n\
         Start the server with: seawall twin --state {} -- redis-server ...\n",
        current.display(),
        state.display()
    );
    replace(&manifest, guard.as_bytes()).context("cannot guard the directory of the server that died")
}

/// Lowers the guard, durably, if one is up.
///
/// # Errors
/// If it is still up.
pub fn lower(place: &Place) -> Result<()> {
    if !is_up(place) {
        return Ok(());
    }
    std::fs::rename(kept(place), place.manifest()).context("cannot lower the guard")?;
    sync_directory(&place.directory)
}

/// True if a guard is up.
pub fn is_up(place: &Place) -> bool {
    std::fs::read_to_string(place.manifest()).is_ok_and(|text| text.starts_with(FIRST_WORD))
}

/// Frees the space of a directory that has a guard: what its manifest named is superseded for good.
///
/// # Errors
/// If the kept manifest cannot be read.
pub fn empty(place: &Place) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(kept(place)) else { return Ok(()) };
    if is_up(place) {
        for name in crate::manifest::Manifest::parse(&text)?.names() {
            let _ = std::fs::remove_file(place.directory.join(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_goes_up_and_down_and_only_behind_it_is_space_freed() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = Place { directory: dir.path().to_owned(), name: "a".into() };
        let text = "file b seq 1 type b\nfile i seq 1 type i\n";
        std::fs::write(place.manifest(), text).expect("written");
        std::fs::write(dir.path().join("i"), "x").expect("written");
        let raise = || raise(&place, Path::new("/now"), Path::new("/state"));
        raise().expect("up");
        raise().expect("still up");
        assert!(is_up(&place) && place.read().is_err());
        lower(&place).expect("down");
        lower(&place).expect("still down");
        assert_eq!(std::fs::read_to_string(place.manifest()).expect("read"), text);
        empty(&place).expect("nothing to do");
        assert!(dir.path().join("i").exists(), "it is not superseded");
        raise().expect("up");
        empty(&place).expect("emptied");
        assert!(is_up(&place) && !dir.path().join("i").exists());
    }
}
