//! read, write and fsync, in the entry that brought them: no copy but the kernel's own.
//!
//! What may wait is done on another thread (`seawall_daemon::workers`), and the entry comes back through the queue's `Desk`.

use std::sync::Arc;

use fuser::FileHandle;
use rustix::fs::OFlags;
use seawall_core::{Errno, Scope};
use zerocopy::{FromBytes, IntoBytes};

use super::abi::{FSYNC_FDATASYNC, PAST, Sync, Transfer, WRITE_CACHE, WRITE_KILL_SUIDGID, Written};
use super::desk::{Answered, Desk};
use super::sys::UringEntry;
use crate::fs::{Fs, How, Way};
use crate::handle::Handle;
use crate::rights::Changer;

fn told(entry: &mut UringEntry, done: Result<usize, Errno>) {
    entry.answer(done.map_err(Errno::raw_os_error));
}

fn refused(entry: &'static mut UringEntry, error: Errno) -> Answered {
    told(entry, Err(error));
    Some(entry)
}

fn transfer(entry: &UringEntry, fs: &Fs) -> Result<(Transfer, Arc<Handle>), Errno> {
    let (what, _) = Transfer::read_from_prefix(entry.operation()).map_err(|_| Errno::INVAL)?;
    Ok((what, fs.handle(FileHandle(what.handle))?))
}

/// read(2).
pub fn read(fs: &Arc<Fs>, desk: &Arc<Desk>, entry: &'static mut UringEntry) -> Answered {
    let (what, handle) = match transfer(entry, fs) {
        Ok(found) => found,
        Err(error) => return refused(entry, error),
    };
    if what.how & PAST == 0 {
        handle.node.pages.may_fill();
    }
    let len = entry.room().len().min(what.size as usize);
    match fs.read_quickly(&handle, what.offset, &mut entry.room()[..len]) {
        Ok(done) => {
            told(entry, done);
            Some(entry)
        }
        Err(left) => {
            let (fs, desk) = (Arc::clone(fs), Arc::clone(desk));
            Arc::clone(&fs).workers.run(move || {
                let (read, done) = fs.read_rest(&handle, what.offset, len, left);
                let got = done.unwrap_or(0);
                entry.room()[..got].copy_from_slice(&read[..got]);
                told(entry, done);
                desk.hand_in(entry);
            });
            None
        }
    }
}

fn written(entry: &mut UringEntry, done: Result<usize, Errno>) {
    let done = done.map(|n| {
        let answer = Written { size: n as u32, padding: 0 };
        entry.room()[..size_of::<Written>()].copy_from_slice(answer.as_bytes());
        size_of::<Written>()
    });
    told(entry, done);
}

/// write(2).
pub fn write(fs: &Arc<Fs>, desk: &Arc<Desk>, entry: &'static mut UringEntry) -> Answered {
    let (what, handle) = match transfer(entry, fs) {
        Ok(found) => found,
        Err(error) => return refused(entry, error),
    };
    let who = entry.request();
    let how = How {
        strip: (what.how & WRITE_KILL_SUIDGID != 0).then(|| Changer::unprivileged(who.pid, who.uid, who.gid)),
        way: Way::of(what.how & WRITE_CACHE != 0, handle.direct, OFlags::from_bits_retain(what.flags)),
    };
    if let Some(done) = fs.write_quickly(&handle, what.offset, entry.data(), how) {
        written(entry, done);
        return Some(entry);
    }
    let (fs, desk) = (Arc::clone(fs), Arc::clone(desk));
    Arc::clone(&fs).workers.run(move || {
        let done = fs.write(&handle, what.offset, entry.data(), how);
        fs.when_seen(&handle, (what.offset, entry.data().len()), how, move || {
            written(entry, done);
            desk.hand_in(entry);
        });
    });
    None
}

/// fsync(2), fdatasync(2).
pub fn sync(fs: &Arc<Fs>, desk: &Arc<Desk>, entry: &'static mut UringEntry) -> Answered {
    let found = Sync::read_from_prefix(entry.operation()).map_err(|_| Errno::INVAL);
    let found = found.and_then(|(what, _)| Ok((what.how, fs.handle(FileHandle(what.handle))?)));
    let (scope, handle) = match found {
        Ok((how, handle)) if how & FSYNC_FDATASYNC != 0 => (Scope::Data, handle),
        Ok((_, handle)) => (Scope::Whole, handle),
        Err(error) => return refused(entry, error),
    };
    if let Some(done) = fs.sync_quickly(&handle, scope) {
        told(entry, done.map(|()| 0));
        return Some(entry);
    }
    let (fs, desk) = (Arc::clone(fs), Arc::clone(desk));
    Arc::clone(&fs).workers.run(move || {
        told(entry, fs.sync(&handle, scope).map(|()| 0));
        desk.hand_in(entry);
    });
    None
}
