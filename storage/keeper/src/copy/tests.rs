use seawall_media::block::Draft;
use seawall_media::{LINE, Region};

use super::image::SCAN;
use super::*;

const LOG: u64 = 77;
const IMAGE: usize = 4 * LINE;

fn epoch(counter: u64) -> Epoch {
    Epoch { counter, writer: 9 }
}

fn promised(copy: &mut Copy, counter: u64) -> Turn {
    copy.may_promise(epoch(counter)).expect("the newest");
    copy.promise(epoch(counter))
}

/// A batch that fills a line with a byte.
fn batch(line: usize, byte: u8, number: u64, log: u64) -> Vec<u8> {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    file.set_len(16 << 10).expect("room");
    let region = Region::map(&file, 16 << 10, false).expect("a mapping");
    region.copy_in(line * LINE, &[byte; LINE]);
    let mut draft = Draft::begin(&region, (4096, 4096), (8192, 8));
    assert!(draft.take(line * LINE, LINE));
    let mut bytes = vec![0; draft.seal(number, number - 1, 0, log, LINE as u32)];
    region.read(4096, &mut bytes);
    bytes
}

fn bytes_of(copy: &Copy) -> Vec<u8> {
    let mut image = vec![0; copy.image_bytes() as usize];
    let mut at = 0;
    while let Some((begin, bytes)) = copy.stretch(at, LINE) {
        image[begin as usize..][..bytes.len()].copy_from_slice(bytes);
        at = begin + bytes.len() as u64;
    }
    image
}

/// A copy of the first writer, at batch 10, in which line 1 is of ones.
fn at_ten() -> (Copy, Turn) {
    let mut copy = Copy::new(LOG, IMAGE as u64, false);
    let turn = promised(&mut copy, 1);
    copy.adopt(turn, Position::default(), 9).expect("empty, as the log was");
    assert_eq!(copy.batch(turn, 10, 9, &batch(1, 1, 10, LOG)), Ok(Taken::Copy));
    (copy, turn)
}

#[test]
fn a_batch_is_taken_by_a_copy_that_has_its_predecessor() {
    let (mut copy, turn) = at_ten();
    assert_eq!(copy.batch(turn, 13, 11, &batch(2, 2, 13, LOG)), Err(Refusal::Behind));
    // Of a writer that was replaced; its successor names the same predecessor.
    assert_eq!(copy.batch(turn, 11, 10, &batch(2, 2, 11, LOG)), Ok(Taken::Copy));
    assert_eq!(copy.batch(turn, 12, 10, &batch(2, 3, 12, LOG)), Ok(Taken::Copy));
    assert_eq!(copy.batch(turn, 11, 10, &batch(2, 2, 11, LOG)), Ok(Taken::Late));
    assert_eq!(bytes_of(&copy)[2 * LINE], 3, "what comes too late changes nothing");
    assert_eq!(copy.position(), Position { epoch: epoch(1), number: 12 });
}

#[test]
fn a_damaged_or_foreign_batch_changes_nothing() {
    let (mut copy, turn) = at_ten();
    let before = bytes_of(&copy);
    let good = batch(2, 2, 11, LOG);
    for at in [0, 9, LINE + 5, good.len() - LINE + 3] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(copy.batch(turn, 11, 10, &bad), Err(Refusal::Malformed), "byte {at}");
    }
    assert_eq!(copy.batch(turn, 11, 10, &good[..LINE]), Err(Refusal::Malformed));
    assert_eq!(copy.batch(turn, 11, 10, &[]), Err(Refusal::Malformed));
    assert_eq!(copy.batch(turn, 12, 10, &good), Err(Refusal::Malformed), "another number");
    assert_eq!(copy.batch(turn, 11, 10, &batch(2, 2, 11, LOG + 1)), Err(Refusal::Malformed), "another log");
    assert_eq!(copy.batch(turn, 11, 10, &batch(40, 2, 11, LOG)), Err(Refusal::Malformed), "beyond the image");
    assert_eq!((bytes_of(&copy), copy.position().number), (before, 10));
}

