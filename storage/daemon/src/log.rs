//! What the daemon has to say: plain lines with a UTC time, in a file beside its socket. A service's daemon
//! says it on stderr too, where the journal takes it.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use seawall_media::locks::lock;
use seawall_media::utc;

/// A log longer than this begins anew.
const LONG: u64 = 1 << 20;
/// Lines that are remembered as said.
const SAID_MAX: usize = 1024;

/// The log file.
pub struct Log {
    file: File,
    journal: bool,
    said: Mutex<HashSet<String>>,
}

impl Log {
    /// Opens the file for appending. One that has grown long is set aside first, replacing the one before.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path).is_ok_and(|found| found.len() > LONG) {
            std::fs::rename(path, path.with_extension("log.old"))?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file, journal: false, said: Mutex::default() })
    }

    /// The same, said on stderr too.
    #[must_use]
    pub fn with_journal(self, journal: bool) -> Self {
        Self { journal, ..self }
    }

    /// Writes one line.
    pub fn say(&self, text: impl AsRef<str>) {
        let line = format!("{} {}\n", utc(SystemTime::now()), text.as_ref());
        // A log that cannot be written must not stop the daemon.
        let _ = (&self.file).write_all(line.as_bytes());
        if self.journal {
            let _ = writeln!(io::stderr(), "{}", text.as_ref());
        }
    }

    /// Writes one line unless `key` was used before.
    pub fn say_once(&self, key: &str, text: impl AsRef<str>) {
        let mut said = lock(&self.said);
        if said.len() >= SAID_MAX {
            // Databases make files for years, each with a name of its own.
            said.clear();
        }
        if said.insert(key.to_owned()) {
            self.say(text);
        }
    }
}
