//! The mark of a host that went on without its keepers, in each directory that the log serves.
//!
//! From then on the files have more than any copy of the log does: nothing that a keeper has of it may be replayed into
//! them, whichever host's turn it is. The recovering host may reach no keeper that knows of this, so the directory
//! itself carries the mark, with the turn in which it happened. A log counts again when nothing is live in it and it
//! says so with a newer turn ([`complete_since`](crate::format::Superblock::complete_since)), which copies keep however
//! often they change hands.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags};
use seawall_media::durable;
use seawall_media::locks::lock;
use seawall_wire::keeper::is_older_than_files;

use super::target::Unwritable;
use crate::stand_in::{OWN_SUFFIX, TEMPORARY};

const LONGEST: u64 = 4096;
/// The beginning of its last line.
const TURN: &str = "turn ";

/// The mark of one log.
pub struct AloneMark(String);

impl AloneMark {
    /// The mark for the log with this UUID.
    pub fn of(log: u128) -> Self {
        Self(format!("alone-{log:032x}"))
    }

    /// Puts the mark into a directory, durably: a log that was complete in this turn, or earlier, is older than the
    /// files there.
    ///
    /// # Errors
    /// The disk's error; NotFound: there is no such directory.
    pub fn set(&self, directory: &Path, turn: u64) -> io::Result<()> {
        let (at, next) = (directory.join(self.name(OWN_SUFFIX)), directory.join(self.name(TEMPORARY)));
        let readable = Permissions::from_mode(0o644);
        durable::replace(&at, &next, text(turn).as_bytes(), |file| file.set_permissions(readable))
    }

    /// Removes the mark, durably: before anything more is acknowledged in the turn that it names.
    ///
    /// # Errors
    /// The disk's error.
    pub fn clear(&self, directory: &Path) -> io::Result<()> {
        self.remove(directory)?;
        // Also if the mark was not there: a process that removed it may have died before that was durable.
        match durable::sync_directory(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            synced => synced,
        }
    }

    /// Removes a mark from an older turn than the log's, which no longer means anything: if a crash brings it back, it
    /// still means nothing. If there is none, the disk has nothing to do.
    ///
    /// # Errors
    /// The disk's error.
    pub fn tidy(&self, directory: &Path) -> io::Result<()> {
        if self.remove(directory)? { durable::sync_directory(directory) } else { Ok(()) }
    }

    /// True if there was one.
    fn remove(&self, directory: &Path) -> io::Result<bool> {
        durable::remove(&directory.join(self.name(OWN_SUFFIX)))
    }

    /// The turn up to which the log is older than the files in the directory, if there is a mark.
    ///
    /// # Errors
    /// The mark there has no meaning, or belongs to a stranger: why, in words.
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

/// The marks that concern a log; each directory is read once.
pub(super) struct Marks {
    mark: AloneMark,
    /// The turn since which the log has everything that files lack.
    since: u64,
    /// By the number of the directory.
    read: Mutex<BTreeMap<u32, Result<Option<u64>, String>>>,
}

impl Marks {
    /// For the log with this UUID, which has everything that files lack since this turn.
    pub(super) fn of(log: u128, since: u64) -> Self {
        Self { mark: AloneMark::of(log), since, read: Mutex::default() }
    }

    /// The log holds nothing for a directory whose host went on without it.
    pub(super) fn let_in(&self, number: u32, directory: &File, owner: u32) -> Result<(), Unwritable> {
        let mut read = lock(&self.read);
        let found = read.entry(number).or_insert_with(|| self.mark.read(directory, owner));
        match found.clone()? {
            Some(alone) if is_older_than_files(self.since, alone) => Err(Unwritable::Dropped(format!(
                "the file is newer: its host went on without keepers in turn {alone}, and this copy of the \
                 log is from turn {}",
                self.since
            ))),
            _ => Ok(()),
        }
    }
}

fn text(turn: u64) -> String {
    format!(
        "The database here went on without the keepers of its log, because too few of them could be \
         reached.\n\
         Their copies of the log, up to this turn, are older than these files, and must not be replayed into \
         them.\n\
         Do not remove this file: Seawall removes it when the keepers have the log again.\n\
         {TURN}{turn}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        mark.set(directory.path(), 12).expect("set");
        mark.tidy(directory.path()).expect("taken away");
        mark.tidy(directory.path()).expect("nothing is there");
        assert_eq!(mark.read(&open(), me), Ok(None));
        assert!(mark.set(&directory.path().join("none"), 1).is_err_and(|e| e.kind() == ErrorKind::NotFound));
    }

    #[test]
    fn a_directory_is_asked_once_and_its_log_counts_from_a_newer_turn_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let (marks, me) = (Marks::of(7, 12), rustix::process::getuid().as_raw());
        let open = File::open(directory.path()).expect("opened");
        let mark = AloneMark::of(7);
        mark.set(directory.path(), 12).expect("set");
        let refused = |marks: &Marks, number: u32| {
            matches!(marks.let_in(number, &open, me), Err(Unwritable::Dropped(_)))
        };
        assert!(refused(&marks, 1));
        assert!(!refused(&Marks::of(7, 13), 1), "complete since a newer turn");
        mark.clear(directory.path()).expect("cleared");
        assert!(refused(&marks, 1), "asked already");
        assert!(!refused(&marks, 2), "another directory");
    }
}
