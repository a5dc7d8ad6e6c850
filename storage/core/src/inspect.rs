//! Inspect and verify: the offline view, built on the same format code as recovery.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::SpillEntry;
use crate::pool::Pool;
use crate::recover::{Scan, scan};
use crate::spill::Area;
use crate::table;

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
    let mut files = BTreeMap::new();
    for slot in 0..pool.superblock.files {
        match table::file(pool, slot) {
            Ok(Some(entry)) => drop(files.insert(slot, entry)),
            Ok(None) => {}
            Err(e) => damage.push(e.to_string()),
        }
    }
    let scan = scan(pool, &files);
    damage.extend(scan.damage.iter().map(ToString::to_string));
    let file_views = files
        .values()
        .map(|f| FileView {
            slot: f.slot,
            generation: f.generation,
            path: roots
                .iter()
                .find(|(i, _)| *i == f.root)
                .map_or(f.path.clone(), |(_, root)| root.path.join(&f.path))
                .display()
                .to_string(),
            watermark: f.watermark,
            live: live_of(&scan, f.slot),
        })
        .collect();
    let root_views = roots
        .iter()
        .map(|(index, root)| RootView {
            index: *index,
            preset: root.preset.name(),
            policy: root.policy.name(),
            path: root.path.display().to_string(),
            uid: root.uid,
        })
        .collect();
    let sb = &pool.superblock;
    Inspection {
        uuid: format!("{:032x}", pool.uuid()),
        version: sb.version,
        size: sb.size,
        segment_bytes: sb.segment_bytes,
        segments: sb.segments,
        spill: pool.area.as_ref().map(|area| SpillView {
            path: area.path().display().to_string(),
            slots: area.slots(),
            used: used_slots(pool, area),
            trouble: area.trouble().map(str::to_owned),
        }),
        emulated: sb.is_emulated(),
        same_boot: pool.is_same_boot(),
        retired_lsn: pool.retired().load(&pool.region),
        last_lsn: scan.last_lsn,
        records: scan.records,
        live: scan.live.len() as u64,
        torn: scan.torn,
        roots: root_views,
        files: file_views,
        damage,
    }
}

fn live_of(scan: &Scan, slot: u32) -> u64 {
    scan.live.values().filter(|parts| parts[0].header.slot == slot).count() as u64
}

fn used_slots(pool: &Pool, area: &Area) -> Option<u32> {
    let retired = pool.retired().load(&pool.region)?;
    (0..area.slots()).try_fold(0, |used, slot| {
        let entry = SpillEntry::of(pool.layout(), slot).load(&pool.region)?;
        Some(used + u32::from(entry.last_lsn > retired))
    })
}
