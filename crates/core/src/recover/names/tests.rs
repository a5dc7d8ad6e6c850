//! The decision table against a directory in memory: any changes, a cut anywhere, any prefix of them on the disk, and a
//! recovery that is cut anywhere.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::history::History;
use super::plan::{Conflict, Plan, Step};
use crate::format::{Attributes, Handle, NameChange};
use crate::recover::target::Look;

const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
const OWNER: u32 = 7;
/// The disk has had these from the start, and the log knows nothing of how they came.
const OLD: [(usize, u32); 2] = [(0, 101), (1, 102)];

/// What a program does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Make(usize),
    Remove(usize),
    Move(usize, usize),
    Fill(usize, u8),
    Sync(usize),
    /// A real sync, of a file that was captured before.
    Settle(usize),
}

/// What happens, in order: records are durable at once, changes reach the disk when it likes.
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
    Moved(usize, usize, u32, Option<u32>),
    Content(usize, u32, u8),
    Settled(u32),
}

fn handle(file: u32) -> Handle {
    Handle::new(1, &file.to_le_bytes()).expect("short")
}

fn file(handle: &Handle) -> u32 {
    u32::from_le_bytes(handle.bytes().try_into().expect("four bytes"))
}

/// The events of a program's acts; those that are not possible are left out.
fn events(acts: &[Act]) -> Vec<Event> {
    let (mut names, mut content) = ([None; 3], BTreeMap::new());
    OLD.iter().for_each(|(at, file)| names[*at] = Some(*file));
    let (mut next, mut events) = (1, Vec::new());
    for act in acts {
        match *act {
            Act::Make(at) if names[at].is_none() => {
                names[at] = Some(next);
                events.push(Event::Change(vec![(at, Some(next))]));
                events.push(Event::Record(Record::Made(at, next)));
                next += 1;
            }
            Act::Remove(at) => {
                let Some(file) = names[at].take() else { continue };
                events.push(Event::Record(Record::Gone(at, file)));
                events.push(Event::Change(vec![(at, None)]));
            }
            Act::Move(from, to) if from != to => {
                let Some(file) = names[from].take() else { continue };
                let over = names[to].replace(file);
                events.push(Event::Record(Record::Moved(from, to, file, over)));
                events.push(Event::Change(vec![(from, None), (to, Some(file))]));
            }
            Act::Fill(at, byte) => {
                if let Some(file) = names[at] {
                    content.insert(file, byte);
                }
            }
            Act::Sync(at) => {
                let Some(file) = names[at] else { continue };
                let byte = content.get(&file).copied().unwrap_or(0);
                events.push(Event::Record(Record::Content(at, file, byte)));
            }
            Act::Settle(at) => {
                let Some(file) = names[at] else { continue };
                events.push(Event::Committed(file, content.get(&file).copied().unwrap_or(0)));
                events.push(Event::Record(Record::Settled(file)));
            }
            Act::Make(_) | Act::Move(..) => {}
        }
    }
    events
}

fn add(history: &mut History, lsn: u64, record: Record) {
    let attributes = Attributes { uid: OWNER, ..Attributes::default() };
    let name = |at: usize| NAMES[at];
    let byte = |byte: &u8| [*byte];
    match record {
        Record::Made(at, file) => {
            history.add(lsn, &NameChange::Made { name: name(at), file: handle(file), attributes });
        }
        Record::Gone(at, file) => history.add(lsn, &NameChange::Gone { name: name(at), file: handle(file) }),
        Record::Moved(from, to, file, over) => {
            let (file, over) = (handle(file), over.map(handle));
            history.add(lsn, &NameChange::Moved { name: name(from), to: name(to), file, over });
        }
        Record::Content(at, file, is) => {
            let data = &byte(&is)[..];
            history.add(lsn, &NameChange::Content { name: name(at), file: handle(file), attributes, data });
        }
        Record::Settled(file) => history.add(lsn, &NameChange::Settled { file: handle(file) }),
    }
}

