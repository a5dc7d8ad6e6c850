//! A period: everything a report says about the time between two snapshots.
//!
//! Input: the snapshots from the first to the last, and the samples in between. Output: a [`Period`], plain
//! data that can be shown, compared, judged and written as JSON. A value that is not known is absent, never zero.

pub(crate) mod block_cache;
mod counted;
mod elapsed;
mod events;
mod figures;
mod io;
mod keepers;
mod load;
mod machine;
mod sampled;
mod seawall;
mod statements;
mod time_model;
mod timeline;

use std::collections::BTreeMap;

pub use block_cache::{BlockCache, CacheSize, CachedFile};
pub use elapsed::PeriodError;
pub(crate) use elapsed::passed;
pub use figures::{Event, File, Load, Period, Seawall, Statement, Wait};
pub use keepers::{Keeper, Keepers};
pub use load::mariadb_transactions;
pub use machine::{Disk, Machine};
pub use timeline::Timeline;

use crate::delta::Deltas;
use crate::model::Snapshot;
use crate::recovery::Exposure;
use crate::repository::Samples;

impl Period {
    /// What happened from the first to the last of these snapshots of one target.
    ///
    /// # Errors
    /// If they are fewer than two, or no time can be given.
    pub fn of(snapshots: &[Snapshot], samples: &Samples) -> Result<Self, PeriodError> {
        let [first, .., last] = snapshots else { return Err(PeriodError::TooFew) };
        let (elapsed_s, jumps) = elapsed::elapsed(snapshots)?;
        let deltas = Deltas::over(snapshots);
        let mut period = Self {
            snapshots: [(first.id, first.label.clone()), (last.id, last.label.clone())],
            count: snapshots.len(),
            target: last.target.clone(),
            wall_ms: [first.at.wall_ms, last.at.wall_ms],
            elapsed_s,
            samples: samples.ticks.len(),
            warnings: deltas.warnings.iter().cloned().chain(jumps).collect(),
            capture_cpu_s: snapshots[1..].iter().map(|s| s.cost.cpu_us as f64 / 1e6).sum(),
            ..Self::default()
        };
        if let Some(reading) = last.one("settings") {
            period.settings.clone_from(&reading.facts);
        }
        period.note(snapshots, samples);
        load::fill(&mut period, &deltas);
        period.rates = load::rates(snapshots);
        let sampled = sampled::Sampled::of(samples);
        period.active_seen = sampled.active;
        events::fill(&mut period, &deltas, &sampled);
        statements::fill(&mut period, &deltas);
        io::fill(&mut period, &deltas);
        time_model::fill(&mut period, &deltas);
        period.seawall = seawall::part(snapshots, &deltas);
        period.block_cache = block_cache::part(&deltas);
        period.keepers = keepers::part(&deltas);
        period.exposed = snapshots.iter().filter_map(Exposure::of).max_by(|a, b| a.redo.total_cmp(&b.redo));
        period.machine = machine::machine(snapshots, &deltas, elapsed_s);
        period.timeline = timeline::timeline(snapshots, samples);
        period.storage = last.of("storage").map(storage).collect();
        Ok(period)
    }

    /// What could not be read, each once; and whether samples cover the period.
    fn note(&mut self, snapshots: &[Snapshot], samples: &Samples) {
        for note in snapshots.iter().flat_map(|s| &s.notes) {
            if !self.warnings.contains(note) {
                self.warnings.push(note.clone());
            }
        }
        let covered = samples.ticks.len() as f64 / self.elapsed_s;
        if !samples.ticks.is_empty() && covered < 0.8 {
            self.warnings.push(format!(
                "activity was sampled {} times in {:.0} s: the activity in between is not in the shares",
                samples.ticks.len(),
                self.elapsed_s
            ));
        }
    }
}

fn storage(reading: &crate::model::Reading) -> BTreeMap<String, String> {
    let mut facts = reading.facts.clone();
    facts.insert("what".into(), reading.item.clone());
    facts
}
