//! The decision table against two directories in memory: any changes, a cut anywhere, any prefix of them on the disk,
//! and a recovery that is cut anywhere.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::history::History;
use super::plan::{Conflict, Plan, Step};
use crate::format::{Across, Attributes, Elsewhere, Handle, NameChange};
use crate::recover::target::{At, Here, Look};

/// Where files may be: their directories' slots, and names.
const PLACES: [(u32, &[u8]); 5] = [(3, b"a"), (3, b"b"), (3, b"c"), (9, b"a"), (9, b"d")];
const OWNER: u32 = 7;
/// The handles of files that a recovery makes begin here.
const MADE_AGAIN: u32 = 1000;
/// The disk has had these from the start, and the log does not know how they came there.
const OLD: [(usize, u32); 2] = [(0, 101), (1, 102)];

fn at(place: usize) -> At {
    At { directory: PLACES[place].0, name: PLACES[place].1.to_vec() }
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Make(usize),
    Remove(usize),
    Move(usize, usize),
    Exchange(usize, usize),
    Link(usize, usize),
    Fill(usize, u8),
    Sync(usize),
    /// A real sync of a file that was captured before.
    Settle(usize),
}

/// The events, in order: records are durable at once, changes reach the disk at any later time.
#[derive(Clone, Debug)]
enum Event {
    Record(Record),
    Change(Vec<(usize, Option<u32>)>),
    /// The file system's journal takes everything so far.
    Committed(u32, u8),
}

#[derive(Clone, Copy, Debug)]
enum Record {
    Made(usize, u32),
    Gone(usize, u32),
    /// The last field is the name in whose directory the record is; the record for the new name comes first.
    Moved(usize, usize, u32, Option<u32>, bool, usize),
    Linked(usize, usize, u32),
    Content(usize, u32, u8),
    /// In the directory of the first field.
    Holds(u32, u32, u8),
    /// In the directory of the first field; the last one has it now.
    Settled(u32, u32, Option<u32>),
}

fn handle(file: u32) -> Handle {
    Handle::new(1, &file.to_le_bytes()).expect("short")
}

fn file(handle: &Handle) -> u32 {
    u32::from_le_bytes(handle.bytes().try_into().expect("four bytes"))
}

/// What the front knows of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    content: u8,
    /// The directory in whose log all of the file is.
    captured: Option<(u32, u8)>,
}

