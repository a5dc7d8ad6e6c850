use seawall_media::LINE;

use super::*;
use crate::answer::answer;

const LOG: u64 = 7;
const EPOCH: Epoch = Epoch { counter: 1, writer: 5 };
const IMAGE: u64 = 1 << 20;

fn empty() -> Copy {
    Copy::new(LOG, IMAGE, false)
}

/// Has the copy and its file take a frame.
fn take(copy: &mut Copy, spool: &mut Spool, frame: Frame, body: &[u8]) {
    let turn = copy.turn_of(EPOCH).expect("its own");
    answer(copy, turn, &frame, body).expect("taken");
    let mut frames = Frames::default();
    frames.push(&frame, body);
    spool.append(&mut frames).expect("written");
}

/// Another image, of one byte, up to this number.
fn fill(copy: &mut Copy, spool: &mut Spool, byte: u8, number: u64) {
    let frame = |kind| Frame::new(kind, LOG, EPOCH);
    take(copy, spool, frame(Kind::Begin), &[]);
    for at in (0..IMAGE).step_by(PIECE) {
        take(copy, spool, frame(Kind::Piece).numbered(at, 0), &[byte; PIECE]);
    }
    take(copy, spool, frame(Kind::Complete).numbered(number, 0), &[]);
}

fn shorten(copy: &Copy, spool: &mut Spool) -> bool {
    let was = spool.now.number;
    if let Some(file) = to_sync(copy, spool) {
        file.sync_all().expect("synced");
        spool.take_turns(false).expect("exchanged");
    }
    spool.now.number != was
}

/// Its successor, once that has everything.
fn to_sync(copy: &Copy, spool: &mut Spool) -> Option<File> {
    loop {
        match spool.shorten(copy).expect("written") {
            Step::Nothing => return None,
            Step::More => {}
            Step::Sync(file) => return Some(file),
        }
    }
}

/// Nobody waits while it is synced, so anything may come meanwhile.
#[test]
fn a_successor_takes_no_turn_before_it_is_synced_nor_when_another_image_came() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("copy");
    let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
    let mut number = 0;
    let mut due = |copy: &mut Copy, spool: &mut Spool| loop {
        number += 1;
        fill(copy, spool, number as u8, number);
        if to_sync(copy, spool).is_some() {
            break number;
        }
    };
    let number = due(&mut copy, &mut spool);
    let was = spool.now.number;
    assert_eq!(read(&path), (number, vec![number as u8; IMAGE as usize], None), "the former one has it too");
    fill(&mut copy, &mut spool, 77, number + 1);
    spool.take_turns(false).expect("nothing to do");
    assert_eq!(spool.now.number, was);
    assert_eq!(read(&path), (number + 1, vec![77; IMAGE as usize], None));
    assert!(shorten(&copy, &mut spool) && spool.now.number != was);
    assert_eq!(read(&path), (number + 1, vec![77; IMAGE as usize], None));
}

fn read(path: &Path) -> (u64, Vec<u8>, Option<String>) {
    let apart = tempfile::tempdir().expect("a directory");
    let other = apart.path().join("copy");
    fs::copy(path, &other).expect("copied");
    let (_, Found { copy, trouble }) = Spool::open(&other, empty()).expect("opened");
    let image = copy.stretch(0, IMAGE as usize).map(|(_, bytes)| bytes.to_vec());
    (copy.position().number, image.unwrap_or_default(), trouble)
}

#[test]
fn files_take_turns_and_what_a_former_use_left_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("copy");
    let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
    let mut turns = 0;
    for number in 1..=100 {
        fill(&mut copy, &mut spool, number as u8, number);
        turns += u32::from(shorten(&copy, &mut spool));
        if number % 7 == 0 {
            assert_eq!(read(&path), (number, vec![number as u8; IMAGE as usize], None));
        }
    }
    assert!(turns >= 4, "{turns}");
    // Neither grows from turn to turn.
    for path in [&path, &other_of(&path)] {
        let length = fs::metadata(path).expect("there").len();
        assert!(length <= longest(IMAGE) + 2 * IMAGE, "{length}");
    }
}

/// A power cut may leave a whole frame with what lay behind it before.
#[test]
fn a_piece_that_is_not_whole_is_no_piece() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("copy");
    let (mut copy, mut spool) = (empty(), Spool::create(&path, IMAGE).expect("made"));
    fill(&mut copy, &mut spool, 1, 1);
    let before = spool.now.bytes;
    fill(&mut copy, &mut spool, 2, 2);
    assert_eq!(read(&path).0, 2);
    spool.now.file.write_all_at(&[9], before + 3 * LINE as u64).expect("written");
    let (number, image, trouble) = read(&path);
    assert_eq!((number, image[0]), (1, 1));
    assert!(trouble.is_some(), "whole ones follow");
}