/// A directory, and the files that are kept for a recovery.
#[derive(Clone, Debug, Default)]
struct Disk {
    names: BTreeMap<Vec<u8>, usize>,
    kept: BTreeMap<Handle, usize>,
    inodes: Vec<Inode>,
}

#[derive(Clone, Copy, Debug)]
struct Inode {
    is: Handle,
    /// It was made again.
    is_another: bool,
    content: Option<u8>,
}

impl Look for Disk {
    fn look(&self, name: &[u8]) -> Result<Option<Handle>, String> {
        Ok(self.names.get(name).map(|inode| self.inodes[*inode].is))
    }

    fn is_kept(&self, file: &Handle) -> bool {
        self.kept.get(file).is_some_and(|inode| !self.inodes[*inode].is_another)
    }

    fn name_of(&self, file: &Handle) -> Option<Vec<u8>> {
        let is_it = |inode: usize| self.inodes[inode].is == *file && !self.inodes[inode].is_another;
        self.names.iter().find(|(_, inode)| is_it(**inode)).map(|(name, _)| name.clone())
    }
}

impl Disk {
    /// As it is after these changes of names.
    fn after(changes: &[&Event]) -> Self {
        let mut disk = Self::default();
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

    fn leads(&mut self, at: usize, file: Option<u32>) {
        self.names.remove(NAMES[at]);
        let Some(file) = file else { return };
        let known = self.inodes.iter().position(|inode| inode.is == handle(file));
        let inode = known.unwrap_or_else(|| self.make(handle(file), false));
        self.names.insert(NAMES[at].to_vec(), inode);
    }

    fn make(&mut self, is: Handle, is_another: bool) -> usize {
        self.inodes.push(Inode { is, is_another, content: None });
        self.inodes.len() - 1
    }

    fn apply(&mut self, step: &Step, contents: &BTreeMap<u64, u8>) {
        match step {
            Step::Make { file, .. } => {
                let inode = self.make(*file, true);
                self.kept.insert(*file, inode);
            }
            Step::Keep { file, name } => drop(self.kept.insert(*file, self.names[name])),
            Step::Fill { file, at, lsn } => {
                let inode = at.as_ref().map_or_else(|| self.kept[file], |name| self.names[name]);
                self.inodes[inode].content = Some(contents[lsn]);
            }
            Step::Put { file, name } => drop(self.names.insert(name.clone(), self.kept[file])),
            Step::Remove { name } => drop(self.names.remove(name)),
        }
    }

    /// Up to a step, or to the end.
    fn recover(
        &mut self,
        history: &History,
        contents: &BTreeMap<u64, u8>,
        steps: usize,
    ) -> Result<bool, Conflict> {
        let plan = Plan::of(history, OWNER, self)?;
        plan.steps.iter().take(steps).for_each(|step| self.apply(step, contents));
        let is_over = steps > plan.steps.len();
        if is_over {
            self.kept.clear();
        }
        Ok(is_over)
    }

    fn seen(&self) -> BTreeMap<Vec<u8>, u32> {
        self.names.iter().map(|(name, inode)| (name.clone(), file(&self.inodes[*inode].is))).collect()
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = || 0..NAMES.len();
    let act = prop_oneof![
        3 => at().prop_map(Act::Make),
        2 => at().prop_map(Act::Remove),
        3 => (at(), at()).prop_map(|(from, to)| Act::Move(from, to)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Act::Fill(at, byte)),
        3 => at().prop_map(Act::Sync),
        1 => at().prop_map(Act::Settle),
    ];
    prop::collection::vec(act, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Wherever the power goes: each name leads to what the log says, and each file that was synced has what it had then.
    #[test]
    fn a_directory_is_what_its_log_says(
        acts in acts(),
        cut in any::<prop::sample::Index>(),
        reached in any::<prop::sample::Index>(),
        interrupted in 0_usize..6,
    ) {
        let events = events(&acts);
        let happened = &events[..cut.index(events.len() + 1)];
        let changes: Vec<&Event> = happened.iter().filter(|event| !matches!(event, Event::Record(_))).collect();
        // A real sync has everything before it on the disk.
        let least = changes.iter().rposition(|event| matches!(event, Event::Committed(..))).map_or(0, |at| at + 1);
        let most = least + reached.index(changes.len() - least + 1);
        let mut disk = Disk::after(&changes[..most]);
        let (mut history, mut contents) = (History::default(), BTreeMap::new());
        let old = OLD.iter().map(|(at, file)| (NAMES[*at].to_vec(), *file));
        let (mut expected, mut synced, mut committed) = (old.collect::<BTreeMap<_, _>>(), BTreeMap::new(), BTreeMap::new());
        for (lsn, event) in (1..).zip(happened) {
            if let Event::Committed(file, byte) = event {
                committed.insert(*file, *byte);
            }
            let Event::Record(record) = event else { continue };
            add(&mut history, lsn, *record);
            match *record {
                Record::Made(at, file) => drop(expected.insert(NAMES[at].to_vec(), file)),
                Record::Gone(at, _) => drop(expected.remove(NAMES[at])),
                Record::Moved(from, to, file, _) => {
                    expected.remove(NAMES[from]);
                    expected.insert(NAMES[to].to_vec(), file);
                }
                Record::Content(_, file, byte) => {
                    contents.insert(lsn, byte);
                    synced.insert(file, Some(byte));
                }
                // From then on the disk's word counts.
                Record::Settled(file) => drop(synced.insert(file, None)),
            }
        }
        let is_over = disk.recover(&history, &contents, interrupted).expect("no conflict");
        if !is_over {
            prop_assert!(disk.recover(&history, &contents, usize::MAX).expect("no conflict"));
        }
        let mut seen = disk.seen();
        // A file whose making was not over when the power went may be there.
        if let Some(Event::Change(last)) = happened.last() {
            let is_new = |(at, file): &(usize, Option<u32>)| {
                file.is_some_and(|file| !expected.values().any(|known| *known == file))
                    && !expected.contains_key(NAMES[*at])
            };
            for (at, _) in last.iter().filter(|change| is_new(change)) {
                seen.remove(NAMES[*at]);
            }
        }
        prop_assert_eq!(&seen, &expected);
        for (name, file) in &expected {
            let inode = disk.inodes[disk.names[name]];
            prop_assert!(!inode.is_another || *file < 100, "{} was there", name.escape_ascii());
            if let Some(byte) = synced.get(file) {
                let byte = byte.or_else(|| committed.get(file).copied());
                prop_assert_eq!(inode.content, byte, "{}", name.escape_ascii());
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
    let plan = |records: &[Record], disk: &Disk| Plan::of(&history(records), OWNER, disk);
    let moved = [Record::Moved(0, 1, 5, None)];
    assert_eq!(plan(&moved, &Disk::default()), Err(Conflict::Absent(b"b".to_vec())), "N3");
    let strange = plan(&[made(5)], &on_disk(&[(0, Some(9))]));
    assert_eq!(strange, Err(Conflict::Strange(b"a".to_vec())), "N7");
    let elsewhere = plan(&[made(5)], &on_disk(&[(2, Some(5))]));
    assert_eq!(elsewhere, Err(Conflict::Moved(b"a".to_vec(), b"c".to_vec())), "N3");
    let gone = plan(&[Record::Gone(0, 5)], &on_disk(&[(0, Some(9))]));
    assert_eq!(gone, Ok(Plan::default()), "N9");
    let synced_and_gone = plan(&[made(5), Record::Content(0, 5, 1), Record::Gone(0, 5)], &Disk::default());
    assert_eq!(synced_and_gone, Ok(Plan::default()), "N4");
    let of_another = Plan::of(&history(&[made(5)]), OWNER + 1, &Disk::default());
    assert_eq!(of_another, Err(Conflict::Owner(b"a".to_vec(), OWNER, OWNER + 1)));
}
