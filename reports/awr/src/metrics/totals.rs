//! Counts by file, added up by two labels.
//!
//! Invariant: a total never goes back, although files come and go and take their counts along: only what a file's
//! counts grew by is added. Files come in rounds: `add` for each, then `end`.

use std::collections::BTreeMap;
use std::path::Path;

use super::exposition::{Exposition, Kind};

/// The values of the labels.
pub type Labels = (String, String);

/// `N` counters of each file, and their sums.
pub struct Totals<const N: usize> {
    /// What each file had when it was last seen.
    before: BTreeMap<String, [u64; N]>,
    /// What those have that were seen in this round.
    now: BTreeMap<String, [u64; N]>,
    /// Everything that was ever seen.
    sums: BTreeMap<Labels, [u64; N]>,
}

impl<const N: usize> Default for Totals<N> {
    fn default() -> Self {
        Self { before: BTreeMap::new(), now: BTreeMap::new(), sums: BTreeMap::new() }
    }
}

impl<const N: usize> Totals<N> {
    /// A file has these counts now. One of whose counts any went back is another file of that name.
    pub fn add(&mut self, id: String, labels: Labels, counts: [u64; N]) {
        let before = self.before.get(&id).filter(|before| before.iter().zip(counts).all(|(b, c)| *b <= c));
        let before = before.copied().unwrap_or([0; N]);
        let sums = self.sums.entry(labels).or_insert([0; N]);
        sums.iter_mut().zip(counts.iter().zip(before)).for_each(|(sum, (now, before))| *sum += now - before);
        self.now.insert(id, counts);
    }

    /// The round is over. Files that it did not have are forgotten if it had all there are; else they may come back
    /// with the counts that they have had already.
    pub fn end(&mut self, had_all: bool) {
        let now = std::mem::take(&mut self.now);
        match had_all {
            true => self.before = now,
            false => self.before.extend(now),
        }
    }

    /// The sums, under the names and with the help of each counter, by these labels.
    pub fn export(&self, out: &mut Exposition, counters: &[(&str, &str); N], labels: (&str, &str)) {
        for (i, (name, help)) in counters.iter().enumerate() {
            for ((first, second), sums) in &self.sums {
                let labels = [(labels.0, first.as_str()), (labels.1, second.as_str())];
                out.value(name, Kind::Counter, help, &labels, sums[i] as f64);
            }
        }
    }
}

/// The directory of a file, as a label.
pub fn directory(file: &Path) -> String {
    file.parent().map(|parent| parent.display().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(totals: &Totals<1>) -> u64 {
        totals.sums.values().map(|sums| sums[0]).sum()
    }

    #[test]
    fn what_was_not_among_all_is_new_when_it_comes_and_what_was_left_out_is_not() {
        let labels = || (String::new(), String::new());
        let mut totals = Totals::<1>::default();
        for (had_all, files, total) in [
            (true, vec![("a", 5), ("b", 3)], 8),
            (false, vec![("a", 6)], 9),
            (true, vec![("a", 6), ("b", 4)], 10),
            (true, vec![("a", 6)], 10),
            (true, vec![("a", 6), ("b", 4)], 14),
            (true, vec![("a", 2), ("b", 4)], 16),
        ] {
            files.into_iter().for_each(|(id, count)| totals.add(id.into(), labels(), [count]));
            totals.end(had_all);
            assert_eq!(sum(&totals), total);
        }
    }
}
