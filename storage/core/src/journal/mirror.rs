//! Both copies of a mirrored journal: both get the same writes. Also what happens when one of them fails.
//!
//! An acknowledgement means that every copy that counts has the data. The copies themselves show which ones count:
//! before anything is acknowledged on one alone, its anchors say that it is alone, under a new epoch. So a copy that
//! was left behind is never believed again.
//!
//! | a leader dies | what its heir does |
//! |---|---|
//! | between the two writes of a batch | it did not count: another one takes its place in both copies |
//! | when one write had failed | `suspect` shows it: first the other copy's anchors say that it is alone |
//! | while it wrote these anchors | the same once more |
//! | between the two writes of an anchor | `anchor` on the desk did not move: the same sequence is written again |
//!
//! The window between a failed write and the store that notes it is a few instructions, as it is without a mirror. A
//! thread that changes the membership of the mirror, or writes an anchor, cannot be replaced meanwhile. The outcome of
//! a replaced leader's writes does not matter to anybody: `REPLACED`.
//!
//! Not handled here: which copy is believed at a start (`pool::block::mirror`).

use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
#[cfg(feature = "std")]
use std::os::fd::AsFd as _;

use rustix::io::Errno;
use seawall_media::Region;
#[cfg(feature = "std")]
use seawall_media::block::Device;
use seawall_media::block::{ANCHOR_BYTES, Anchor, Mirror, MirrorState};
use seawall_stats::ticks;
use seawall_wire::desk::Desk;

use super::writer::{Writer, fail, joining, written};

/// Writes. On success the bytes are on the device, or on each that counts. Returns from when to when the write was
/// under way, in ticks.
///
/// # Errors
/// EBADF if this process cannot write to it, but others can: the descriptor was taken away meanwhile, or a limit or a
/// filter of the process's own is in the way. What it wrote does not count. EIO for anything else, and from then on for
/// everybody: the device's content at that place is unknown.
pub(super) fn write(
    lead: &Writer<'_>,
    image: &Region,
    at: usize,
    len: usize,
    position: u64,
) -> Result<Range<u64>, Errno> {
    settle(lead, image)?;
    let began = ticks();
    let to = |copy| lead.to(copy, image, at, len, position);
    let done = each(lead, image, to).and_then(|()| join(lead, to));
    let ended = ticks();
    lead.has_spent(ended.wrapping_sub(began));
    done.map(|()| began..ended)
}

/// Runs `act` for each copy that counts. A copy that fails no longer counts.
///
/// # Errors
/// EBADF for an error of this process alone. EIO if no copy is left.
pub(super) fn each(
    lead: &Writer<'_>,
    image: &Region,
    act: impl FnMut(usize) -> Result<(), Errno>,
) -> Result<(), Errno> {
    attempt(lead, act)?;
    settle(lead, image)
}

fn attempt(lead: &Writer<'_>, mut act: impl FnMut(usize) -> Result<(), Errno>) -> Result<(), Errno> {
    let copies = written(lead.desk());
    let mut failed = 0;
    for copy in [0, 1].into_iter().filter(|copy| copies >> copy & 1 != 0) {
        let Err(error) = act(copy) else { continue };
        if lead.is_ours_alone(error) {
            return Err(Errno::BADF);
        }
        failed |= 1 << copy;
        lead.pinned(|| lose(lead.desk(), failed, copies, error))?;
    }
    Ok(())
}

/// These of the copies that count have failed.
fn lose(desk: Desk<'_>, failed: u32, copies: u32, error: Errno) -> Result<(), Errno> {
    if failed == copies {
        return Err(fail(desk, error));
    }
    desk.lost().store(error.raw_os_error() as u32, SeqCst);
    desk.suspect().store(failed, SeqCst);
    Ok(())
}

/// If a copy failed, the other one's anchors first say that it is alone; only then does it count alone.
///
/// # Errors
/// As for [`each`].
pub(super) fn settle(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    if lead.desk().suspect().load(SeqCst) == 0 { Ok(()) } else { lead.pinned(|| go_alone(lead, image)) }
}

