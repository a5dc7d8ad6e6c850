//! A journal on a device that tears, garbles, drops and lies, read back: a prefix of what was written, up to what
//! had been reported durable; or a word that something is missing.

use std::fs::File;

use proptest::prelude::*;
use seawall_media::Region;
use seawall_media::block::{
    ANCHOR_BYTES, Anchor, Draft, JournalError, RING_AT, Recovered, Ring, read, read_closed,
};

const IMAGE: usize = 16 << 10;
const BUFFER: usize = 16 << 10;
const EXTENTS: u32 = 32;
const BLOCK: u32 = 512;
const SIZE: u64 = RING_AT + (64 << 10);
const UUID: [u8; 16] = [9; 16];

/// What one device write was to put where.
struct Write {
    at: usize,
    bytes: Vec<u8>,
    /// What was there before.
    old: Vec<u8>,
}

/// A writer, its memory and its device.
struct Log {
    memory: Region,
    disk: Vec<u8>,
    ring: Ring,
    anchor: Anchor,
    number: u64,
    last: u64,
    end: u64,
    /// The image at the tail, and after each batch that counts since.
    states: Vec<Vec<u8>>,
    /// Where each of these batches ended, and its number.
    ends: Vec<(u64, u64)>,
    writes: Vec<Write>,
    /// Batches of those who were replaced before they wrote them, and where they go.
    late: Vec<(usize, Vec<u8>)>,
}

/// What becomes of a batch.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Counts,
    /// Its writer dies in the write.
    Dies,
    /// Its writer is stopped before the write, and another one takes its place.
    Stops,
}

impl Log {
    fn new() -> Self {
        let file =
            File::from(rustix::fs::memfd_create("journal", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
        let len = (IMAGE + BUFFER + 4096) as u64;
        file.set_len(len).expect("room");
        let memory = Region::map(&file, len, false).expect("a mapping");
        let anchor = Anchor::new(UUID, SIZE, IMAGE as u64, BLOCK);
        let mut disk = vec![0; SIZE as usize];
        disk[..ANCHOR_BYTES].copy_from_slice(&anchor.seal());
        Self {
            memory,
            disk,
            ring: Ring { size: SIZE },
            anchor,
            number: 0,
            last: 0,
            end: RING_AT,
            states: vec![vec![0; IMAGE]],
            ends: Vec::new(),
            writes: Vec::new(),
            late: Vec::new(),
        }
    }

    fn put(&mut self, at: usize, bytes: Vec<u8>) {
        let old = self.disk[at..at + bytes.len()].to_vec();
        self.disk[at..at + bytes.len()].copy_from_slice(&bytes);
        self.writes.push(Write { at, bytes, old });
    }

    /// Changes the image in these places and writes a batch of them. False: the ring is full.
    fn batch(&mut self, places: &[(u8, u8)], fate: Fate) -> bool {
        self.number += 1;
        let mut state = self.states.last().expect("a state").clone();
        let mut draft = Draft::begin(&self.memory, (IMAGE, BUFFER), (IMAGE + BUFFER, EXTENTS));
        for (line, n) in places {
            let at = usize::from(*line) * 64 % IMAGE;
            let len = (usize::from(*n % 32 + 1) * 64).min(IMAGE - at);
            state[at..at + len].fill(self.number as u8 ^ n);
            self.memory.copy_in(at, &state[at..at + len]);
            if !draft.take(at, len) {
                break;
            }
        }
        let size = draft.size(BLOCK) as u64;
        let avoided: Vec<_> = self.late.iter().map(|(at, bytes)| (*at as u64, bytes.len() as u64)).collect();
        let Some(at) = self.ring.place(self.anchor.tail, self.end, size, &avoided) else {
            // What did not get out is in no batch.
            self.memory.copy_in(0, self.states.last().expect("a state"));
            return false;
        };
        let mut applied = vec![0; IMAGE];
        self.memory.read(0, &mut applied);
        let sealed = draft.seal(self.number, self.last, at, self.anchor.uuid_low(), BLOCK);
        assert_eq!(sealed as u64, size);
        let mut bytes = vec![0; sealed];
        self.memory.read(IMAGE, &mut bytes);
        if fate == Fate::Stops {
            self.late.push((at as usize, bytes));
            return true;
        }
        self.put(at as usize, bytes);
        if fate == Fate::Dies {
            return true;
        }
        (self.last, self.end) = (self.number, at + size);
        self.states.push(applied);
        self.ends.push((self.end, self.number));
        true
    }

    /// Moves the tail behind some of the batches.
    fn forget(&mut self, n: usize) {
        let n = n.min(self.ends.len());
        if n == 0 {
            return;
        }
        let (end, number) = self.ends[n - 1];
        self.anchor.tail = if end == SIZE { RING_AT } else { end };
        if n == self.ends.len() {
            // Nothing counts any more: the next batch begins where reading does.
            self.end = self.anchor.tail;
        }
        (self.anchor.before, self.anchor.last) = (number, self.last);
        self.anchor.sequence += 1;
        self.ends.drain(..n);
        self.states.drain(..n);
        let at = Anchor::place(self.anchor.sequence) as usize;
        self.put(at, self.anchor.seal().to_vec());
    }

    /// Reads the device into an image that holds what the tail stands on.
    fn read(&self) -> Result<(Recovered, Vec<u8>), JournalError> {
        let mut image = self.states[0].clone();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&self.disk[at as usize..at as usize + into.len()]);
            Ok(())
        };
        let found = read(SIZE, std::iter::once(0..SIZE), read_at, |at, bytes| {
            image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        })?;
        Ok((found, image))
    }

    /// Says that nothing follows.
    fn close(&mut self) {
        self.anchor.last = self.last;
        self.anchor.sequence += 1;
        self.anchor = self.anchor.closed(self.number);
        let at = Anchor::place(self.anchor.sequence) as usize;
        self.put(at, self.anchor.seal().to_vec());
    }

    /// Reads what counts of a journal that was closed.
    fn read_closed(&self) -> Option<(Recovered, Vec<u8>)> {
        let mut image = self.states[0].clone();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&self.disk[at as usize..at as usize + into.len()]);
            Ok(())
        };
        let found = read_closed(SIZE, read_at, |at, bytes| {
            image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        });
        found.expect("it can be read").map(|found| (found, image))
    }

    /// Undoes a write in these sectors (true), or garbles them.
    fn damage(&mut self, write: usize, sectors: &[u8]) -> bool {
        let Write { at, bytes, old } = &self.writes[write];
        let mut whole = true;
        for (i, sector) in (0..bytes.len()).step_by(512).enumerate() {
            let place = at + sector..at + sector + 512;
            match sectors[i % sectors.len()] % 4 {
                0 => self.disk[place.clone()].copy_from_slice(&old[sector..sector + 512]),
                1 => self.disk[place.clone()].fill(0xa5),
                _ => {}
            }
            whole &= self.disk[place] == bytes[sector..sector + 512];
        }
        whole
    }
}

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
