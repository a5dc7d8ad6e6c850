//! The decision table against two directories in memory: any changes, a cut anywhere, any prefix of them on the disk,
//! and a recovery that is cut anywhere.

mod disk;
mod program;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::history::History;
use super::plan::{Conflict, Plan};
use crate::recover::target::At;
use disk::{Disk, Unseen};
use program::{Event, OLD, OWNER, Record, Watermarks, acts, add, at, events, file, handle, is_live, is_old};

/// What the records promise.
struct Promised {
    names: BTreeMap<At, u32>,
    /// The content in each record, by its LSN.
    contents: BTreeMap<u64, u8>,
    /// What the synced files have; `None`: what they had when the disk committed them.
    synced: BTreeMap<u32, Option<u8>>,
}

impl Promised {
    fn new() -> Self {
        let names = OLD.iter().map(|(place, file)| (at(*place), *file)).collect();
        Self { names, contents: BTreeMap::new(), synced: BTreeMap::new() }
    }

    fn add(&mut self, lsn: u64, record: Record) {
        match record {
            Record::Made(to, file)
            | Record::Linked(_, to, file, _)
            | Record::Pointed(to, file)
            | Record::Is(to, file) => {
                self.names.insert(at(to), file);
            }
            Record::Gone(place, ..) => drop(self.names.remove(&at(place))),
            Record::Moved(from, to, file, over, exchanged, _) => {
                match over.filter(|_| exchanged) {
                    Some((over, _)) => self.names.insert(at(from), over),
                    None => self.names.remove(&at(from)),
                };
                self.names.insert(at(to), file);
            }
            Record::Content(_, file, byte) | Record::Holds(_, file, byte) => {
                self.contents.insert(lsn, byte);
                self.synced.insert(file, Some(byte));
            }
            Record::Settled(_, _, Some(_)) => {}
            // From then on the disk's content counts.
            Record::Settled(_, file, None) => drop(self.synced.insert(file, None)),
        }
    }
}

/// The history in the records that count, and the files that lost their last name by one of them.
fn of_live(happened: &[Event], watermarks: &Watermarks) -> (History, Vec<u32>) {
    let (mut history, mut lost) = (History::default(), Vec::new());
    for (lsn, event) in (1..).zip(happened) {
        if let Event::Record(record) = event
            && is_live(watermarks, lsn, *record)
        {
            add(&mut history, watermarks, lsn, *record);
            if let Record::Is(_, file) = record {
                // It was not removed. If it was later, by a record that no longer counts, the disk knows.
                lost.retain(|lost| lost != file);
            }
            lost.extend(record.lost());
        }
    }
    (history, lost)
}

/// The history in these records, of which all count.
fn history(records: &[Record]) -> History {
    let mut history = History::default();
    (1..).zip(records).for_each(|(lsn, record)| add(&mut history, &Watermarks::new(), lsn, *record));
    history
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Whenever the power fails, each name leads to the file that the log says, and each synced file has the content
    /// that it had then.
    #[test]
    fn directories_are_what_their_log_says(
        acts in acts(),
        cut in any::<prop::sample::Index>(),
        reached in any::<prop::sample::Index>(),
        interrupted in 0_usize..6,
    ) {
        let events = events(&acts);
        let happened = &events[..cut.index(events.len() + 1)];
        let changes: Vec<&Event> = happened.iter().filter(|event| !matches!(event, Event::Record(_))).collect();
        // A real sync brings everything before it to the disk.
        let is_sync = |event: &&Event| matches!(event, Event::Committed(..) | Event::Destaged(_));
        let least = changes.iter().rposition(is_sync).map_or(0, |at| at + 1);
        let most = least + reached.index(changes.len() - least + 1);
        let mut disk = Disk::after(&changes[..most]);
        let (mut promised, mut committed) = (Promised::new(), BTreeMap::new());
        let mut watermarks = Watermarks::new();
        for (lsn, event) in (1..).zip(happened) {
            match event {
                Event::Record(record) => promised.add(lsn, *record),
                Event::Committed(file, byte) => drop(committed.insert(*file, *byte)),
                Event::Destaged(slot) => drop(watermarks.insert(*slot, lsn)),
                Event::Change(_) => {}
            }
        }
        let (history, lost) = of_live(happened, &watermarks);
        let Promised { names: expected, contents, synced } = promised;
        let is_over = disk.recover(&history, &contents, interrupted).expect("no conflict");
        if !is_over {
            prop_assert!(disk.recover(&history, &contents, usize::MAX).expect("no conflict"));
        }
        let mut seen = disk.seen();
        // A name that was still being made when the power failed may be there.
        if let Some(Event::Change(last)) = happened.last() {
            for (place, _) in last.iter().filter(|(place, _)| !expected.contains_key(&at(*place))) {
                seen.remove(&at(*place));
            }
        }
        prop_assert_eq!(&seen, &expected);
        // Its own records would be dropped without a word.
        for file in expected.values() {
            prop_assert!(!history.is_gone(&handle(*file)), "{file} has a name");
        }
        // Recovery would look for it in vain, and refuse.
        let has_name = |file: &u32| expected.values().any(|named| named == file);
        for file in lost.into_iter().filter(|file| !has_name(file)) {
            let file = handle(file);
            prop_assert!(history.is_gone(&file) || history.is_perhaps_gone(&file), "{file:?} was removed");
        }
        let inodes: BTreeSet<(u32, usize)> = expected.iter().map(|(at, file)| (*file, disk.names[at])).collect();
        prop_assert_eq!(inodes.len(), expected.values().collect::<BTreeSet<_>>().len(), "a file is two");
        for (name, file) in &expected {
            let inode = disk.inodes[disk.names[name]];
            prop_assert!(!inode.is_another || !is_old(*file), "{:?} was there", name);
            if let Some(byte) = synced.get(file) {
                let byte = byte.or_else(|| committed.get(file).copied());
                prop_assert_eq!(inode.content, byte, "{:?}", name);
            }
        }
    }
}

