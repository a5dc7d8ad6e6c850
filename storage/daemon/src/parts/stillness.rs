//! Since when the files of guards are still.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seawall_core::{Engine, FileRef};
use seawall_media::locks::lock;

use super::files::FileTable;

/// How long the files of a guard are closed and still before it goes: a database that opens them again a moment later
/// pays for raising it again.
pub(crate) const STILL: Duration = Duration::from_millis(600);

/// What was last seen of each file that a guard protects, and since when.
#[derive(Default)]
pub(crate) struct Stillness(Mutex<HashMap<u32, (Seen, Instant)>>);

/// Changes with every write and sync.
type Seen = (FileRef, [u64; 4]);

impl Stillness {
    /// Those of the groups, which are all that guards protect, whose files have been still for a moment.
    pub fn still(
        &self,
        groups: Vec<BTreeSet<u32>>,
        files: &FileTable,
        engine: &Engine,
    ) -> Vec<BTreeSet<u32>> {
        let mut seen = lock(&self.0);
        let protected: BTreeSet<u32> = groups.iter().flatten().copied().collect();
        seen.retain(|slot, _| protected.contains(slot));
        let look = |slot| look(slot, files, engine);
        groups.into_iter().filter(|group| is_still(group, &mut seen, look)).collect()
    }
}

/// All are looked at: the time of each begins with its own last change.
fn is_still(
    group: &BTreeSet<u32>,
    seen: &mut HashMap<u32, (Seen, Instant)>,
    look: impl Fn(u32) -> Option<Seen>,
) -> bool {
    let now = Instant::now();
    let still = group.iter().filter(|slot| {
        let Some(found) = look(**slot) else { return false };
        let (last, since) = seen.entry(**slot).or_insert((found, now));
        if *last != found {
            (*last, *since) = (found, now);
        }
        now.duration_since(*since) >= STILL
    });
    still.count() == group.len()
}

fn look(slot: u32, files: &FileTable, engine: &Engine) -> Option<Seen> {
    let file = files.get(slot)?;
    let slot = engine.file(file.reference)?;
    let counted = slot.counters();
    let counters = [slot.last_lsn(), counted.writes, counted.untracked_writes, counted.real_syncs];
    Some((file.reference, counters))
}
