//! `seawall run -- seawall twin --state DIRECTORY -- redis-server …`: twins have their directories in that one, which is managed
//! as the server's own is.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::options;

/// The state's directory, if the command is about a twin. It is made if it is not there, as the command itself would.
///
/// # Errors
/// If it cannot be made.
pub fn state(program: &str, arguments: &[OsString]) -> Result<Option<PathBuf>> {
    let ours: Vec<OsString> = arguments.iter().take_while(|word| *word != "--").cloned().collect();
    if program != "seawall" || ours.first().is_none_or(|word| word != "twin") {
        return Ok(None);
    }
    let Some(state) = options::value(&ours, "--state", "") else { return Ok(None) };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&state)
        .with_context(|| state.display().to_string())?;
    Ok(Some(state))
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn a_twins_directory_is_managed_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("state");
        let text = format!("twin --state {} -- redis-server --state /no", at.display());
        assert_eq!(state("seawall", &args(&text)).expect("made"), Some(at.clone()));
        assert!(at.is_dir());
        assert_eq!(state("redis-server", &args(&text)).expect("nothing"), None);
        assert_eq!(state("seawall", &args("mount --state /x -- twin")).expect("nothing"), None);
    }
}
