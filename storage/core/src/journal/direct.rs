//! A batch of a log on keepers, sent by any process that leads, on connections that the daemon made and lent.
//!
//! ```text
//!  the daemon, pinned: links, their number, acks ─▶ any process leads: send to all ─ enough confirmed ─▶ commit
//!                      ▲                                              │
//!                      └── asked by its socket (BADF) ◀── a link is of no use, and the others are not enough
//! ```
//!
//! The daemon alone connects, brings copies up to date, and decides whose word counts; where others must not send at
//! all, [`Desk::acks`](seawall_wire::desk::Desk::acks) is 0. A keeper that is being brought up to date gets batches
//! from everybody, and only the daemon listens to its answers. Whatever a replaced leader does afterwards is harmless,
//! as on a device:
//!
//! * Its batch does not count: the compare-and-swap of the commit fails. A keeper that has a newer batch drops it, and
//!   a keeper that has it holds nothing that was not in the log.
//! * Its frame is whole, or its [`sending`](seawall_wire::desk::Link::sending) shows that it is not: then nobody else
//!   sends behind it. Should something else go wrong, keepers find it by the checksums.
//! * Answers are taken whole, by any thread that comes, and stored where all see them. They only grow.
//! * On a connection that was given up, it sends in vain: a keeper listens to the newest connection alone.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_media::block::Draft;
use seawall_media::{LINE, Region, connection};
use seawall_stats::{Clock, ticks};
use seawall_wire::desk::{Desk, Link};
use seawall_wire::keeper::{Epoch, Frame, Kind, ack, acknowledged, needs_witnesses};

use super::handle::Journal;
use super::lead::REPLACED;
#[cfg(feature = "std")]
use super::lead::take_lead;
use super::listen;
use super::way::Links;
use super::writer::Writer;

/// The longest sleep between two checks for other things to do.
const NAP_NS: u32 = 20_000_000;
/// Naps without an answer after which the daemon has to step in: a second.
const NAPS: u32 = 50;
/// Naps to wait for room in a connection before it counts as useless: some 40 ms.
const ROOM_NAPS: u32 = 8;
const ROOM_NAP_NS: u32 = 5_000_000;

impl Journal {
    /// Sends a batch, and commits it.
    ///
    /// # Errors
    /// [`REPLACED`] if another thread leads by now; BADF if the daemon has to see to the links first: the batch does
    /// not count, whichever keepers have it.
    pub(super) fn send_directly(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        links: &Links<'_>,
        draft: Draft<'_>,
    ) -> Result<(), Errno> {
        let desk = self.desk(image);
        let (log, epoch) = (desk.uuid_low().load(Relaxed), desk.turn().0);
        self.sent_by(image, lead, draft, |batch| {
            let whole = Frame::new(Kind::Batch, log, epoch).numbered(batch.number, batch.previous);
            let witnesses =
                needs_witnesses(desk.acks().load(SeqCst) as usize, with_data(&usable(desk, links), desk));
            for (keeper, fd) in connected(&filtered(links, |keeper| desk.link(keeper).takes_batches())) {
                let link = desk.link(keeper);
                let frame = if link.has_data() { Some(whole) } else { whole.for_witness(witnesses) };
                let Some(frame) = frame else { continue };
                match sent(lead, link, fd, (image, batch.at, batch.len), frame) {
                    Some(bytes) => desk.tally(keeper).sent(bytes as u64),
                    None => give_up(lead, link),
                }
            }
            hear(lead, links, &Asked { epoch, number: batch.number, began: batch.began, witnesses })
        })
    }
}

/// How many of these have the data.
fn with_data(links: &Links<'_>, desk: Desk<'_>) -> usize {
    connected(links).filter(|(keeper, _)| desk.link(*keeper).has_data()).count()
}

/// Keepers whose word counts, and whose connection nobody found useless.
fn usable<'a>(desk: Desk<'_>, links: &Links<'a>) -> Links<'a> {
    filtered(links, |keeper| desk.link(keeper).is_usable())
}

fn filtered<'a>(links: &Links<'a>, is_wanted: impl Fn(usize) -> bool) -> Links<'a> {
    core::array::from_fn(|keeper| links[keeper].filter(|_| is_wanted(keeper)))
}

