//! A program that changes names and syncs files, and what its front makes of that: records, and changes on the disk.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::history::History;
use crate::format::{Across, Attributes, Elsewhere, Handle, NameChange, Replaced};
use crate::recover::target::At;

/// Where files may be: their directories' slots, and names.
const PLACES: [(u32, &[u8]); 5] = [(3, b"a"), (3, b"b"), (3, b"c"), (9, b"a"), (9, b"d")];
pub(super) const OWNER: u32 = 7;
/// The handles of symbolic links begin here; the last digit is what one says.
const LINKS: u32 = 100_000;
/// Those of directories begin here.
const DIRECTORIES: u32 = 10_000;
/// The disk has had these from the start, and the log does not know how they came there.
pub(super) const OLD: [(usize, u32); 3] = [(0, 101), (1, 102), (4, DIRECTORIES + 103)];

pub(super) fn at(place: usize) -> At {
    At { directory: PLACES[place].0, name: PLACES[place].1.to_vec() }
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Make(usize),
    MakeDirectory(usize),
    Remove(usize),
    /// The same, and the kernel refuses it.
    Refuse(usize),
    Move(usize, usize),
    Exchange(usize, usize),
    Link(usize, usize),
    /// A symbolic link, which says one of a few things.
    Point(usize, u8),
    Fill(usize, u8),
    Sync(usize),
    /// A real sync of a file that was captured before.
    Settle(usize),
    /// A real sync of the directory of this name, with what was captured there: its records are retired.
    Destage(usize),
}

/// The events, in order: records are durable at once, changes reach the disk at any later time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Record(Record),
    Change(Vec<(usize, Option<u32>)>),
    /// The file system's journal takes everything so far.
    Committed(u32, u8),
    /// The same by a sync of the directory in this slot, whose records so far no longer count.
    Destaged(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    Made(usize, u32),
    /// The last field: it has other names.
    Gone(usize, u32, bool),
    Is(usize, u32),
    /// A file that is replaced comes with whether it has other names. The last field is the name in whose directory the
    /// record is; the record for the new name comes first.
    Moved(usize, usize, u32, Option<(u32, bool)>, bool, usize),
    /// The last field is the name in whose directory the record is; the record for the new name comes first.
    Linked(usize, usize, u32, usize),
    Pointed(usize, u32),
    Content(usize, u32, u8),
    /// In the directory of the first field.
    Holds(u32, u32, u8),
    /// In the directory of the first field; the last one has it now.
    Settled(u32, u32, Option<u32>),
}

pub(super) fn handle(file: u32) -> Handle {
    Handle::new(1, &file.to_le_bytes()).expect("short")
}