/// The events that a front makes of a program's acts; impossible acts are left out.
fn events(acts: &[Act]) -> Vec<Event> {
    let (mut names, mut files) = ([None; PLACES.len()], BTreeMap::<u32, Known>::new());
    OLD.iter().for_each(|(at, file)| names[*at] = Some(*file));
    let (mut next, mut events) = (1, Vec::new());
    let directory = |place: usize| PLACES[place].0;
    for act in acts {
        let links = |names: &[Option<u32>], file: u32| names.iter().filter(|is| **is == Some(file)).count();
        match *act {
            Act::Make(at) if names[at].is_none() => {
                names[at] = Some(next);
                events.push(Event::Change(vec![(at, Some(next))]));
                events.push(Event::Record(Record::Made(at, next)));
                next += 1;
            }
            Act::Link(from, to) if directory(from) == directory(to) && names[to].is_none() => {
                let Some(file) = names[from] else { continue };
                names[to] = Some(file);
                events.push(Event::Change(vec![(to, Some(file))]));
                events.push(Event::Record(Record::Linked(from, to, file)));
            }
            Act::Remove(at) => {
                let Some(file) = names[at].take() else { continue };
                events.push(Event::Record(Record::Gone(at, file)));
                events.push(Event::Change(vec![(at, None)]));
            }
            Act::Exchange(from, to) if directory(from) == directory(to) => {
                let (Some(file), Some(over)) = (names[from], names[to]) else { continue };
                if file == over {
                    continue;
                }
                names.swap(from, to);
                events.push(Event::Record(Record::Moved(from, to, file, Some(over), true, from)));
                events.push(Event::Change(vec![(from, Some(over)), (to, Some(file))]));
            }
            Act::Move(from, to) if from != to && names[from] != names[to] => {
                let Some(file) = names[from] else { continue };
                let is_across = directory(from) != directory(to);
                if is_across && links(&names, file) > 1 {
                    continue;
                }
                let over = names[to].replace(file);
                names[from] = None;
                if is_across {
                    if let Some((was, _)) = files.get(&file).and_then(|known| known.captured) {
                        let content = files[&file].content;
                        events.push(Event::Record(Record::Holds(directory(to), file, content)));
                        events.push(Event::Record(Record::Settled(was, file, Some(directory(to)))));
                        files.entry(file).or_default().captured = Some((directory(to), content));
                    }
                    events.push(Event::Record(Record::Moved(from, to, file, over, false, to)));
                }
                events.push(Event::Record(Record::Moved(from, to, file, over, false, from)));
                events.push(Event::Change(vec![(from, None), (to, Some(file))]));
            }
            Act::Fill(at, byte) => {
                if let Some(file) = names[at] {
                    files.entry(file).or_default().content = byte;
                }
            }
            Act::Sync(at) => {
                let Some(file) = names[at].filter(|file| links(&names, *file) == 1) else { continue };
                let known = files.entry(file).or_default();
                // A second sync is left to the disk.
                if known.captured.is_none() {
                    known.captured = Some((directory(at), known.content));
                    events.push(Event::Record(Record::Content(at, file, known.content)));
                }
            }
            Act::Settle(at) => {
                let Some(file) = names[at] else { continue };
                let known = files.entry(file).or_default();
                events.push(Event::Committed(file, known.content));
                if let Some((directory, _)) = known.captured.take() {
                    events.push(Event::Record(Record::Settled(directory, file, None)));
                }
            }
            Act::Make(_) | Act::Move(..) | Act::Link(..) | Act::Exchange(..) => {}
        }
    }
    events
}

/// Adds a record to the history of these directories.
fn add(history: &mut History, lsn: u64, record: Record) {
    let attributes = Attributes { uid: OWNER, ..Attributes::default() };
    let name = |at: usize| PLACES[at].1;
    let data = |byte: u8| [byte];
    let mut add = |directory: u32, change: NameChange<'_>| history.add(directory, lsn, &change, |_, _| true);
    match record {
        Record::Made(at, file) => {
            add(PLACES[at].0, NameChange::Made { name: name(at), file: handle(file), attributes });
        }
        Record::Gone(at, file) => add(PLACES[at].0, NameChange::Gone { name: name(at), file: handle(file) }),
        Record::Moved(from, to, file, over, exchanged, of) => {
            let (file, over) = (handle(file), over.map(handle));
            let other = |at: usize| Elsewhere { slot: PLACES[at].0, generation: 1 };
            let across = match PLACES[from].0 == PLACES[to].0 {
                true => Across::No,
                false if of == to => Across::From { other: other(from), first: 0 },
                false => Across::To { other: other(to), first: lsn - 1 },
            };
            let moved = NameChange::Moved { name: name(from), to: name(to), file, over, exchanged, across };
            add(PLACES[of].0, moved);
        }
        Record::Linked(from, to, file) => {
            add(PLACES[to].0, NameChange::Linked { name: name(from), to: name(to), file: handle(file) });
        }
        Record::Content(at, file, is) => {
            let data = &data(is)[..];
            let content = NameChange::Content { name: name(at), file: handle(file), attributes, data };
            add(PLACES[at].0, content);
        }
        Record::Holds(directory, file, is) => {
            add(directory, NameChange::Holds { file: handle(file), attributes, data: &data(is)[..] });
        }
        Record::Settled(directory, file, held) => {
            let held = held.map(|slot| (Elsewhere { slot, generation: 1 }, lsn - 1));
            add(directory, NameChange::Settled { file: handle(file), held });
        }
    }
}

/// A directory, and the files that are kept for a recovery.
#[derive(Clone, Debug, Default)]
struct Disk {
    names: BTreeMap<At, usize>,
    /// The places of files, each with its directory.
    kept: BTreeMap<(u32, Handle), usize>,
    inodes: Vec<Inode>,
    owner: u32,
}