#[test]
fn what_somebody_else_did_is_refused_and_never_undone() {
    let made = |file: u32| Record::Made(0, file);
    let on_disk = |names: &[(usize, Option<u32>)]| {
        let nothing = [(0, None), (1, None)];
        Disk::after(&[&Event::Change([&nothing[..], names].concat())])
    };
    let plan = |records: &[Record], disk: &Disk| Plan::of(&history(records), disk);
    let moved = [Record::Moved(0, 1, 5, None, false, 0)];
    assert_eq!(plan(&moved, &Disk::default()), Err(Conflict::Absent(at(1))), "N3");
    let strange = plan(&[made(5)], &on_disk(&[(0, Some(9))]));
    assert_eq!(strange, Err(Conflict::Strange(at(0))), "N7");
    let elsewhere = plan(&[made(5)], &on_disk(&[(2, Some(5))]));
    assert_eq!(elsewhere, Err(Conflict::Moved(at(0), b"c".to_vec())), "N3");
    let gone = plan(&[Record::Gone(0, 5, false)], &on_disk(&[(0, Some(9))]));
    assert_eq!(gone, Ok(Plan::default()), "N9");
    let synced_and_gone =
        plan(&[made(5), Record::Content(0, 5, 1), Record::Gone(0, 5, false)], &Disk::default());
    assert_eq!(synced_and_gone, Ok(Plan::default()), "N4");
    let of_another = Plan::of(&history(&[made(5)]), &Disk { owner: OWNER + 1, ..Disk::default() });
    assert_eq!(of_another, Err(Conflict::Owner(at(0), OWNER, OWNER + 1)));
}

/// It may be the file itself, with content that the log lacks.
#[test]
fn what_cannot_be_looked_at_is_not_made_again() {
    for unseen in [Unseen::Kept, Unseen::Name] {
        let disk = Disk { owner: OWNER, unseen: Some(unseen), ..Disk::default() };
        let plan = Plan::of(&history(&[Record::Made(0, 5)]), &disk);
        assert_eq!(plan, Err(Conflict::Unseen(at(0), "is not seen".into())), "{unseen:?}");
    }
}

/// The mark was removed, and the power failed before that was durable.
#[test]
fn a_mark_that_a_power_cut_brings_back_does_not_hide_the_file_from_a_later_log() {
    let again = || {
        let mut disk = Disk { owner: OWNER, ..Disk::default() };
        let inode = disk.make(handle(5), true);
        disk.names.insert(at(0), inode);
        let itself = file(&disk.inodes[inode].itself);
        (disk, itself)
    };
    let (mut disk, itself) = again();
    let removed = history(&[Record::Gone(0, itself, false)]);
    assert_eq!(disk.recover(&removed, &BTreeMap::new(), usize::MAX), Ok(true));
    assert!(disk.seen().is_empty(), "a journal that SQLite deleted is back: {:?}", disk.seen());

    let (mut disk, itself) = again();
    let replaced = history(&[Record::Gone(0, itself, false), Record::Made(0, 6)]);
    assert_eq!(disk.recover(&replaced, &BTreeMap::new(), usize::MAX), Ok(true));
    assert_eq!(disk.seen(), [(at(0), 6)].into());
}
