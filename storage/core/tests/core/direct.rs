//! Batches that a process sends to keepers by itself, on connections that it was lent.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use seawall_core::Errno;
use seawall_core::journal::{Journal, Lender, Way, only_the_daemon_sends};
use seawall_media::block::BatchHeader;
use seawall_media::{LINE, Region};
use seawall_wire::desk::{Desk, LastWord, LeadWord, link_flags};
use seawall_wire::keeper::{Epoch, Frame, Kind, Position, Refusal, ack};

const IMAGE: usize = 64 << 10;
const LOG: u64 = 77;
const EPOCH: Epoch = Epoch { counter: 3, writer: 9 };
const BEGUN: u64 = 40;

/// A process with connections, and what it was lent.
struct Process {
    near: Vec<UnixStream>,
    given: AtomicU32,
}

impl Lender for Process {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn reaches_keepers(&self) -> bool {
        true
    }

    fn keeper(&self, keeper: usize) -> Option<BorrowedFd<'_>> {
        self.near.get(keeper).map(|near| near.as_fd())
    }

    fn given(&self) -> u32 {
        self.given.load(SeqCst)
    }

    fn harden(&self) -> Result<(), Errno> {
        Err(Errno::IO)
    }

    fn retire(&self, _: u32, _: u32, _: u64) -> Result<(), Errno> {
        Err(Errno::IO)
    }
}

/// A log of which `acks` keepers confirm, each with data or without, and the keepers' ends.
struct Log {
    image: Region,
    journal: Journal,
    process: &'static Process,
    far: Vec<UnixStream>,
}

impl Log {
    fn new(acks: u32, have_data: &[bool]) -> Self {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        let bytes = (IMAGE + Desk::bytes_for(1)) as u64;
        file.set_len(bytes).expect("room");
        let image = Region::map(&file, bytes, false).expect("a mapping");
        let (near, far) = have_data.iter().map(|_| UnixStream::pair().expect("a pair")).unzip();
        let process: &'static Process = Box::leak(Box::new(Process { near, given: AtomicU32::new(1) }));
        let journal = Journal::new(Way::Lent(process), IMAGE);
        let log = Self { image, journal, process, far };
        let desk = log.desk();
        desk.set_turn(EPOCH, Position::default(), BEGUN);
        desk.block().store(LINE as u32, SeqCst);
        desk.uuid_low().store(LOG, SeqCst);
        desk.claimed().store(BEGUN, SeqCst);
        desk.last().store(LastWord::new(BEGUN, 0).0, SeqCst);
        desk.given().store(1, SeqCst);
        for (keeper, has_data) in have_data.iter().enumerate() {
            let data = if *has_data { link_flags::DATA } else { 0 };
            desk.link(keeper).flags().store(link_flags::COUNTS | data, SeqCst);
            desk.link(keeper).made().store(1, SeqCst);
        }
        desk.acks().store(acks, SeqCst);
        log
    }

    fn desk(&self) -> Desk<'_> {
        self.journal.desk(&self.image)
    }

    fn newest(&self) -> u64 {
        self.desk().newest().0.number()
    }

    /// A table's line changes, and that is sent.
    fn commit(&self, value: u64) -> Result<(), Errno> {
        self.journal.change(&self.image, &[(0, LINE)], || self.image.u64(0).store(value, SeqCst))
    }

    /// Runs a commit, and beside it what its keepers do.
    fn beside<R>(&self, value: u64, keepers: impl FnOnce() -> R) -> (Result<(), Errno>, R) {
        thread::scope(|scope| {
            let commit = scope.spawn(|| self.commit(value));
            let done = keepers();
            (commit.join().expect("no panic"), done)
        })
    }
}

/// The next batch that arrives: its frame, and the image's first word in it; `None` without data.
fn batch(mut far: &UnixStream) -> (Frame, Option<u64>) {
    let mut line = [0; LINE];
    far.read_exact(&mut line).expect("a frame");
    let frame = Frame::parse(&line).expect("a frame");
    assert_eq!((frame.kind(), frame.epoch, frame.log), (Some(Kind::Batch), EPOCH, LOG));
    let mut body = vec![0; frame.len as usize];
    far.read_exact(&mut body).expect("a body");
    if body.is_empty() {
        return (frame, None);
    }
    let header = BatchHeader::of(&body, LOG).expect("a batch");
    assert_eq!((header.number, header.previous), (frame.number, frame.previous));
    let mut extents = header.extents(&body[LINE..], IMAGE as u64).expect("whole");
    let (at, data) = extents.next().expect("an extent");
    assert_eq!(at, 0);
    (frame, Some(u64::from_le_bytes(data[..8].try_into().expect("eight bytes"))))
}

fn confirm(mut far: &UnixStream, number: u64) {
    let answer = Frame::new(Kind::Ack, LOG, EPOCH).numbered(number, number - 1);
    far.write_all(&answer.seal()).expect("answered");
}