fn go_alone(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    let desk = lead.desk();
    let left = written(desk) & !desk.suspect().load(SeqCst);
    if left != written(desk) {
        be_alone(lead, image, left.trailing_zeros() as usize)?;
        desk.copies().store(left, SeqCst);
    }
    desk.suspect().store(0, SeqCst);
    Ok(())
}

/// Writes both places of an anchor, so that none is left that says otherwise.
fn be_alone(lead: &Writer<'_>, image: &Region, copy: usize) -> Result<(), Errno> {
    let desk = lead.desk();
    let epoch = u16::try_from(desk.epoch().load(SeqCst) + 1).map_err(|_| fail(desk, Errno::OVERFLOW))?;
    say(lead, image, Mirror { copy, state: MirrorState::Alone, epoch })?;
    desk.epoch().store(epoch.into(), SeqCst);
    Ok(())
}

fn say(lead: &Writer<'_>, image: &Region, said: Mirror) -> Result<(), Errno> {
    let desk = lead.desk();
    for _ in 0..2 {
        let start = start(desk);
        let anchor = anchor(desk, start).with_mirror(Some(said));
        put(lead, image, said.copy, anchor).map_err(|error| match lead.is_ours_alone(error) {
            true => Errno::BADF,
            false => fail(desk, error),
        })?;
        note(desk, start);
    }
    Ok(())
}

/// Writes to the copy that is being rebuilt, if there is one. If that fails, the rebuild ends, and nothing else
/// happens.
///
/// # Errors
/// EBADF for an error of this process alone.
pub(super) fn join(lead: &Writer<'_>, act: impl FnOnce(usize) -> Result<(), Errno>) -> Result<(), Errno> {
    let desk = lead.desk();
    let joining = joining(desk);
    if joining == 0 {
        return Ok(());
    }
    let Err(error) = act(joining.trailing_zeros() as usize) else { return Ok(()) };
    if lead.is_ours_alone(error) {
        return Err(Errno::BADF);
    }
    lead.pinned(|| {
        desk.refused().store(error.raw_os_error() as u32, SeqCst);
        desk.joining().store(0, SeqCst);
        Ok(())
    })
}

/// The copy that counts says that it is alone, whatever an attempt to rebuild the other one left in it.
#[cfg(feature = "std")]
pub(super) fn stay_alone(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    lead.desk().joining().store(0, SeqCst);
    be_alone(lead, image, written(lead.desk()).trailing_zeros() as usize)
}

/// A copy says in both places that it is not whole. The other one's next two anchors are newer.
#[cfg(feature = "std")]
pub(super) fn be_unfinished(
    desk: Desk<'_>,
    image: &Region,
    copy: usize,
    device: &Device,
) -> Result<(), Errno> {
    let page = desk.anchor_page();
    let said = Mirror { copy, state: MirrorState::Unfinished, epoch: desk.epoch().load(SeqCst) as u16 };
    let mut anchor = anchor(desk, start(desk)).with_mirror(Some(said));
    for _ in 0..2 {
        image.copy_in(page, &anchor.seal());
        Device::write(device.as_fd(), image, page, ANCHOR_BYTES, Anchor::place(anchor.sequence))?;
        anchor.sequence += 1;
    }
    Ok(())
}

/// The rebuilt copy counts from now on. First the other copy says so, because it would not be believed otherwise. The
/// rebuilt one says so last: if it did so before it counts, it would claim to be newer than the copy that commits go on
/// with. Until it has done so, `joining` tells an heir to do it.
///
/// # Errors
/// EIO if the copy that counted failed.
#[cfg(feature = "std")]
pub(super) fn be_both(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    let desk = lead.desk();
    let epoch = u16::try_from(desk.epoch().load(SeqCst) + 1).map_err(|_| Errno::OVERFLOW)?;
    desk.epoch().store(epoch.into(), SeqCst);
    let copy = written(desk).trailing_zeros() as usize;
    say(lead, image, Mirror { copy, state: MirrorState::Both, epoch })?;
    desk.copies().store(3, SeqCst);
    agree(lead, image)
}

/// Both copies state their role, in both places.
#[cfg(feature = "std")]
fn agree(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    let desk = lead.desk();
    for _ in 0..2 {
        move_start(lead, image, start(desk))?;
    }
    desk.joining().store(0, SeqCst);
    Ok(())
}