#[derive(Clone, Copy, Debug)]
struct Inode {
    is: Handle,
    /// Its own handle, if it was made again.
    itself: Handle,
    /// It was made again.
    is_another: bool,
    content: Option<u8>,
}

impl Look for Disk {
    fn look(&self, at: &At) -> Result<Option<Here>, String> {
        let here = |inode: &Inode| match inode.is_another {
            true => Here { itself: inode.itself, stands_for: Some(inode.is) },
            false => Here { itself: inode.is, stands_for: None },
        };
        Ok(self.names.get(at).map(|inode| here(&self.inodes[*inode])))
    }

    fn is_kept(&self, directory: u32, file: &Handle) -> bool {
        self.kept.get(&(directory, *file)).is_some_and(|inode| !self.inodes[*inode].is_another)
    }

    fn name_of(&self, directory: u32, file: &Handle) -> Option<Vec<u8>> {
        let is_it = |inode: usize| self.inodes[inode].is == *file && !self.inodes[inode].is_another;
        let mut here = self.names.iter().filter(|(at, _)| at.directory == directory);
        here.find(|(_, inode)| is_it(**inode)).map(|(at, _)| at.name.clone())
    }

    fn owner(&self, _: u32) -> u32 {
        self.owner
    }
}

impl Disk {
    /// The disk after these changes of names.
    fn after(changes: &[&Event]) -> Self {
        let mut disk = Self { owner: OWNER, ..Self::default() };
        OLD.iter().for_each(|(at, file)| disk.leads(*at, Some(*file)));
        for change in changes {
            match change {
                Event::Change(all) => all.iter().for_each(|(at, file)| disk.leads(*at, *file)),
                Event::Committed(file, byte) => {
                    let inode = disk.inodes.iter_mut().find(|inode| inode.is == handle(*file));
                    inode.into_iter().for_each(|inode| inode.content = Some(*byte));
                }
                Event::Record(_) => {}
            }
        }
        disk
    }

    fn leads(&mut self, place: usize, file: Option<u32>) {
        self.names.remove(&at(place));
        let Some(file) = file else { return };
        let known = self.inodes.iter().position(|inode| inode.is == handle(file));
        let inode = known.unwrap_or_else(|| self.make(handle(file), false));
        self.names.insert(at(place), inode);
    }

    fn make(&mut self, is: Handle, is_another: bool) -> usize {
        let itself = if is_another { handle(MADE_AGAIN + self.inodes.len() as u32) } else { is };
        self.inodes.push(Inode { is, itself, is_another, content: None });
        self.inodes.len() - 1
    }

    fn apply(&mut self, step: &Step, contents: &BTreeMap<u64, u8>) {
        match step {
            Step::Make { file, place, .. } => {
                let inode = self.make(*file, true);
                self.kept.insert((*place, *file), inode);
            }
            Step::Keep { file, place, at } => drop(self.kept.insert((*place, *file), self.names[at])),
            Step::Fill { file, place, at, lsn } => {
                let inode = at.as_ref().map_or_else(|| self.kept[&(*place, *file)], |at| self.names[at]);
                self.inodes[inode].content = Some(contents[lsn]);
            }
            Step::Put { file, place, to } => {
                self.names.insert(to.clone(), self.kept[&(*place, *file)]);
            }
            Step::Remove { at } => drop(self.names.remove(at)),
        }
    }

    /// Recovers up to a step, or to the end.
    fn recover(
        &mut self,
        history: &History,
        contents: &BTreeMap<u64, u8>,
        steps: usize,
    ) -> Result<bool, Conflict> {
        let plan = Plan::of(history, self)?;
        plan.steps.iter().take(steps).for_each(|step| self.apply(step, contents));
        let is_over = steps > plan.steps.len();
        if is_over {
            self.kept.clear();
        }
        Ok(is_over)
    }