/// This thread is whoever has that seat.
fn sit_down(desk: Desk<'_>, seat: u32) {
    use std::os::unix::fs::MetadataExt as _;
    let (pid, tid) = (rustix::process::getpid(), rustix::thread::gettid());
    let word = |id: rustix::process::Pid| id.as_raw_nonzero().get() as u64;
    let namespace = std::fs::metadata("/proc/self/ns/pid").expect("it is there").ino();
    desk.seat(seat).namespace().store(namespace, SeqCst);
    desk.seat(seat).holder().store(word(pid) << 32 | word(tid), SeqCst);
}

#[test]
fn a_batch_counts_when_enough_have_it() {
    let log = Log::new(2, &[true, true, true]);
    let (done, ()) = log.beside(5, || {
        for far in &log.far[1..] {
            batch(far);
        }
        let (frame, value) = batch(&log.far[0]);
        assert_eq!((frame.number, frame.previous, value), (BEGUN + 1, BEGUN, Some(5)));
        confirm(&log.far[1], frame.number);
        assert_eq!(log.newest(), BEGUN, "one of two");
        confirm(&log.far[2], frame.number);
    });
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 1));
    let link = log.desk().link(2);
    assert_eq!((link.confirmed().load(SeqCst), link.hardened().load(SeqCst)), (BEGUN + 1, BEGUN));
    assert_eq!(log.desk().link(0).confirmed().load(SeqCst), 0);
}

#[test]
fn a_witness_gets_no_data_and_hears_of_what_counts() {
    let log = Log::new(1, &[false, true]);
    let (done, ()) = log.beside(5, || {
        let (told, data) = batch(&log.far[0]);
        assert_eq!((told.number, told.previous, data), (BEGUN, 0, None));
        let (frame, value) = batch(&log.far[1]);
        assert_eq!((frame.number, value), (BEGUN + 1, Some(5)));
        confirm(&log.far[0], told.number);
        assert_eq!(log.newest(), BEGUN, "nobody has the data yet");
        confirm(&log.far[1], frame.number);
    });
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 1));
}

#[test]
fn a_witness_stands_in_for_a_keeper_that_is_lost() {
    let log = Log::new(2, &[true, false, true]);
    // While it is not known to be lost the daemon has to see to it.
    let (done, ()) = log.beside(5, || {
        confirm(&log.far[0], batch(&log.far[0]).0.number);
        log.far[2].shutdown(Shutdown::Both).expect("gone");
    });
    assert_eq!((done, log.newest()), (Err(Errno::BADF), BEGUN));
    let told = batch(&log.far[1]).0.number;
    assert_eq!(told, BEGUN);
    let (done, ()) = log.beside(6, || {
        let frame = batch(&log.far[0]).0;
        confirm(&log.far[0], frame.number);
        assert_eq!(log.newest(), BEGUN, "one of two");
        let asked = batch(&log.far[1]).0;
        assert_eq!(asked.number, frame.number);
        confirm(&log.far[1], asked.number);
    });
    assert_eq!((done, log.newest() > BEGUN), (Ok(()), true));
}

#[test]
fn a_keeper_that_is_gone_is_left_out_while_the_others_are_enough() {
    let log = Log::new(1, &[true, true]);
    log.far[0].shutdown(Shutdown::Both).expect("gone");
    let (done, ()) = log.beside(5, || confirm(&log.far[1], batch(&log.far[1]).0.number));
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 1));
    assert!(!log.desk().link(0).is_usable() && log.desk().link(1).is_usable());
    log.far[1].shutdown(Shutdown::Both).expect("gone");
    assert_eq!(log.commit(6), Err(Errno::BADF), "the daemon is to see to it");
    assert_eq!(log.newest(), BEGUN + 1);
}

#[test]
fn what_is_no_confirmation_is_left_to_the_daemon() {
    let log = Log::new(1, &[true]);
    let (done, line) = log.beside(5, || {
        let (frame, _) = batch(&log.far[0]);
        let refusal = Frame::new(Kind::Refused, LOG, EPOCH).with_code(Refusal::Fenced as u32).seal();
        let mut far = &log.far[0];
        far.write_all(&refusal).expect("answered");
        // Whatever comes behind it.
        confirm(&log.far[0], frame.number);
        refusal
    });
    assert_eq!((done, log.newest()), (Err(Errno::BADF), BEGUN));
    let mut left = [0; LINE];
    let mut near = &log.process.near[0];
    near.read_exact(&mut left).expect("it is there");
    assert_eq!(left, line);
}

#[test]
fn who_speaks_of_another_turn_confirms_nothing() {
    let log = Log::new(1, &[true]);
    let (done, ()) = log.beside(5, || {
        let (frame, _) = batch(&log.far[0]);
        let newer = Epoch { counter: 4, writer: 1 };
        let mut far = &log.far[0];
        far.write_all(&Frame::new(Kind::Ack, LOG, newer).numbered(frame.number, 0).seal()).expect("answered");
    });
    assert_eq!((done, log.newest()), (Err(Errno::BADF), BEGUN));
}

