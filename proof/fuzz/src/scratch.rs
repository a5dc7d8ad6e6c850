//! Scratch directories of targets, which live as long as the process: statics are not dropped, so what they
//! leave is removed when it exits.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static REGISTERED: Once = Once::new();

/// A new directory below `parent`, removed at exit.
pub fn directory(parent: &str) -> PathBuf {
    let dir = tempfile::tempdir_in(parent).expect("a directory").keep();
    remove_at_exit(&dir);
    dir
}

/// Removes this too, if it is there.
pub fn remove_at_exit(path: &Path) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    REGISTERED.call_once(|| {
        // SAFETY: `remove` is a C function without arguments that does not unwind: it ignores every error.
        unsafe { libc::atexit(remove) };
    });
}

extern "C" fn remove() {
    for path in LEFT.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}
