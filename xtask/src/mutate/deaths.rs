//! Where mutants died before: the next run looks there first, since most of a run's time goes to those that die late.
//!
//! Kept beside the build, not in the repository. A hint and no more: who lives there faces everything, as if nobody
//! had been looked for, and what is reported is this run's death.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::fate::Fate;
use super::kind::TESTS;

/// Where a mutant may be seen to die soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the simulator, in the run of this seed.
    Seed(u64),
    /// In core's tests.
    Tests,
}

/// Where each mutant died, by its name, kept in a file.
pub struct Deaths {
    file: PathBuf,
    places: BTreeMap<String, String>,
}

impl Deaths {
    /// What the file says. One that is missing or cannot be read knows of no deaths.
    #[must_use]
    pub fn of(file: PathBuf) -> Self {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Self { file, places: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Where to look first.
    #[must_use]
    pub fn place(&self, mutant: &str) -> Option<Place> {
        let place = self.places.get(mutant)?;
        match place.strip_prefix("seed ") {
            Some(seed) => seed.parse().ok().map(Place::Seed),
            None => (place == "tests").then_some(Place::Tests),
        }
    }

    /// Remembers where this one died, if that can be looked at by itself: a seed, or the tests.
    ///
    /// # Errors
    /// What keeps the file from being written.
    pub fn note(&mut self, fate: &Fate) -> Result<(), String> {
        let seed = fate.because.split(':').next().filter(|place| place.starts_with("seed "));
        let tests = (fate.killed_by.as_deref() == Some(TESTS)).then_some("tests");
        let Some(place) = seed.or(tests) else { return Ok(()) };
        self.places.insert(fate.mutant.clone(), place.to_owned());
        let text = serde_json::to_string_pretty(&self.places).map_err(|e| e.to_string())?;
        std::fs::write(&self.file, text + "\n").map_err(|e| format!("{}: {e}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Deaths, Fate, Place, TESTS};

    fn died(mutant: &str, killed_by: &str, because: &str) -> Fate {
        let [mutant, killed_by, because] = [mutant, killed_by, because].map(str::to_owned);
        Fate { mutant, killed_by: Some(killed_by), needless: None, because, seconds: 1.0 }
    }

    #[test]
    fn a_death_is_looked_for_where_it_was() -> Result<(), String> {
        let file = std::env::temp_dir().join(format!("seawall-deaths-{}", std::process::id()));
        let mut deaths = Deaths::of(file.clone());
        deaths.note(&died("a", "simulator", "seed 186: power cut at point 367: recovery refused a pool"))?;
        deaths.note(&died("b", TESTS, "recover::fate::tests::every_row"))?;
        deaths.note(&died("c", "simulator", "it panicked"))?;
        let again = Deaths::of(file.clone());
        let places = ["a", "b", "c"].map(|name| again.place(name));
        assert_eq!(places, [Some(Place::Seed(186)), Some(Place::Tests), None]);
        std::fs::remove_file(file).map_err(|e| e.to_string())
    }
}