pub(super) fn file(handle: &Handle) -> u32 {
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
pub(super) fn events(acts: &[Act]) -> Vec<Event> {
    let (mut names, mut files) = ([None; PLACES.len()], BTreeMap::<u32, Known>::new());
    OLD.iter().for_each(|(at, file)| names[*at] = Some(*file));
    let (mut next, mut events) = (1, Vec::new());
    let directory = |place: usize| PLACES[place].0;
    for act in acts {
        let links = |names: &[Option<u32>], file: u32| names.iter().filter(|is| **is == Some(file)).count();
        // A name in the directory that has a file's content does not go while there is one elsewhere, nor does one of
        // several that the log does not know.
        let stays = |names: &[Option<u32>], files: &BTreeMap<u32, Known>, at: usize| {
            let Some(file) = names[at] else { return false };
            let captured = files.get(&file).and_then(|known| known.captured);
            let elsewhere = |other: usize| names[other] == Some(file) && directory(other) != directory(at);
            captured.map_or(links(names, file) > 1, |(of, _)| {
                of == directory(at) && (0..PLACES.len()).any(elsewhere)
            })
        };
        match *act {
            Act::Make(at) if names[at].is_none() => {
                names[at] = Some(next);
                events.push(Event::Change(vec![(at, Some(next))]));
                events.push(Event::Record(Record::Made(at, next)));
                next += 1;
            }
            Act::MakeDirectory(at) if names[at].is_none() => {
                let directory = DIRECTORIES + next;
                names[at] = Some(directory);
                events.push(Event::Change(vec![(at, Some(directory))]));
                events.push(Event::Record(Record::Made(at, directory)));
                next += 1;
            }
            Act::Link(from, to) if names[to].is_none() => {
                let Some(file) = names[from].filter(|file| is_regular(*file)) else { continue };
                let is_across = directory(from) != directory(to);
                let is_captured = files.get(&file).is_some_and(|known| known.captured.is_some());
                if links(&names, file) > 1 && (is_across || !is_captured) {
                    continue;
                }
                if is_across {
                    events.extend(carried(&mut files, file, directory(to)));
                }
                names[to] = Some(file);
                events.push(Event::Change(vec![(to, Some(file))]));
                events.push(Event::Record(Record::Linked(from, to, file, to)));
                if is_across {
                    events.push(Event::Record(Record::Linked(from, to, file, from)));
                }
            }
            Act::Point(at, says) if names[at].is_none() => {
                let link = LINKS + 10 * next + u32::from(says);
                names[at] = Some(link);
                events.push(Event::Change(vec![(at, Some(link))]));
                events.push(Event::Record(Record::Pointed(at, link)));
                next += 1;
            }
            Act::Remove(at) if !stays(&names, &files, at) => {
                let Some(file) = names[at].take() else { continue };
                events.push(Event::Record(Record::Gone(at, file, links(&names, file) > 0)));
                events.push(Event::Change(vec![(at, None)]));
            }
            Act::Refuse(at) if !stays(&names, &files, at) => {
                let Some(file) = names[at] else { continue };
                events.push(Event::Record(Record::Gone(at, file, links(&names, file) > 1)));
                events.push(Event::Record(Record::Is(at, file)));
            }
            Act::Exchange(from, to) if directory(from) == directory(to) => {
                let (Some(file), Some(over)) = (names[from], names[to]) else { continue };
                if file == over {
                    continue;
                }
                names.swap(from, to);
                events.push(Event::Record(Record::Moved(from, to, file, Some((over, false)), true, from)));
                events.push(Event::Change(vec![(from, Some(over)), (to, Some(file))]));
            }
            Act::Move(from, to) if from != to && names[from] != names[to] && !stays(&names, &files, to) => {
                let Some(file) = names[from] else { continue };
                let is_across = directory(from) != directory(to);
                // The kernel refuses to replace a directory by a file, and the other way around.
                let is_other = |over: u32| is_directory(over) != is_directory(file);
                if is_across && links(&names, file) > 1 || names[to].is_some_and(is_other) {
                    continue;
                }
                let over = names[to].replace(file);
                names[from] = None;
                let over = over.map(|over| (over, links(&names, over) > 0));
                if is_across {
                    events.extend(carried(&mut files, file, directory(to)));
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
                let is_alone = |file: &u32| links(&names, *file) == 1 && is_regular(*file);
                let Some(file) = names[at].filter(is_alone) else { continue };
                let known = files.entry(file).or_default();
                // A second sync is left to the disk.
                if known.captured.is_none() {
                    known.captured = Some((directory(at), known.content));
                    events.push(Event::Record(Record::Content(at, file, known.content)));
                }
            }
            Act::Settle(at) => {
                let Some(file) = names[at].filter(|file| is_regular(*file)) else { continue };
                let known = files.entry(file).or_default();
                events.push(Event::Committed(file, known.content));
                if let Some((directory, _)) = known.captured.take() {
                    events.push(Event::Record(Record::Settled(directory, file, None)));
                }
            }
            Act::Destage(at) => {
                let slot = directory(at);
                for (file, known) in &mut files {
                    if let Some((_, content)) = known.captured.take_if(|(of, _)| *of == slot) {
                        events.push(Event::Committed(*file, content));
                        events.push(Event::Record(Record::Settled(slot, *file, None)));
                    }
                }
                events.push(Event::Destaged(slot));
            }
            Act::Make(_)
            | Act::MakeDirectory(_)
            | Act::Remove(_)
            | Act::Refuse(_)
            | Act::Move(..)
            | Act::Link(..)
            | Act::Point(..)
            | Act::Exchange(..) => {}
        }
    }
    events
}

/// What was captured of a file goes into another directory's records.
fn carried(files: &mut BTreeMap<u32, Known>, file: u32, to: u32) -> Vec<Event> {
    let Some((was, _)) = files.get(&file).and_then(|known| known.captured) else { return Vec::new() };
    let content = files[&file].content;
    files.entry(file).or_default().captured = Some((to, content));
    vec![Event::Record(Record::Holds(to, file, content)), Event::Record(Record::Settled(was, file, Some(to)))]
}

/// What a symbolic link says. `None`: it is a file.
pub(super) fn target(file: u32) -> Option<[u8; 1]> {
    (file >= LINKS).then_some([(file % 10) as u8])
}

pub(super) fn is_directory(file: u32) -> bool {
    (DIRECTORIES..LINKS).contains(&file)
}

fn is_regular(file: u32) -> bool {
    !is_directory(file) && target(file).is_none()
}

/// True for what the disk has had from the start.
pub(super) fn is_old(file: u32) -> bool {
    OLD.iter().any(|(_, old)| *old == file)
}

impl Record {
    /// The slot of the directory that has it.
    fn directory(self) -> u32 {
        match self {
            Self::Made(of, _)
            | Self::Gone(of, ..)
            | Self::Is(of, _)
            | Self::Moved(.., of)
            | Self::Linked(.., of)
            | Self::Pointed(of, _)
            | Self::Content(of, ..) => PLACES[of].0,
            Self::Holds(slot, ..) | Self::Settled(slot, ..) => slot,
        }
    }

    /// The file that has lost its last name.
    pub(super) fn lost(self) -> Option<u32> {
        match self {
            Self::Gone(_, file, false) | Self::Moved(_, _, _, Some((file, false)), false, _) => Some(file),
            _ => None,
        }
    }
}

/// Which records of a directory no longer count: those up to an LSN.
pub(super) type Watermarks = BTreeMap<u32, u64>;

/// True if the record counts.
pub(super) fn is_live(watermarks: &Watermarks, lsn: u64, record: Record) -> bool {
    is_behind(watermarks, record.directory(), lsn)
}

fn is_behind(watermarks: &Watermarks, slot: u32, lsn: u64) -> bool {
    watermarks.get(&slot).is_none_or(|watermark| lsn > *watermark)
}

/// Adds a record to the history of these directories.
pub(super) fn add(history: &mut History, watermarks: &Watermarks, lsn: u64, record: Record) {
    let attributes = Attributes { uid: OWNER, ..Attributes::default() };
    let name = |at: usize| PLACES[at].1;
    let data = |byte: u8| [byte];
    let mut add = |directory: u32, change: NameChange<'_>| {
        history.add(directory, lsn, &change, |other, lsn| is_behind(watermarks, other.slot, lsn))
    };
    match record {
        Record::Made(at, file) => {
            let mode = if is_directory(file) { Attributes::DIRECTORY } else { 0 };
            let attributes = Attributes { mode, ..attributes };
            add(PLACES[at].0, NameChange::Made { name: name(at), file: handle(file), attributes });
        }
        Record::Gone(at, file, has_others) => {
            add(PLACES[at].0, NameChange::Gone { name: name(at), file: handle(file), has_others });
        }
        Record::Is(at, file) => {
            add(PLACES[at].0, NameChange::Is { name: name(at), file: Some(handle(file)) });
        }
        Record::Moved(from, to, file, over, exchanged, of) => {
            let over = over.map(|(file, has_others)| Replaced { file: handle(file), has_others });
            let file = handle(file);
            let across = across((from, to, of), lsn);
            let moved = NameChange::Moved { name: name(from), to: name(to), file, over, exchanged, across };
            add(PLACES[of].0, moved);
        }
        Record::Linked(from, to, file, of) => {
            let (file, across) = (handle(file), across((from, to, of), lsn));
            add(PLACES[of].0, NameChange::Linked { name: name(from), to: name(to), file, across });
        }
        Record::Pointed(at, file) => {
            let target = &target(file).expect("a link")[..];
            add(PLACES[at].0, NameChange::Symlink { name: name(at), file: handle(file), attributes, target });
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

/// How the record in the directory of `of` says where both names are.
fn across((from, to, of): (usize, usize, usize), lsn: u64) -> Across {
    let other = |at: usize| Elsewhere { slot: PLACES[at].0, generation: 1 };
    match PLACES[from].0 == PLACES[to].0 {
        true => Across::No,
        false if of == to => Across::From { other: other(from), first: 0 },
        false => Across::To { other: other(to), first: lsn - 1 },
    }
}

pub(super) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = || 0..PLACES.len();
    let act = prop_oneof![
        3 => at().prop_map(Act::Make),
        1 => at().prop_map(Act::MakeDirectory),
        2 => at().prop_map(Act::Remove),
        1 => at().prop_map(Act::Refuse),
        4 => (at(), at()).prop_map(|(from, to)| Act::Move(from, to)),
        1 => (at(), at()).prop_map(|(from, to)| Act::Exchange(from, to)),
        2 => (at(), at()).prop_map(|(from, to)| Act::Link(from, to)),
        1 => (at(), 0..2_u8).prop_map(|(at, says)| Act::Point(at, says)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Act::Fill(at, byte)),
        3 => at().prop_map(Act::Sync),
        1 => at().prop_map(Act::Settle),
        2 => at().prop_map(Act::Destage),
    ];
    // What chance would rarely put together: a mail is delivered, or its first name is taken by another file; a file moves
    // that could not be removed.
    let in_a_row = prop_oneof![
        20 => act.prop_map(|act| vec![act]),
        2 => (at(), at()).prop_map(|(from, to)| vec![Act::Sync(from), Act::Link(from, to), Act::Remove(from)]),
        2 => (at(), at(), at()).prop_map(|(from, to, next)| {
            vec![Act::Sync(from), Act::Link(from, to), Act::Make(next), Act::Move(next, from)]
        }),
        1 => (at(), at()).prop_map(|(from, to)| vec![Act::Refuse(from), Act::Move(from, to)]),
    ];
    prop::collection::vec(in_a_row, 1..14).prop_map(|rows| rows.concat())
}
