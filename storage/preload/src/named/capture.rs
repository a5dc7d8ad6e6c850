//! Small files that become records as a whole, and what ends that.

use core::ffi::{CStr, c_int};

use seawall_core::client::Synced;
use seawall_core::file::Flag;
use seawall_core::file::captured::Capture;
use seawall_core::format::{NAME_MAX, NameChange};
use seawall_core::naming::{self, LARGEST, Settling, has_attributes};
use seawall_core::{Engine, Errno, Turn, certain};

use super::ask;
use super::content::with_content;
use super::here::{Here, attributes, engine, handle, parent, path_of_any};
use crate::again;
use crate::client::DAEMON;
use crate::fdtable::{self, State, mark};
use crate::sys::{self, Stat, unsafe_call};

/// Makes all of a file that is synced for the first time a record. False: it is to be looked at further, and synced for real
/// maybe.
pub fn first_sync(fd: c_int) -> bool {
    let Some(engine) = engine() else { return false };
    let entry = fdtable::get(fd);
    let is_candidate = match entry.state() {
        State::Candidate => entry.count() == 0,
        State::Unmanaged => true,
        _ => false,
    };
    // It was opened for the sync, after whoever wrote the file had closed it.
    let is_new = entry.state() == State::Unknown;
    let Some(stat) = Some(fd).filter(|_| is_candidate || is_new).and_then(|fd| sys::fstat(fd).ok()) else {
        return false;
    };
    let is_small = stat.regular && stat.links == 1 && stat.size <= LARGEST as u64;
    if !is_small || engine.find(stat.dev, stat.ino).is_some() {
        return false;
    }
    // Not by O_DSYNC: what it writes is durable by the kernel, and the log would not hear of it.
    let is_plain = || sys::flags(fd).is_ok_and(|flags| flags & libc::O_DSYNC == 0);
    let entry = if is_new { fdtable::opened_as(fd).filter(|_| is_plain()) } else { Some(entry) };
    let Some(entry) = entry else { return false };
    let file = again::Mark::of(fd, &stat);
    if file.was_synced() || !capture(engine, fd, &stat) {
        return false;
    }
    file.set();
    if entry.has(mark::WRITABLE) && entry.state() != State::Unmanaged {
        fdtable::set(fd, entry.as_candidate().counted(1));
    }
    true
}

fn capture(engine: &'static Engine, fd: c_int, stat: &Stat) -> bool {
    let mut whole = [0; libc::PATH_MAX as usize];
    let mut room = [0; NAME_MAX + 1];
    let Some(path) = path_of_any(engine, fd, &mut whole) else { return false };
    if let Some((here, name)) = parent(libc::AT_FDCWD, path, &mut room) {
        return here.capture(fd, name, stat);
    }
    let here = ask::take_new_parent(engine, path).then(|| parent(libc::AT_FDCWD, path, &mut room)).flatten();
    here.is_some_and(|(here, name)| here.capture(fd, name, stat))
}

impl Here {
    /// All of the file at `name`, which `fd` is, becomes a record.
    fn capture(&self, fd: c_int, name: &CStr, stat: &Stat) -> bool {
        naming::capturing_by(self, |turn| self.capture_in(turn, (fd, stat), name))
    }

    /// The same in a turn. This is how it was a moment ago.
    pub(super) fn capture_in(&self, turn: &Turn<'_, Self>, (fd, was): (c_int, &Stat), name: &CStr) -> bool {
        let Some(file) = handle(fd, c"", libc::AT_EMPTY_PATH) else { return false };
        turn.capture((was.dev, was.ino), &file, |record| {
            with_content(fd, was.size, |data| {
                let stat = sys::fstatat(self.fd, name, libc::AT_SYMLINK_NOFOLLOW).ok()?;
                let is_it =
                    (stat.dev, stat.ino) == (was.dev, was.ino) && stat.links == 1 && stat.uid == self.uid;
                let (name, attributes) = (name.to_bytes(), attributes(&stat));
                let is_plain = is_it && !has_attributes(sys::borrow(fd));
                is_plain.then(|| record(&NameChange::Content { name, file, attributes, data })).flatten()
            })
        })
    }
}

/// How far the log has come when a real sync begins, for [`settle`].
pub fn next_lsn() -> u64 {
    engine().map_or(0, Engine::next_lsn)
}

/// The file behind `fd` has been synced for real, or is about to become durable in a way that is not seen: what the log has of
/// it as a whole must not come back over that. `synced`: the file was synced, by a sync that began when this was the
/// [next LSN](next_lsn).
///
/// # Errors
/// What the disk said to the sync that is made first, unless one was made.
pub fn settle(fd: c_int, stat: &Stat, synced: Option<u64>) -> Result<(), Errno> {
    let Some(engine) = engine() else { return Ok(()) };
    let inode = (stat.dev, stat.ino);
    if engine.capture_of(inode) == Capture::No {
        return Ok(());
    }
    let since = synced.unwrap_or_else(next_lsn);
    if synced.is_none() {
        unsafe_call!(SYS_fsync, fd)?;
    }
    certain::check(sys::borrow(fd))?;
    // It may move meanwhile, and what the log has of it with it.
    for _ in 0..MOVES {
        match settle_once(engine, fd, (inode, since)) {
            Settling::Done => return Ok(()),
            Settling::Again => {}
            Settling::Refused => break,
            // Its name is gone: with the directory's next destage it is over.
            Settling::Elsewhere(_) if stat.links == 0 => return Ok(()),
            // It moves, or has names that this process cannot tell: the daemon knows its directory.
            Settling::Elsewhere(directory) if DAEMON.sync_file(directory) == Synced::Done => {}
            Settling::Elsewhere(_) => break,
        }
    }
    Err(Errno::IO)
}

/// So often a file is followed that moves while it is to be settled.
const MOVES: usize = 100;

fn settle_once(engine: &'static Engine, fd: c_int, synced: ((u64, u64), u64)) -> Settling {
    let mut room = [0; libc::PATH_MAX as usize];
    let mut whole = [0; libc::PATH_MAX as usize];
    let path = sys::name_of(fd, &mut room).and_then(|path| sys::copied(path, &mut whole));
    let mut base = [0; NAME_MAX + 1];
    let found = path.and_then(|path| parent(libc::AT_FDCWD, path, &mut base));
    let here = found.as_ref().map(|(here, name)| (here, *name));
    let again = || unsafe_call!(SYS_fsync, fd).and_then(|_| certain::check(sys::borrow(fd)));
    naming::settling(engine, here, synced, again)
}

/// Everything is about to be on the disk, by a call that names no file: what the log has of files as a whole must not come back
/// over that.
pub fn settle_all() {
    let Some(engine) = engine() else { return };
    for slot in engine.slots().filter(|slot| slot.state().has(Flag::DIRECTORY) && slot.has_live_content()) {
        // Where nobody answers they stay, as they were when they were synced one by one.
        let _ = DAEMON.sync_file(slot.file());
    }
}