/// Connections that exist.
fn connected<'a>(links: &Links<'a>) -> impl Iterator<Item = (usize, BorrowedFd<'a>)> + use<'a> {
    let all = *links;
    (0..all.len()).filter_map(move |keeper| Some((keeper, all[keeper]?)))
}

/// From now on, until the daemon decides otherwise, it alone sends: another leader finds that out before it commits.
#[cfg(feature = "std")]
pub fn only_the_daemon_sends(desk: Desk<'_>) {
    loop {
        let lead = take_lead(desk, 0);
        if lead.pin() {
            desk.acks().store(0, SeqCst);
            return lead.unpin();
        }
    }
}

/// A batch that was sent.
struct Asked {
    epoch: Epoch,
    number: u64,
    /// When it was sent, in ticks.
    began: u64,
    /// Whether witnesses were asked for their word too.
    witnesses: bool,
}

/// Sends a frame, and to a keeper that has data also the bytes behind it. Returns the number of bytes sent. `None`: the
/// connection has become useless.
fn sent(
    lead: &Writer<'_>,
    link: Link<'_>,
    fd: BorrowedFd<'_>,
    (image, at, len): (&Region, usize, usize),
    frame: Frame,
) -> Option<usize> {
    let len = if link.has_data() { len } else { 0 };
    let line = frame.followed_by(len).seal();
    // A sender in the middle of a frame that is gone or stopped leaves the mark set.
    if link.sending().compare_exchange(0, lead.word(), SeqCst, Relaxed).is_err() {
        return None;
    }
    let (mut sent, mut naps) = (0, 0);
    while sent < LINE + len {
        match connection::send(fd, &line, image, (at, len), sent) {
            Ok(more) => {
                link.records().fetch_add(connection::records(more), Relaxed);
                sent += more;
            }
            Err(Errno::AGAIN) if naps < ROOM_NAPS => {
                connection::wait_for_room(fd, ROOM_NAP_NS);
                naps += 1;
            }
            Err(_) => return None,
        }
    }
    // If that fails, the daemon has made another connection: this one belongs to nobody any more.
    let _ = link.sending().compare_exchange(lead.word(), 0, SeqCst, Relaxed);
    Some(sent)
}

/// This process's connection is useless. One that the daemon has made since is not.
fn give_up(lead: &Writer<'_>, link: Link<'_>) {
    link.broken().fetch_max(lead.given(), SeqCst);
}

/// Listens until enough keepers have confirmed this batch.
///
/// # Errors
/// As for [`Journal::send_directly`].
fn hear(lead: &Writer<'_>, links: &Links<'_>, asked: &Asked) -> Result<(), Errno> {
    let desk = lead.desk();
    let acks = desk.acks().load(SeqCst) as usize;
    let most = listen::looks(desk);
    let (mut looks, mut naps) = (0, 0);
    loop {
        for (keeper, fd) in connected(&usable(desk, links)) {
            take_answers(lead, keeper, fd, asked);
        }
        // A word once given stands, whatever became of the connection since.
        let has_word = |link: &Link<'_>| link.is_usable() || link.confirmed().load(SeqCst) >= asked.number;
        let counting = desk.links().filter(|link| link.counts() && has_word(link));
        let confirmed = counting.map(|link| (link.confirmed().load(SeqCst), link.has_data()));
        if acknowledged(acks, confirmed) >= asked.number {
            listen::learn(desk, most, looks <= most);
            return Ok(());
        }
        if !lead.is_held() {
            return Err(REPLACED);
        }
        let usable = usable(desk, links);
        let asked_of = if asked.witnesses { connected(&usable).count() } else { with_data(&usable, desk) };
        if asked_of < acks || naps == NAPS {
            return Err(Errno::BADF);
        }
        looks += 1;
        if looks <= most {
            core::hint::spin_loop();
        } else if !connection::wait(&usable, NAP_NS) {
            naps += 1;
        }
    }
}

/// Takes a keeper's answers. Anything but a plain confirmation is left for the daemon.
fn take_answers(lead: &Writer<'_>, keeper: usize, fd: BorrowedFd<'_>, asked: &Asked) {
    let (desk, epoch) = (lead.desk(), asked.epoch);
    let (link, clock) = (desk.link(keeper), Clock { ns_per_ticks32: desk.clock().load(Relaxed) });
    while link.is_usable() {
        let next = match connection::peek(fd) {
            Ok(Some(line)) if confirmation(&line, epoch).is_some() => connection::take(fd),
            Ok(None) => return,
            Ok(Some(_)) => Err(Errno::PROTO),
            Err(error) => Err(error),
        };
        match next.map(|line| line.map(|line| confirmation(&line, epoch))) {
            // Another thread took it.
            Ok(None) => {}
            Ok(Some(Some(frame))) => {
                // When an answer to an earlier batch came is not known: nobody listened any more.
                if frame.number == asked.number {
                    desk.tally(keeper).answered(clock.ns(ticks().wrapping_sub(asked.began)));
                }
                link.confirmed().fetch_max(frame.number, SeqCst);
                link.hardened().fetch_max(frame.previous, SeqCst);
                if frame.number >= asked.number {
                    return;
                }
            }
            Ok(Some(None)) | Err(_) => give_up(lead, link),
        }
    }
}

/// The confirmation in a keeper's answer, if its copy belongs to this writer.
fn confirmation(line: &[u8; LINE], epoch: Epoch) -> Option<Frame> {
    let is_one = |frame: &Frame| frame.kind() == Some(Kind::Ack) && frame.code & ack::JOINING == 0;
    Frame::parse(line).filter(|frame| is_one(frame) && frame.epoch == epoch)
}
