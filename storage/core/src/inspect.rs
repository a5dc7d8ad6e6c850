//! Inspect and verify: the offline view, built on the same format code as recovery.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::SpillEntry;
use crate::pool::Pool;
use crate::recover::{Scan, scan};
use crate::spill::Area;
use crate::table::{self, FileEntry, RootEntry};

/// What a pool holds.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The pool's UUID, hexadecimal.
    pub uuid: String,
    /// Format version.
    pub version: u32,
    /// Bytes.
    pub size: u64,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Segments.
    pub segments: u32,
    /// The spill area, in a pool that has one.
    pub spill: Option<SpillView>,
    /// Made for trying out: does not survive power loss.
    pub emulated: bool,
    /// The last daemon ran in this boot of this machine.
    pub same_boot: bool,
    /// All records at or below this LSN are on disk.
    pub retired_lsn: Option<u64>,
    /// The highest LSN seen.
    pub last_lsn: u64,
    /// Records found.
    pub records: u64,
    /// Records that only the log is known to hold.
    pub live: u64,
    /// Live records that a crash cut short.
    pub torn: u64,
    /// Registered directories.
    pub roots: Vec<RootView>,
    /// Managed files.
    pub files: Vec<FileView>,
    /// What is damaged, in words.
    pub damage: Vec<String>,
}

/// The spill area.
#[derive(Debug, Serialize)]
pub struct SpillView {
    /// Where it is.
    pub path: String,
    /// Its slots, each as long as a segment.
    pub slots: u32,
    /// Slots that hold data which the files may lack; `None` if the entries that show this are damaged.
    pub used: Option<u32>,
    /// Why it cannot be read, if so: that is damage if anything live is there.
    pub trouble: Option<String>,
}

/// A registered directory.
#[derive(Debug, Serialize)]
pub struct RootView {
    /// Its number.
    pub index: u32,
    /// The preset's name.
    pub preset: &'static str,
    /// The policy's name, as it was when the directory was registered.
    pub policy: &'static str,
    /// The directory.
    pub path: String,
    /// Its owner.
    pub uid: u32,
}

/// A managed file.
#[derive(Debug, Serialize)]
pub struct FileView {
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
    /// Where it was registered.
    pub path: String,
    /// All its records at or below this LSN are on disk.
    pub watermark: u64,
    /// Its live records.
    pub live: u64,
}

/// Looks at everything; writes nothing. A pool in use gives a snapshot that may contradict itself.
pub fn inspect(pool: &Pool) -> Inspection {
    let mut damage = Vec::new();
    let roots = table::roots(pool).unwrap_or_else(|e| {
        damage.push(e.to_string());
        Vec::new()
    });
    let files = files(pool, &mut damage);
    let scan = scan(pool, &files);
    damage.extend(scan.damage.iter().map(ToString::to_string));
    let sb = &pool.superblock;
    Inspection {
        uuid: format!("{:032x}", pool.uuid()),
        version: sb.version,
        size: sb.size,
        segment_bytes: sb.segment_bytes,
        segments: sb.segments,
        spill: pool.area.as_ref().map(|area| SpillView::of(area, pool)),
        emulated: sb.is_emulated(),
        same_boot: pool.is_same_boot(),
        retired_lsn: pool.retired().load(&pool.region),
        last_lsn: scan.last_lsn,
        records: scan.records,
        live: scan.live.len() as u64,
        torn: scan.torn,
        roots: roots.iter().map(RootView::of).collect(),
        files: files.values().map(|file| FileView::of(file, &roots, &scan)).collect(),
        damage,
    }
}

/// The managed files by slot. Entries that cannot be believed are damage.
fn files(pool: &Pool, damage: &mut Vec<String>) -> BTreeMap<u32, FileEntry> {
    let mut files = BTreeMap::new();
    for slot in 0..pool.superblock.files {
        match table::file(pool, slot) {
            Ok(Some(entry)) => drop(files.insert(slot, entry)),
            Ok(None) => {}
            Err(e) => damage.push(e.to_string()),
        }
    }
    files
}

impl SpillView {
    fn of(area: &Area, pool: &Pool) -> Self {
        Self {
            path: area.path().display().to_string(),
            slots: area.slots(),
            used: used_slots(pool, area),
            trouble: area.trouble().map(str::to_owned),
        }
    }
}

impl RootView {
    fn of((index, root): &(u32, RootEntry)) -> Self {
        Self {
            index: *index,
            preset: root.preset.name(),
            policy: root.policy.name(),
            path: root.path.display().to_string(),
            uid: root.uid,
        }
    }
}

impl FileView {
    fn of(file: &FileEntry, roots: &[(u32, RootEntry)], scan: &Scan) -> Self {
        let root = roots.iter().find(|(index, _)| *index == file.root);
        let path = root.map_or(file.path.clone(), |(_, root)| root.path.join(&file.path));
        Self {
            slot: file.slot,
            generation: file.generation,
            path: path.display().to_string(),
            watermark: file.watermark,
            live: live_of(scan, file.slot),
        }
    }
}

fn live_of(scan: &Scan, slot: u32) -> u64 {
    scan.live.records().filter(|parts| parts[0].header.slot == slot).count() as u64
}

fn used_slots(pool: &Pool, area: &Area) -> Option<u32> {
    let retired = pool.retired().load(&pool.region)?;
    (0..area.slots()).try_fold(0, |used, slot| {
        let entry = SpillEntry::of(pool.layout(), slot).load(&pool.region)?;
        Some(used + u32::from(entry.last_lsn > retired))
    })
}
