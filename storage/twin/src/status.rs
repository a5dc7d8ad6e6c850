//! What a supervisor tells about itself: a file that it replaces when something changed, so that asking it needs no rights
//! but those to read the file, and never waits.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::state::Directory;

/// The state of a server and its twin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// A supervisor runs.
    pub runs: bool,
    /// The process of the server that serves.
    pub primary: Option<i32>,
    /// Its directory.
    pub current: PathBuf,
    /// The twin's process.
    pub twin: Option<i32>,
    /// It could take over.
    pub ready: bool,
    /// Bytes of commands that the twin was sent and has not said it has applied.
    pub behind: u64,
    /// The twin's memory, in bytes.
    pub memory: u64,
    /// How often the twin was given everything anew, since it was started.
    pub synchronisations: u64,
    /// Why there is no twin that is ready.
    pub trouble: Option<String>,
    /// How often a twin took over.
    pub takeovers: u64,
    /// From the moment when the server was seen dead until the twin had its address, the last time.
    pub last_takeover_ms: Option<f64>,
}

impl Report {
    /// Publishes it. It is for people: it need not be durable, and its loss harms nobody.
    pub fn publish(&self, directory: &Path) {
        let (path, new) = (directory.join("status.json"), directory.join("status.json.new"));
        if let Ok(text) = serde_json::to_vec_pretty(self) {
            let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
        }
    }
}

/// What a former supervisor told is over.
pub fn forget(directory: &Path) {
    let _ = std::fs::remove_file(directory.join("status.json"));
}

/// What the supervisor of this directory last told.
///
/// # Errors
/// If there never was one.
pub fn read(directory: &Path) -> Result<Report> {
    let path = directory.join("status.json");
    ensure!(directory.is_dir(), "{}: no such directory", directory.display());
    let text = std::fs::read(&path)
        .with_context(|| format!("{}: did `seawall twin` ever run with it?", path.display()))?;
    let report: Report = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    if Directory::is_used(directory) {
        return Ok(Report { runs: true, ..report });
    }
    let (current, takeovers, last_takeover_ms) = (report.current, report.takeovers, report.last_takeover_ms);
    Ok(Report { current, takeovers, last_takeover_ms, ..Report::default() })
}