    fn seen(&self) -> BTreeMap<At, u32> {
        self.names.iter().map(|(name, inode)| (name.clone(), file(&self.inodes[*inode].is))).collect()
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = || 0..PLACES.len();
    let act = prop_oneof![
        3 => at().prop_map(Act::Make),
        2 => at().prop_map(Act::Remove),
        4 => (at(), at()).prop_map(|(from, to)| Act::Move(from, to)),
        1 => (at(), at()).prop_map(|(from, to)| Act::Exchange(from, to)),
        2 => (at(), at()).prop_map(|(from, to)| Act::Link(from, to)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Act::Fill(at, byte)),
        3 => at().prop_map(Act::Sync),
        1 => at().prop_map(Act::Settle),
    ];
    prop::collection::vec(act, 1..14)
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
        let least = changes.iter().rposition(|event| matches!(event, Event::Committed(..))).map_or(0, |at| at + 1);
        let most = least + reached.index(changes.len() - least + 1);
        let mut disk = Disk::after(&changes[..most]);
        let (mut history, mut contents) = (History::default(), BTreeMap::new());
        let old = OLD.iter().map(|(place, file)| (at(*place), *file));
        let (mut expected, mut synced, mut committed) = (old.collect::<BTreeMap<_, _>>(), BTreeMap::new(), BTreeMap::new());
        for (lsn, event) in (1..).zip(happened) {
            if let Event::Committed(file, byte) = event {
                committed.insert(*file, *byte);
            }
            let Event::Record(record) = event else { continue };
            add(&mut history, lsn, *record);
            match *record {
                Record::Made(to, file) | Record::Linked(_, to, file) => drop(expected.insert(at(to), file)),
                Record::Gone(place, _) => drop(expected.remove(&at(place))),
                Record::Moved(from, to, file, over, exchanged, _) => {
                    match over.filter(|_| exchanged) {
                        Some(over) => expected.insert(at(from), over),
                        None => expected.remove(&at(from)),
                    };
                    expected.insert(at(to), file);
                }
                Record::Content(_, file, byte) | Record::Holds(_, file, byte) => {
                    contents.insert(lsn, byte);
                    synced.insert(file, Some(byte));
                }
                Record::Settled(_, _, Some(_)) => {}
                // From then on the disk's content counts.
                Record::Settled(_, file, None) => drop(synced.insert(file, None)),
            }
        }
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
        let inodes: BTreeSet<(u32, usize)> = expected.iter().map(|(at, file)| (*file, disk.names[at])).collect();
        prop_assert_eq!(inodes.len(), expected.values().collect::<BTreeSet<_>>().len(), "a file is two");
        for (name, file) in &expected {
            let inode = disk.inodes[disk.names[name]];
            prop_assert!(!inode.is_another || *file < 100, "{:?} was there", name);
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
    let history = |records: &[Record]| {
        let mut history = History::default();
        (1..).zip(records).for_each(|(lsn, record)| add(&mut history, lsn, *record));
        history
    };
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
    let gone = plan(&[Record::Gone(0, 5)], &on_disk(&[(0, Some(9))]));
    assert_eq!(gone, Ok(Plan::default()), "N9");
    let synced_and_gone = plan(&[made(5), Record::Content(0, 5, 1), Record::Gone(0, 5)], &Disk::default());
    assert_eq!(synced_and_gone, Ok(Plan::default()), "N4");
    let of_another = Plan::of(&history(&[made(5)]), &Disk { owner: OWNER + 1, ..Disk::default() });
    assert_eq!(of_another, Err(Conflict::Owner(at(0), OWNER, OWNER + 1)));
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
    let history = |records: &[Record]| {
        let mut history = History::default();
        (1..).zip(records).for_each(|(lsn, record)| add(&mut history, lsn, *record));
        history
    };
    let (mut disk, itself) = again();
    let removed = history(&[Record::Gone(0, itself)]);
    assert_eq!(disk.recover(&removed, &BTreeMap::new(), usize::MAX), Ok(true));
    assert!(disk.seen().is_empty(), "a journal that SQLite deleted is back: {:?}", disk.seen());

    let (mut disk, itself) = again();
    let replaced = history(&[Record::Gone(0, itself), Record::Made(0, 6)]);
    assert_eq!(disk.recover(&replaced, &BTreeMap::new(), usize::MAX), Ok(true));
    assert_eq!(disk.seen(), [(at(0), 6)].into());
}