#[test]
fn a_copy_that_is_not_there_yet_confirms_nothing() {
    let log = Log::new(1, &[true]);
    let (done, ()) = log.beside(5, || {
        let (frame, _) = batch(&log.far[0]);
        let joins = Frame::new(Kind::Ack, LOG, EPOCH).numbered(frame.number, 0).with_code(ack::JOINING);
        let mut far = &log.far[0];
        far.write_all(&joins.seal()).expect("answered");
    });
    assert_eq!((done, log.newest()), (Err(Errno::BADF), BEGUN));
}

#[test]
fn a_keeper_that_is_brought_up_to_date_gets_batches_and_only_the_daemon_hears_it() {
    let log = Log::new(1, &[true, true]);
    log.desk().link(1).flags().store(link_flags::JOINS | link_flags::DATA, SeqCst);
    let (done, ()) = log.beside(5, || {
        let (frame, data) = batch(&log.far[1]);
        assert_eq!(data, Some(5));
        // Its word is no reason to acknowledge anything.
        confirm(&log.far[1], frame.number);
        let (frame, _) = batch(&log.far[0]);
        assert_eq!(log.newest(), BEGUN, "only one that does not count has it");
        confirm(&log.far[0], frame.number);
    });
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 1));
    assert_eq!(log.desk().link(1).confirmed().load(SeqCst), 0);
    let mut answer = [0; LINE];
    let mut near = &log.process.near[1];
    near.read_exact(&mut answer).expect("it is still there, for the daemon");
    assert_eq!(Frame::parse(&answer).map(|frame| frame.number), Some(BEGUN + 1));
    // One that takes nothing is given up, and nobody waits for it.
    log.far[1].shutdown(Shutdown::Both).expect("hung up");
    let (done, ()) = log.beside(6, || confirm(&log.far[0], batch(&log.far[0]).0.number));
    assert_eq!((done, log.desk().link(1).is_broken()), (Ok(()), true));
}

#[test]
fn who_was_replaced_commits_nothing_and_sends_anew() {
    let log = Log::new(1, &[true]);
    let (done, ()) = log.beside(5, || {
        let (first, _) = batch(&log.far[0]);
        // Another one takes its place, commits nothing, and leaves. It lives: nobody takes the lead from it.
        let desk = log.desk();
        sit_down(desk, 7);
        let held = desk.lock().swap(LeadWord::new(1 << 20, 7).0, SeqCst);
        desk.last().store(LastWord(desk.last().load(SeqCst)).fenced().0, SeqCst);
        assert_ne!(held, 0);
        // Whether it hears that or not before it finds out.
        confirm(&log.far[0], first.number);
        desk.lock().store(0, SeqCst);
        let (second, value) = batch(&log.far[0]);
        assert_eq!((second.number, second.previous, value), (first.number + 1, BEGUN, Some(5)));
        assert_eq!(log.newest(), BEGUN);
        confirm(&log.far[0], second.number);
    });
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 2));
}

#[test]
fn nobody_sends_behind_half_a_frame() {
    let log = Log::new(1, &[true, true]);
    // Whoever led before died in the middle of it.
    log.desk().link(0).sending().store(LeadWord::new(5, 2).0, SeqCst);
    let (done, ()) = log.beside(5, || confirm(&log.far[1], batch(&log.far[1]).0.number));
    assert_eq!((done, log.newest()), (Ok(()), BEGUN + 1));
    assert!(!log.desk().link(0).is_usable());
    log.far[0].set_nonblocking(true).expect("set");
    let mut far = &log.far[0];
    assert!(far.read(&mut [0; 1]).is_err(), "nothing was sent there");
}

#[test]
fn a_connection_that_was_made_since_is_not_taken_for_the_broken_one() {
    let log = Log::new(1, &[true]);
    log.desk().link(0).made().store(2, SeqCst);
    log.desk().link(0).broken().store(1, SeqCst);
    assert!(log.desk().link(0).is_usable(), "what was found of the first one");
    log.desk().given().store(2, SeqCst);
    assert_eq!(log.commit(5), Err(Errno::BADF), "it has the first one's descriptor");
    log.process.given.store(2, SeqCst);
    let (done, ()) = log.beside(6, || confirm(&log.far[0], batch(&log.far[0]).0.number));
    assert_eq!(done, Ok(()));
}

#[test]
fn while_the_daemon_alone_sends_nobody_else_does() {
    let log = Log::new(1, &[true]);
    only_the_daemon_sends(log.desk());
    assert_eq!((log.commit(5), log.newest()), (Err(Errno::BADF), BEGUN));
    assert_eq!(log.desk().lock().load(SeqCst), 0);
    log.far[0].set_nonblocking(true).expect("set");
    let mut far = &log.far[0];
    assert!(far.read(&mut [0; 1]).is_err(), "nothing was sent");
}
