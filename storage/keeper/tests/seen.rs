//! What a writer tells of its keepers: how long they took, what was sent, what each of them lacks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use seawall_keeper::meta::{Member, Mode, Roster};
use seawall_keeper::plan::Head;
use seawall_keeper::wire::Wire;
use seawall_keeper::writer::{Role, Source, Writer};
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Position, State, state};
use zerocopy::FromZeros as _;

const EPOCH: Epoch = Epoch { counter: 3, writer: 1 };
const ZERO: Duration = Duration::ZERO;
/// So long that a quarter of it is more than a busy machine takes for the rest of a test.
const LONG: Duration = Duration::from_secs(1);

/// A connection that takes everything, and answers what a test says.
#[derive(Clone, Default)]
struct Line {
    answers: Rc<RefCell<VecDeque<u8>>>,
    sent: Rc<RefCell<Vec<Frame>>>,
}

impl Line {
    fn confirms(&self, number: u64) {
        self.answers.borrow_mut().extend(Frame::new(Kind::Ack, 7, EPOCH).numbered(number, 0).seal());
    }

    /// The numbers of the batches that were sent since this was called last.
    fn sent(&self) -> Vec<u64> {
        self.sent.borrow_mut().drain(..).map(|frame| frame.number).collect()
    }
}

impl Wire for Line {
    fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        let line = bytes.first_chunk().expect("a line");
        self.sent.borrow_mut().push(Frame::parse(line).expect("a frame"));
        Ok(())
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let (mut bytes, len) = (self.answers.borrow_mut(), into.len());
        if bytes.len() < len {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        into.iter_mut().zip(bytes.drain(..len)).for_each(|(to, from)| *to = from);
        Ok(len)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Two keepers of which one must confirm, both up to date at batch 10.
fn writer() -> (Writer<Line>, [Line; 2]) {
    let member = |witness| Member { id: String::new(), address: String::new(), witness };
    let roster = Roster { acks: 1, members: vec![member(false), member(false)], mode: Mode::default() };
    let base = Position { epoch: EPOCH, number: 10 };
    let mut writer = Writer::new(7, Head { epoch: EPOCH, base, begun: 10, last: 10 }, roster);
    let lines = [Line::default(), Line::default()];
    lines.iter().enumerate().for_each(|(i, line)| meet(&mut writer, i, line, 10));
    (writer, lines)
}

fn meet(writer: &mut Writer<Line>, keeper: usize, line: &Line, number: u64) {
    let mut at = State::new_zeroed();
    (at.position, at.flags) = (Position { epoch: EPOCH, number }, state::KEPT);
    writer.meets(keeper, line.clone(), at);
}

/// Its word on what does not count yet would have a takeover wait for the one keeper that has it.
#[test]
fn a_witness_hears_of_what_counts_until_its_word_is_needed() {
    let member = |witness| Member { id: String::new(), address: String::new(), witness };
    let members = vec![member(false), member(false), member(true)];
    let roster = Roster { acks: 2, members, mode: Mode::default() };
    let base = Position { epoch: EPOCH, number: 10 };
    let mut writer = Writer::new(7, Head { epoch: EPOCH, base, begun: 10, last: 10 }, roster);
    let lines @ [first, second, witness] = &[Line::default(), Line::default(), Line::default()];
    let meet = |writer: &mut Writer<Line>, keeper: usize, flags| {
        let mut at = State::new_zeroed();
        (at.position, at.flags) = (Position { epoch: EPOCH, number: 10 }, state::KEPT | flags);
        writer.meets(keeper, lines[keeper].clone(), at);
    };
    (0..3).for_each(|keeper| meet(&mut writer, keeper, if keeper == 2 { state::WITNESS } else { 0 }));
    writer.send(12, 10, vec![0; 100]);
    assert_eq!((first.sent(), witness.sent()), (vec![12], vec![10]));
    first.confirms(12);
    assert!(!writer.hear(ZERO), "the other one counts, and has not confirmed");
    second.confirms(12);
    assert!(writer.hear(ZERO));
    // One is lost while a batch is under way.
    writer.send(13, 12, vec![0; 100]);
    first.confirms(13);
    assert!(!writer.hear(ZERO));
    assert_eq!(witness.sent(), [12]);
    writer.gives_up(1, "a test");
    assert!(!writer.hear(ZERO));
    assert_eq!(witness.sent(), [13], "now it is needed, and it is asked once");
    witness.confirms(13);
    assert!(writer.hear(ZERO));
    // A witness that is met again lacks nothing.
    writer.gives_up(2, "a test");
    meet(&mut writer, 2, state::WITNESS);
    assert_eq!((writer.report()[2].role, writer.has_everything(2)), (Role::Counts, true));
}

#[test]
fn answers_are_timed_only_if_somebody_listened_when_they_came() {
    let (mut writer, [first, second]) = writer();
    writer.send(11, 10, vec![0; 100]);
    sleep(LONG);
    assert!(!writer.hear(ZERO), "nobody answered");
    first.confirms(11);
    second.confirms(11);
    assert!(writer.hear(ZERO));
    writer.send(12, 11, vec![0; 100]);
    // They come at once, and are read later: nobody knows how much.
    first.confirms(12);
    second.confirms(12);
    assert!(writer.hear(ZERO));
    for news in writer.news() {
        let [took] = news.answers[..] else { panic!("{news:?}") };
        assert!(took > LONG / 2, "{took:?}");
        assert_eq!(news.sent, 2 * (LINE as u64 + 100));
    }
    assert!(writer.news().all(|news| news == Default::default()), "it is said once");
}

#[test]
fn each_batch_of_a_keeper_that_lags_is_timed() {
    let (mut writer, [first, second]) = writer();
    for number in 11..=14 {
        writer.send(number, number - 1, vec![0; 100]);
        first.confirms(number);
        assert!(writer.hear(ZERO));
    }
    assert_eq!(writer.report().iter().map(|link| link.lacks).collect::<Vec<_>>(), [0, 400]);
    sleep(LONG);
    writer.hear(ZERO);
    second.confirms(13);
    writer.hear(ZERO);
    let news: Vec<_> = writer.news().collect();
    assert_eq!(news[1].answers.len(), 3);
    assert!(news[1].answers.iter().all(|took| *took > LONG / 2), "{news:?}");
    assert_eq!(writer.report()[1].lacks, 100);
}

#[test]
fn what_a_lost_keeper_lacks_grows_until_it_counts_again() {
    let (mut writer, [first, second]) = writer();
    second.answers.borrow_mut().extend([0; LINE]);
    writer.hear(ZERO);
    assert_eq!(writer.report()[1].role, Role::Down);
    writer.send(11, 10, vec![0; 70]);
    first.confirms(11);
    assert!(writer.hear(ZERO));
    assert_eq!(writer.report()[1].lacks, 70);
    let again = Line::default();
    meet(&mut writer, 1, &again, 11);
    let report = &writer.report()[1];
    assert_eq!((report.role, report.lacks), (Role::Counts, 0));
    let reconnects: Vec<_> = writer.news().map(|news| news.reconnects).collect();
    assert_eq!(reconnects, [0, 1]);
}

/// An image that is all the keeper needs.
struct Nothing;

impl Source for Nothing {
    fn stretch(&self, _: u64, _: &mut Vec<u8>) -> Option<u64> {
        None
    }
}

#[test]
fn who_is_brought_up_to_date_is_not_given_up_because_others_led_meanwhile() {
    let (mut writer, [first, _]) = writer();
    let (again, later) = (Line::default(), |seconds| Instant::now() + Duration::from_secs(seconds));
    meet(&mut writer, 1, &again, 9);
    assert_eq!(writer.report()[1].role, Role::Joins);
    writer.follow(12);
    first.confirms(12);
    writer.hear(ZERO);
    writer.give_up_silent(later(10));
    writer.bring(&Nothing, usize::MAX);
    writer.give_up_silent(later(10));
    assert_eq!(writer.report()[1].role, Role::Waits, "its disk may have much to do");
    writer.give_up_silent(later(100));
    assert_eq!(writer.report()[1].role, Role::Down);
    assert_eq!(writer.report()[0].role, Role::Counts);
    writer.follow(13);
    writer.give_up_silent(later(10));
    assert_eq!(writer.report()[0].role, Role::Down, "it did not confirm what others sent");
}
