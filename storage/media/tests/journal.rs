//! A journal on a device that tears, garbles, drops and lies, read back: a prefix of what was written, up to what
//! had been reported durable; or a word that something is missing.

#[path = "journal/log.rs"]
mod log;

use proptest::prelude::*;
use seawall_media::block::{ANCHOR_BYTES, Anchor, JournalError, RING_AT};

use log::{BLOCK, Fate, IMAGE, Log, SIZE};

#[derive(Clone, Debug)]
enum Act {
    Batch(Vec<(u8, u8)>),
    Dies(Vec<(u8, u8)>, Vec<u8>),
    Forget(usize),
    /// The writer of the next batch is stopped before its write.
    Stops(Vec<(u8, u8)>),
    /// One of those who were replaced goes on, and finishes its write.
    GoesOn(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let places = || prop::collection::vec(any::<(u8, u8)>(), 1..6);
    let act = prop_oneof![
        6 => places().prop_map(Act::Batch),
        1 => (places(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(p, s)| Act::Dies(p, s)),
        2 => (1..6usize).prop_map(Act::Forget),
        1 => places().prop_map(Act::Stops),
        1 => any::<usize>().prop_map(Act::GoesOn),
    ];
    prop::collection::vec(act, 1..60)
}

fn play(log: &mut Log, acts: &[Act]) {
    for act in acts {
        match act {
            Act::Batch(places) => {
                if !log.batch(places, Fate::Counts) {
                    log.forget(usize::MAX);
                }
            }
            Act::Dies(places, sectors) => {
                if log.batch(places, Fate::Dies) {
                    // Its writer died: the image goes back, and of the write anything may be there.
                    log.damage(log.writes.len() - 1, sectors);
                    log.memory.copy_in(0, &log.states.last().expect("a state").clone());
                }
            }
            Act::Forget(n) => log.forget(*n),
            Act::Stops(places) => {
                if log.late.len() < 6 && log.batch(places, Fate::Stops) {
                    log.memory.copy_in(0, &log.states.last().expect("a state").clone());
                }
            }
            Act::GoesOn(which) => {
                if !log.late.is_empty() {
                    let (at, bytes) = log.late.remove(which % log.late.len());
                    log.put(at, bytes);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    // Holds: L22
    #[test]
    fn what_was_reported_durable_is_read_back(acts in acts(), last in prop::collection::vec(any::<(u8, u8)>(), 1..6), torn in prop::collection::vec(any::<u8>(), 1..9)) {
        let mut log = Log::new();
        play(&mut log, &acts);
        let before = log.states.last().expect("a state").clone();
        // The power goes while one more is written.
        let cut = log.batch(&last, Fate::Dies);
        let mut attempted = vec![0; IMAGE];
        log.memory.read(0, &mut attempted);
        if cut {
            log.damage(log.writes.len() - 1, &torn);
        }
        let (found, image) = log.read().expect("nothing reported durable is missing");
        prop_assert!(image == before || (cut && image == attempted) || found.last > log.last);
        prop_assert!(found.last >= log.last && found.highest >= found.last);
        prop_assert!(found.last == log.last || found.last <= log.number);
    }

    #[test]
    fn a_device_that_lost_a_durable_batch_is_found_out(acts in acts(), which in any::<prop::sample::Index>(), how in any::<u8>()) {
        let mut log = Log::new();
        play(&mut log, &acts);
        // Of the writes that count all but the last one can be missed.
        let counting: Vec<usize> = (0..log.writes.len()).filter(|i| {
            let w = &log.writes[*i];
            let number = u64::from_le_bytes(w.bytes[8..16].try_into().expect("eight bytes"));
            w.at as u64 >= RING_AT && log.ends.iter().any(|(_, n)| *n == number)
        }).collect();
        prop_assume!(counting.len() >= 2);
        let i = counting[which.index(counting.len() - 1)];
        let untouched = log.damage(i, &[how]);
        match log.read() {
            Ok((found, image)) => {
                prop_assert!(untouched && found.last >= log.last);
                prop_assert!(found.last > log.last || image == *log.states.last().expect("a state"));
            }
            Err(JournalError::Lost { missing, last }) => prop_assert!(!untouched && missing > last),
            Err(e) => prop_assert!(false, "{e}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is believed of a mark is what the whole ring says.
    #[test]
    fn a_closed_journal_is_read_as_any_other(acts in acts(), then in acts(), goes_on in any::<bool>(), lost in any::<Option<(prop::sample::Index, u8)>>()) {
        let mut log = Log::new();
        play(&mut log, &acts);
        prop_assert!(log.read_closed().is_none(), "it is in use");
        // Whoever was replaced has written by the time that a log is closed.
        while !log.late.is_empty() {
            play(&mut log, &[Act::GoesOn(0)]);
        }
        log.close();
        if let Some((which, how)) = lost.filter(|_| log.writes.len() > 1) {
            log.damage(which.index(log.writes.len() - 1), &[how]);
        }
        let at = log.anchor;
        if goes_on {
            // The mark ought to have gone before.
            let then: Vec<_> = then.into_iter().filter(|act| matches!(act, Act::Batch(_))).take(3).collect();
            play(&mut log, &then);
        }
        prop_assume!(log.anchor == at);
        if let Some((found, image)) = log.read_closed() {
            let (all, whole) = log.read().expect("nothing is missing that counts");
            prop_assert!(found.last >= log.last && found.highest >= all.highest);
            if found.last == all.last {
                prop_assert_eq!((found.end, found.batches), (all.end, all.batches));
                prop_assert!(image == whole);
            } else {
                // Of somebody who was replaced, and wrote when nothing followed any more: it may count, and need not.
                prop_assert!(all.last > log.last && image == *log.states.last().expect("a state"));
            }
        }
    }

    #[test]
    fn a_journal_that_was_closed_needs_no_look_at_its_ring(acts in prop::collection::vec(prop::collection::vec(any::<(u8, u8)>(), 1..6), 1..40)) {
        let mut log = Log::new();
        play(&mut log, &acts.into_iter().map(Act::Batch).collect::<Vec<_>>());
        log.close();
        prop_assert!(log.read_closed().is_some_and(|(found, image)| found.last == log.last && image == *log.states.last().expect("a state")));
    }
}

/// No later batch names the newest one; an anchor does that was written behind it.
// Holds: L21
#[test]
fn a_device_that_lost_its_newest_batch_is_found_out_by_the_anchor() {
    for lost in [0, 1] {
        let mut log = Log::new();
        assert!(log.batch(&[(1, 1)], Fate::Counts) && log.batch(&[(2, 1)], Fate::Counts));
        log.forget(1 - lost);
        let named = log.read();
        assert_eq!(named.map(|(found, _)| found.last).ok(), Some(2));
        assert!(!log.damage(1, &[0]));
        match (lost, log.read()) {
            (0, Err(JournalError::Lost { last: 1, missing: 2 })) => {}
            (1, Ok((found, _))) => assert_eq!(found.last, 1, "nobody can tell"),
            (_, other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_journal_of_another_pool_is_not_believed() {
    let mut log = Log::new();
    assert!(log.batch(&[(1, 1)], Fate::Counts));
    let stranger = Anchor::new([8; 16], SIZE, IMAGE as u64, BLOCK);
    log.disk[..ANCHOR_BYTES].copy_from_slice(&stranger.seal());
    assert_eq!(log.read().expect("an empty journal").0.batches, 0);
    log.disk[..2 * ANCHOR_BYTES].fill(0);
    assert!(matches!(log.read(), Err(JournalError::Anchor(_))));
}
