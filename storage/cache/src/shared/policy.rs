//! What is to be done with a file's blocks. The daemon says it, and whoever fills asks. Of a hit nobody asks anything: what
//! is there may be read.
//!
//! Which places are kept is a matter of choice like the heats: a bit that is lost when two store at once costs a block its
//! privilege for a while, and nothing else.

use core::sync::atomic::Ordering::Relaxed;

use super::{Cache, FileRecord};
use crate::set::Policy;

#[cfg(feature = "std")]
pub use arranged::{Arrangement, Holding};

impl Cache {
    /// The policy of the file in this slot.
    #[inline]
    pub fn policy(&self, slot: u32) -> Policy {
        let at = self.file_at(slot).map(|at| at + FileRecord::POLICY);
        at.map_or(Policy::Default, |at| Policy::from_number(self.region.u32(at).load(Relaxed)))
    }
}

#[cfg(feature = "std")]
mod arranged {
    use core::sync::atomic::Ordering::{Relaxed, SeqCst};
    use std::collections::{BTreeMap, HashMap};

    use crate::set::{Policy, WAYS, kept_max};
    use crate::shared::view::Set;
    use crate::shared::word::FileWord;
    use crate::shared::{Cache, CachedFile, FileRecord};

    /// By incarnation, the policies of all files whose blocks may be there and which have one.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Arrangement(BTreeMap<u32, Policy>);

    /// Blocks of a file that are there.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Holding {
        /// All of them.
        pub blocks: u64,
        /// Those in places that other files' blocks do not take.
        pub kept: u64,
    }

    impl Cache {
        /// From now on this is the file's policy. One that is to be left alone is not served before it has another. Blocks
        /// that are there already come under it when the places are [arranged](Self::arrange). The daemon's alone.
        pub fn set_policy(&self, file: CachedFile, policy: Policy) {
            let Some(at) = self.file_at(file.slot) else { return };
            if self.policy(file.slot) != policy {
                self.region.u32(at + FileRecord::POLICY).store(policy.number(), SeqCst);
            }
            let is_passed = policy == Policy::None;
            if self.file(file).has(FileWord::PASSED) != is_passed {
                self.change_file(file, |word| word.flagged(FileWord::PASSED, is_passed));
            }
        }

        /// The policies as they are now.
        pub fn arrangement(&self) -> Arrangement {
            let records = (0..self.layout.files).map(|slot| self.record(slot));
            let policies = records.filter_map(|record| {
                // That of a slot without a file is nobody's: no block has its incarnation.
                let policy = Policy::from_number(record.policy);
                (policy != Policy::Default).then(|| (FileWord(record.word).incarnation(), policy))
            });
            Arrangement(policies.collect())
        }

        /// Blocks that may be kept, at most.
        pub fn kept_max(&self) -> u64 {
            u64::from(self.layout.sets) * u64::from(kept_max(self.places()))
        }

        /// Makes the places of all sets what the policies say: kept are those of the files that are to be kept, as many
        /// as there may be; those of files that are to be left alone are empty. A walk through the whole index.
        pub fn arrange(&self, policies: &Arrangement) {
            let kept = kept_max(self.places());
            self.sets().for_each(|set| arrange(set, &policies.0, kept));
        }

        /// What is there of each file, by slot: of those that are served, or would be if nothing were in the way. A walk
        /// through the whole index.
        pub fn holdings(&self) -> HashMap<u32, Holding> {
            let slot = |file: CachedFile| (self.file(file).incarnation(), file.slot);
            let slots: HashMap<u32, u32> = self.tenants().map(|tenant| slot(tenant.file)).collect();
            let mut holdings: HashMap<u32, Holding> = HashMap::new();
            for set in self.sets() {
                let (valid, kept) = (set.load().valid(), set.memory().kept);
                for way in (0..WAYS).filter(|way| valid >> way & 1 == 1) {
                    let Some(slot) = slots.get(&incarnation_in(set, way)) else { continue };
                    let holding = holdings.entry(*slot).or_default();
                    holding.blocks += 1;
                    holding.kept += u64::from(kept >> way & 1);
                }
            }
            holdings
        }
    }

    fn arrange(set: Set<'_>, policies: &BTreeMap<u32, Policy>, kept_max: u32) {
        let (word, mut memory) = (set.load(), set.memory());
        if policies.is_empty() && memory.kept == 0 {
            return;
        }
        let under = |policy| {
            set.which(word, |way| policies.get(&incarnation_in(set, way)).is_some_and(|p| *p == policy))
        };
        let (keep, passed) = (under(Policy::Keep), under(Policy::None));
        if passed != 0 {
            // Somebody may be filling one at this moment: it is as right as ever, and gone the next time.
            let seen = set.tags(passed);
            set.clear(passed);
            set.scrub(passed, &seen);
            set.flush();
        }
        let filling = (0..WAYS)
            .filter(|way| set.load_tag(*way).filler().is_some())
            .fold(0, |ways, way| ways | 1 << way);
        // Those that are kept already before those that come to it.
        let stay = first(memory.kept & (keep | filling), kept_max);
        let kept = stay | first(keep & !stay, kept_max.saturating_sub(stay.count_ones()));
        if kept != memory.kept {
            memory.kept = kept;
            set.set_memory(&memory);
        }
    }

    /// The first so many of these places.
    fn first(ways: u16, count: u32) -> u16 {
        let left = (0..count).fold(ways, |left, _| left & left.wrapping_sub(1));
        ways & !left
    }

    /// The incarnation of the block in a place.
    fn incarnation_in(set: Set<'_>, way: usize) -> u32 {
        (set.key(way).load(Relaxed) >> 32) as u32
    }
}