#[test]
fn a_promise_ends_every_former_turn_and_what_was_begun_in_it() {
    let (mut copy, first) = at_ten();
    copy.begin(first).expect("its turn");
    let again = promised(&mut copy, 1);
    assert_eq!(copy.begin(first), Err(Refusal::Fenced), "the same writer's former connection");
    assert!(!copy.is_joining());
    assert_eq!(copy.complete(again, 10), Err(Refusal::Malformed), "nothing was begun in this turn");
    let second = promised(&mut copy, 2);
    assert_eq!(copy.may_promise(epoch(1)), Err(Refusal::Fenced));
    assert_eq!(copy.batch(again, 11, 10, &batch(2, 2, 11, LOG)), Err(Refusal::Fenced));
    assert_eq!(copy.may_fetch(again), Err(Refusal::Fenced));
    assert_eq!(
        copy.batch(second, 11, 10, &batch(2, 2, 11, LOG)),
        Err(Refusal::Behind),
        "not its batch before"
    );
    assert_eq!(copy.may_promise(Epoch::default()), Err(Refusal::Fenced));
}

#[test]
fn a_second_image_takes_batches_and_is_the_copy_only_when_it_is_complete() {
    let (mut copy, _) = at_ten();
    let turn = promised(&mut copy, 2);
    copy.begin(turn).expect("its turn");
    copy.piece(turn, 0, 0, &[5; LINE]).expect("inside");
    assert_eq!(copy.batch(turn, 21, 20, &batch(3, 7, 21, LOG)), Ok(Taken::Second));
    assert_eq!(copy.position(), Position { epoch: epoch(1), number: 10 }, "the old copy votes meanwhile");
    assert_eq!(copy.piece(turn, IMAGE as u64, 0, &[1]), Err(Refusal::Malformed));
    assert_eq!(copy.piece(turn, u64::MAX, 0, &[1]), Err(Refusal::Malformed));
    copy.complete(turn, 21).expect("newer");
    let image = bytes_of(&copy);
    assert_eq!((image[0], image[LINE], image[3 * LINE]), (5, 0, 7), "nothing of the old one");
    assert_eq!(copy.position(), Position { epoch: epoch(2), number: 21 });
    assert_eq!(copy.piece(turn, 0, 0, &[1; LINE]), Err(Refusal::Malformed));
}

/// Any process sends while a keeper is brought up to date: one that was replaced, and goes on later, sends what is old.
#[test]
fn a_second_image_takes_no_batch_that_is_older_than_what_is_in_it() {
    let (mut copy, _) = at_ten();
    let turn = promised(&mut copy, 2);
    copy.begin(turn).expect("its turn");
    copy.piece(turn, 2 * LINE as u64, 20, &[5; LINE]).expect("inside");
    assert_eq!(copy.batch(turn, 20, 19, &batch(2, 1, 20, LOG)), Ok(Taken::Late), "it is in the piece");
    assert_eq!(copy.batch(turn, 22, 20, &batch(3, 7, 22, LOG)), Ok(Taken::Second));
    assert_eq!(copy.batch(turn, 21, 20, &batch(3, 6, 21, LOG)), Ok(Taken::Late), "its successor is there");
    // Batch 22 is not known to count yet.
    copy.complete(turn, 20).expect("newer");
    let image = bytes_of(&copy);
    assert_eq!((image[2 * LINE], image[3 * LINE]), (5, 7));
    assert_eq!(copy.position(), Position { epoch: epoch(2), number: 22 });
    assert_eq!(
        copy.batch(turn, 23, 20, &batch(1, 8, 23, LOG)),
        Ok(Taken::Copy),
        "it followed one that was given up"
    );
}