/// Finishes what a dead daemon left of a rebuild: the other copy is alone again; or both count, and say so.
#[cfg(feature = "std")]
pub(super) fn inherit(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    settle(lead, image)?;
    if written(lead.desk()) == 3 { agree(lead, image) } else { stay_alone(lead, image) }
}

/// Writes an anchor to every copy that counts: where the oldest batch begins from now on, and what is before it.
///
/// # Errors
/// As for [`each`].
#[cfg(feature = "std")]
pub(super) fn move_start(lead: &Writer<'_>, image: &Region, start: (u64, u64)) -> Result<(), Errno> {
    settle(lead, image)?;
    let desk = lead.desk();
    let (copies, epoch) = (desk.copies().load(SeqCst), desk.epoch().load(SeqCst) as u16);
    let state = if copies == 3 { MirrorState::Both } else { MirrorState::Alone };
    attempt(lead, |copy| {
        let said = (copies != 0).then_some(Mirror { copy, state, epoch });
        put(lead, image, copy, anchor(desk, start).with_mirror(said))
    })?;
    note(desk, start);
    settle(lead, image)
}

/// The log is used again: no anchor says any more that it was closed. Both places are written: if the newer one were
/// damaged, the older one would hide what follows now. The writer cannot be replaced.
///
/// # Errors
/// As for [`each`].
pub(super) fn reopen(lead: &Writer<'_>, image: &Region) -> Result<(), Errno> {
    let desk = lead.desk();
    for _ in 0..2 {
        let start = start(desk);
        each(lead, image, |copy| put(lead, image, copy, anchor(desk, start)))?;
        note(desk, start);
    }
    desk.closed().store(0, SeqCst);
    Ok(())
}

/// Writes the last anchor: the oldest batch that counts begins there, and nobody writes another one behind the newest.
/// A mirrored log gets no such mark, because its copies are compared at each start anyway. The writer cannot be
/// replaced.
///
/// # Errors
/// As for [`each`].
#[cfg(feature = "std")]
pub(super) fn close(lead: &Writer<'_>, image: &Region, start: (u64, u64)) -> Result<(), Errno> {
    let desk = lead.desk();
    if desk.copies().load(SeqCst) != 0 {
        return move_start(lead, image, start);
    }
    attempt(lead, |copy| {
        let closed = desk.claimed().load(SeqCst);
        put(lead, image, copy, anchor(desk, start).closed(closed))
    })?;
    note(desk, start);
    Ok(())
}

/// Tail and predecessor of the newest anchor.
fn start(desk: Desk<'_>) -> (u64, u64) {
    let (tail, before) = desk.start(desk.anchor().load(SeqCst));
    (tail.load(SeqCst), before.load(SeqCst))
}

/// The next anchor.
fn anchor(desk: Desk<'_>, (tail, before): (u64, u64)) -> Anchor {
    let uuid = u128::from(desk.uuid_low().load(Relaxed)) | u128::from(desk.uuid_high().load(Relaxed)) << 64;
    let (size, block) = (desk.size().load(Relaxed), desk.block().load(Relaxed));
    let mut anchor = Anchor::new(uuid.to_le_bytes(), size, desk.image_bytes(), block);
    anchor.sequence = desk.anchor().load(SeqCst) + 1;
    (anchor.tail, anchor.before, anchor.last) = (tail, before, desk.newest().0.number());
    anchor
}

fn put(lead: &Writer<'_>, image: &Region, copy: usize, anchor: Anchor) -> Result<(), Errno> {
    let page = lead.desk().anchor_page();
    image.copy_in(page, &anchor.seal());
    lead.to(copy, image, page, ANCHOR_BYTES, Anchor::place(anchor.sequence))
}

/// The anchor is on the device: one store commits it.
fn note(desk: Desk<'_>, (tail, before): (u64, u64)) {
    let sequence = desk.anchor().load(SeqCst) + 1;
    let (next_tail, next_before) = desk.start(sequence);
    next_tail.store(tail, SeqCst);
    next_before.store(before, SeqCst);
    desk.anchor().store(sequence, SeqCst);
    desk.tail().store(tail, SeqCst);
}
