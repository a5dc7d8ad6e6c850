//! Reap: finishing what processes left half done that died while the machine stayed up.
//!
//! | lane of a dead owner | file's lock | what is done |
//! |---|---|---|
//! | a record whose publish may be partial | held by the dead | the publish is done again |
//! | a record beyond the end of the file, of which nothing is there | held by the dead | as in the next row: the publish has not begun, or the kernel refused it (SIGXFSZ) |
//! | no publish begun (`record` = 0), or a truncate | held by the dead | the file is synced and its watermark raised: the record, if it is whole, must not come back after others saw the file without it |
//! | the same | held by a reaper that died in this row | the same |
//! | any | taken over by another writer | nothing: that writer did the second row itself |
//!
//! The first row keeps P2: a kill in the middle of the kernel's copy loop must not leave half a page for a later
//! destage, or the sync of the next thread that enters the file, to make durable. So waiters leave such a file to the
//! reaper. In every row the lane's open segment is closed, not reused, and the lane is free again; the lock is released
//! last.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::io::Errno;
use seawall_media::LINE;
use seawall_wire::shm::{Lane, SegmentState};

use crate::certain::fdatasync;
use crate::engine::{Entering, counted};
use crate::file::{Flag, Inside, Slot};
use crate::format::{RecordFlags, RecordHeader, RecordKind};
use crate::{Engine, FileRef, Owner};

/// Gives a writable descriptor, to finish a write.
pub trait Writable {
    /// The file in `slot`, open for writing.
    ///
    /// # Errors
    /// Why there is none: then the write stays as the kernel left it.
    fn writable(&mut self, slot: u32) -> io::Result<File>;

    /// Syncs the directory in `slot`, with those parts of its files that the disk may lack.
    ///
    /// # Errors
    /// The disk's error, or why there is no descriptor of it.
    fn sync_directory(&mut self, slot: u32) -> io::Result<()> {
        Err(io::Error::other(format!("slot {slot} is not known as a directory")))
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Client slots freed.
    pub clients: u32,
    /// Lanes freed.
    pub lanes: u32,
    /// Writes finished.
    pub finished: u32,
    /// File locks released.
    pub locks: u32,
    /// Holds ended.
    pub holds: u32,
}

/// Cleans up after every client for which `is_dead` is true. `who` is a client slot of the daemon's own.
pub fn dead(engine: &Engine, who: Owner, is_dead: &dyn Fn(u32) -> bool, files: &mut dyn Writable) -> Reaped {
    let mut reaped = Reaped::default();
    let gone: Vec<u32> =
        (0..engine.shm().shape().clients).filter(|c| occupied(engine, *c) && is_dead(*c)).collect();
    if gone.is_empty() {
        return reaped;
    }
    if let Some(journal) = engine.log.pool.journal() {
        journal.bury_clients(&engine.log.pool, |client| gone.contains(&client));
    }
    let is_gone = |word: u64| Owner::from_word(word).is_some_and(|o| gone.contains(&o.client()));
    for lane in engine.shm().lanes() {
        let owner = lane.owner().load(Acquire);
        if is_gone(owner) {
            reaped.finished += u32::from(finish(engine, who, lane, &is_gone, files));
            close(engine, lane);
            reaped.lanes += 1;
        }
    }
    for slot in engine.slots() {
        let owner = slot.holder();
        if is_gone(owner)
            && let Some(inside) = slot.take_over(owner, who)
        {
            retire(engine, &inside, files);
            // The dead process may have been about to bring it back to the log.
            engine.rejoin(&inside, || sync(inside.slot(), files));
            reaped.locks += 1;
        }
    }
    reaped.holds = holds(engine, who, &gone, files);
    if reaped.holds > 0 {
        // The destager takes files back that belong in the log: now, not at its next round.
        engine.wake_daemon();
    }
    for client in &gone {
        engine.release_client(*client);
        reaped.clients += 1;
    }
    reaped
}

fn occupied(engine: &Engine, client: u32) -> bool {
    engine.shm().client(client).is_some_and(|c| c.pid().load(Acquire) != 0)
}

/// Publishes a change again that a process published in part before it died inside the file in `slot`. For a thread of
/// the daemon that waits for the file. False: there is no such change.
pub fn finish_in(engine: &Engine, who: Owner, slot: u32, files: &mut dyn Writable) -> bool {
    let is_gone = |word: u64| Owner::is_word_dead(word, engine.shm());
    let lane = engine.slot(slot).and_then(|slot| slot.half_published(engine.shm()));
    lane.is_some_and(|lane| finish(engine, who, lane, &is_gone, files))
}

/// The files of changes that were published in part by processes that have died since.
pub fn half_published(engine: &Engine) -> impl Iterator<Item = u32> {
    let is_half = |lane: &Lane<'_>| {
        lane.record().load(Acquire) != 0 && Owner::is_word_dead(lane.owner().load(Acquire), engine.shm())
    };
    engine.shm().lanes().filter(is_half).map(|lane| lane.slot().load(Acquire))
}