#[test]
fn a_copy_that_lost_its_memory_votes_and_takes_batches_only_with_a_new_one() {
    let mut copy = Copy::new(LOG, IMAGE as u64, false).lost(epoch(1));
    let turn = promised(&mut copy, 1);
    assert!(!copy.is_kept());
    assert_eq!(copy.adopt(turn, Position::default(), 10), Err(Refusal::Behind));
    assert_eq!(copy.batch(turn, 1, 0, &batch(1, 1, 1, LOG)), Err(Refusal::Behind));
    copy.begin(turn).and_then(|()| copy.complete(turn, 10)).expect("a new copy");
    assert!(copy.is_kept());
    // One whose disk has a part of it.
    let (whole, _) = at_ten();
    let mut part = Copy { is_kept: false, ..whole };
    let turn = promised(&mut part, 1);
    assert_eq!(part.batch(turn, 11, 10, &batch(2, 2, 11, LOG)), Err(Refusal::Behind));
    let turn = promised(&mut part, 2);
    assert_eq!(part.adopt(turn, Position { epoch: epoch(1), number: 10 }, 11), Err(Refusal::Behind));
}

#[test]
fn a_copy_adopts_from_where_it_is_and_from_nowhere_else() {
    let (mut copy, _) = at_ten();
    let turn = promised(&mut copy, 2);
    for (counter, number) in [(1, 9), (1, 11), (2, 10)] {
        let from = Position { epoch: epoch(counter), number };
        assert_eq!(copy.adopt(turn, from, 20), Err(Refusal::Behind), "{from:?}");
    }
    copy.adopt(turn, Position { epoch: epoch(1), number: 10 }, 11).expect("there");
    assert_eq!(copy.batch(turn, 12, 11, &batch(2, 2, 12, LOG)), Ok(Taken::Copy));
}

#[test]
fn a_witness_has_numbers_and_no_data() {
    let mut copy = Copy::new(LOG, IMAGE as u64, true).lost(epoch(1));
    let turn = promised(&mut copy, 1);
    copy.adopt(turn, Position { epoch: epoch(1), number: 10 }, 10)
        .expect("a witness learns where the log is");
    assert_eq!(copy.batch(turn, 11, 10, &[]), Ok(Taken::Copy));
    assert_eq!(copy.batch(turn, 12, 11, &batch(2, 2, 12, LOG)), Err(Refusal::Witness));
    assert_eq!((copy.begin(turn), copy.may_fetch(turn)), (Err(Refusal::Witness), Err(Refusal::Witness)));
    assert_eq!((copy.position().number, copy.stretch(0, LINE)), (11, None));
}

#[test]
fn a_copy_never_goes_back() {
    let (mut copy, turn) = at_ten();
    let ten = copy.position();
    for (number, previous) in [(11, 11), (10, 12), (1, 1)] {
        let bytes = batch(2, 2, number, LOG);
        assert_eq!(
            copy.batch(turn, number, previous, &bytes),
            Err(Refusal::Malformed),
            "its own predecessor"
        );
    }
    assert_eq!(copy.adopt(turn, ten, 9), Err(Refusal::Behind));
    copy.begin(turn).expect("its turn");
    assert_eq!(copy.complete(turn, 9), Err(Refusal::Malformed));
    assert_eq!((copy.position(), bytes_of(&copy)[LINE]), (ten, 1), "its image neither");
    let mut witness = Copy::new(LOG, IMAGE as u64, true);
    let turn = promised(&mut witness, 1);
    witness.adopt(turn, Position::default(), 10).expect("a witness learns where the log is");
    assert_eq!(witness.adopt(turn, ten, 9), Err(Refusal::Behind));
    assert_eq!(witness.position(), ten);
}

#[test]
fn who_looks_through_many_zeros_hears_of_it_on_the_way() {
    let copy = Copy::new(LOG, (2 * SCAN + LINE) as u64, false);
    let mut at = 0;
    for scanned in [SCAN, 2 * SCAN] {
        let (begin, bytes) = copy.stretch(at, 1 << 20).expect("a line of zeros");
        assert_eq!((begin as usize, bytes), (scanned - LINE, &[0; LINE][..]));
        at = scanned as u64;
    }
    assert_eq!(copy.stretch(at, 1 << 20), None);
}
