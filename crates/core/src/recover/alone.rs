//! The mark of a host that went on without its keepers, in each directory that the log is for.
//!
//! From there on the files have more than any copy of the log does: whatever a keeper has of it must not be replayed into
//! them, in whoever's turn. Whoever recovers may reach no keeper that knows of it, so the directory says it itself: the turn
//! in which that was. A log counts again when nothing is live in it and it says so with a newer turn
//! ([`complete_since`](crate::format::Superblock::complete_since)), which copies keep however often they change hands.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::stand_in::{OWN_SUFFIX, TEMPORARY};

const LONGEST: u64 = 4096;
/// What its last line begins with.
const TURN: &str = "turn ";

/// The mark of one log.
pub struct AloneMark(String);

impl AloneMark {
    /// Of the log with this UUID.
    pub fn of(log: u128) -> Self {
        Self(format!("alone-{log:032x}"))
    }

    /// Puts it into a directory, durably: a log that was complete in this turn, or before, is older than what is there.
    ///
    /// # Errors
    /// What the disk said; NotFound: there is no such directory.
    pub fn set(&self, directory: &Path, turn: u64) -> io::Result<()> {
        let (at, next) = (directory.join(self.name(OWN_SUFFIX)), directory.join(self.name(TEMPORARY)));
        let mut file = File::create(&next)?;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        file.write_all(text(turn).as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, &at)?;
        File::open(directory)?.sync_all()
    }

    /// Takes it away, durably: before anything more is acknowledged in the turn that it names.
    ///
    /// # Errors
    /// What the disk said.
    pub fn clear(&self, directory: &Path) -> io::Result<()> {
        match fs::remove_file(directory.join(self.name(OWN_SUFFIX))) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done?,
        }
        // It may have been removed by somebody whose removal is not durable.
        match File::open(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            directory => directory?.sync_all(),
        }
    }

    /// The turn up to which the log is older than what is in the directory, if one is there.
    ///
    /// # Errors
    /// There is something that says nothing, or is of a stranger: why, in words.
    pub(super) fn read(&self, directory: &File, owner: u32) -> Result<Option<u64>, String> {
        let name = self.name(OWN_SUFFIX);
        let fault = |why: &dyn std::fmt::Display| format!("{} in its directory {why}", name.display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(directory, name.as_os_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(fault(&format_args!("cannot be read: {error}"))),
        };
        let mut text = String::new();
        let seen =
            file.metadata().and_then(|meta| (&file).take(LONGEST).read_to_string(&mut text).map(|_| meta));
        let meta = seen.map_err(|error| fault(&format_args!("cannot be read: {error}")))?;
        if meta.uid() != 0 && meta.uid() != owner {
            return Err(fault(&format_args!("belongs to user {}", meta.uid())));
        }
        let turn =
            text.lines().last().and_then(|line| line.strip_prefix(TURN)).and_then(|turn| turn.parse().ok());
        turn.map(Some)
            .ok_or_else(|| fault(&"does not say up to which turn the log is older than these files"))
    }

    fn name(&self, suffix: &[u8]) -> OsString {
        use std::os::unix::ffi::OsStrExt as _;
        let mut name = OsString::from(&self.0);
        name.push(OsStr::from_bytes(suffix));
        name
    }
}

fn text(turn: u64) -> String {
    format!(
        "The database here went on without the keepers of its log, because too few of them were reached.\n\
         What they have of the log up to this turn is older than these files, and must not be replayed into them.\n\
         Do not remove this file: Seawall does, when the keepers have the log again.\n\
         {TURN}{turn}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_up_to_which_turn_the_log_is_older_and_damage_is_no_mark() {
        let directory = tempfile::tempdir().expect("a directory");
        let (mark, me) = (AloneMark::of(7), rustix::process::getuid().as_raw());
        let open = || File::open(directory.path()).expect("opened");
        assert_eq!(mark.read(&open(), me), Ok(None));
        mark.set(directory.path(), 3).expect("set");
        mark.set(directory.path(), 12).expect("set again");
        assert_eq!(mark.read(&open(), me), Ok(Some(12)));
        assert_eq!(AloneMark::of(8).read(&open(), me), Ok(None), "another log's");
        let at = directory.path().join(mark.name(OWN_SUFFIX));
        for damaged in ["", "turn", "turn x\n", "turn 5\nsomething else\n"] {
            fs::write(&at, damaged).expect("written");
            assert!(mark.read(&open(), me).is_err(), "{damaged:?}");
        }
        mark.clear(directory.path()).expect("cleared");
        mark.clear(directory.path()).expect("nothing is there");
        assert_eq!(mark.read(&open(), me), Ok(None));
        assert!(mark.set(&directory.path().join("none"), 1).is_err_and(|e| e.kind() == ErrorKind::NotFound));
    }
}