/// Publishes the lane's record again, if no living thread has entered the file since, and leaves the file's lock free.
fn finish(
    engine: &Engine,
    who: Owner,
    lane: Lane<'_>,
    is_gone: &dyn Fn(u64) -> bool,
    files: &mut dyn Writable,
) -> bool {
    let (number, first) = (lane.slot().load(Acquire), lane.record().load(Acquire));
    let slot = engine.slot(number).filter(|slot| slot.is_published_by(lane));
    let holder = slot.map_or(0, Slot::holder);
    let inside = slot.filter(|_| is_gone(holder)).and_then(|slot| slot.take_over(holder, who));
    let Some(inside) = inside else { return false };
    let done = files.writable(number).and_then(|file| publish(engine, first, number, &file));
    if done.is_err() {
        retire(engine, &inside, files);
    }
    // Nobody publishes it again: others may change the file from now on.
    lane.record().store(0, Release);
    inside.slot().disturb();
    engine.rejoin(&inside, || sync(inside.slot(), files));
    done.is_ok()
}

/// Makes the file's present content the truth: nothing in the log may change it any more.
fn retire(engine: &Engine, inside: &Inside<'_>, files: &mut dyn Writable) {
    inside.slot().disturb();
    inside.retire(engine.pool(), || sync(inside.slot(), files));
    if inside.slot().state().has(Flag::DIRECTORY) {
        // Nobody knows whether the dead process had noted its last change.
        inside.is_known_up_to(0);
    }
}

fn sync(slot: Slot<'_>, files: &mut dyn Writable) -> Result<(), Errno> {
    let errno = |e: io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
    if slot.state().has(Flag::DIRECTORY) {
        return files.sync_directory(slot.number()).map_err(errno);
    }
    let file = files.writable(slot.number()).map_err(errno)?;
    fdatasync(file.as_fd())
}

/// Writes the parts of one record into its file. Parts after the first begin their segments.
fn publish(engine: &Engine, first: u64, slot: u32, file: &File) -> io::Result<()> {
    let layout = engine.layout();
    let damaged = || io::Error::other("the record is incomplete");
    let segment = (first >> 32) as u32;
    if segment >= layout.segments {
        return Err(damaged());
    }
    let mut at = layout.segment(segment) + (first as u32 as usize) * LINE;
    let mut seq = seq_of(engine, segment).ok_or_else(damaged)?;
    loop {
        let header = RecordHeader::read(engine.pool(), at, seq).ok_or_else(damaged)?;
        if header.slot != slot || header.kind() != Some(RecordKind::Write) {
            return Err(damaged());
        }
        if header.part == 0 && file.metadata()?.len() <= header.offset {
            // A write beyond the end that has not begun need not be made: the kernel may have refused it, and killed
            // its process for it (SIGXFSZ).
            return Err(io::Error::other("no part of the write is in the file"));
        }
        let mut bytes = vec![0; header.length as usize];
        engine.pool().read(at + LINE, &mut bytes[..header.stored as usize]);
        file.write_all_at(&bytes, header.offset)?;
        if header.flags & RecordFlags::LAST != 0 {
            return Ok(());
        }
        let next = next_segment(engine, seq).ok_or_else(damaged)?;
        (at, seq) = (layout.segment(next.0) + LINE, next.1);
    }
}

fn seq_of(engine: &Engine, segment: u32) -> Option<u64> {
    header_of(engine, segment).map(|h| h.seq)
}

fn header_of(engine: &Engine, segment: u32) -> Option<crate::format::SegmentHeader> {
    let at = engine.layout().segment(segment);
    crate::format::SegmentHeader::read(engine.pool(), at, engine.log.uuid_low)
}

/// The segment that names the one with sequence `seq` as its predecessor.
fn next_segment(engine: &Engine, seq: u64) -> Option<(u32, u64)> {
    (0..engine.backed()).find_map(|i| {
        let header = header_of(engine, i)?;
        (header.previous_seq == seq).then_some((i, header.seq))
    })
}

/// Frees a dead owner's lane without its segment: the part behind the last record is unknown. The destager frees a
/// segment that no lane knows of.
fn close(engine: &Engine, lane: Lane<'_>) {
    let shm = engine.shm();
    let number = shm.lanes().position(|l| std::ptr::eq(l.owner(), lane.owner())).unwrap_or(0) as u32;
    let newest = shm.header().next_lsn().load(SeqCst) - 1;
    for i in 0..engine.layout().segments {
        let Some(segment) = shm.segment(i) else { continue };
        if SegmentState::lane_of(segment.state().load(Acquire)) == Some(number) {
            // It may have died before it noted its LSN: nothing newer than the present LSN is in there.
            segment.last_lsn().fetch_max(newest, SeqCst);
        }
    }
    lane.segment().store(0, Release);
    lane.record().store(0, Release);
    lane.lsn().store(0, Relaxed);
    lane.inflight().store(0, SeqCst);
    lane.owner().store(0, Release);
}

/// Ends the holds of these clients. A client that died between its entry and the file's count, or the other way around,
/// left them different: with a subtraction, a file could return that another process still has mapped.
fn holds(engine: &Engine, who: Owner, gone: &[u32], files: &mut dyn Writable) -> u32 {
    let mut ended = 0;
    for hold in engine.shm().holds() {
        let client = hold.client().load(Acquire);
        if client == 0 || !gone.contains(&(client - 1)) {
            continue;
        }
        let file = FileRef { slot: hold.slot().load(Acquire), generation: hold.generation().load(Acquire) };
        // Deals with a process that died after the lanes were checked.
        finish_in(engine, who, file.slot, files);
        if let Entering::Alone(inside) = engine.enter(who, file) {
            if inside.inherited() {
                retire(engine, &inside, files);
            }
            inside.holds_are(counted(engine, file, gone));
        }
        hold.client().store(0, Release);
        ended += 1;
    }
    ended
}
