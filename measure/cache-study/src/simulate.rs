//! A trace through a page cache and an algorithm behind it, and what came of it.
//!
//! A read looks in ours first, which takes no system call, then in the page cache, then it goes to the disk. What was
//! in the page cache is not offered to ours. Only what came from the disk, or was written, is in the page cache
//! afterwards: what ours holds is copied to the reader and leaves the page cache alone, so the two hold different
//! blocks before long; at once where the page cache gives up what ours admits. (A database that reads with `O_DIRECT`
//! has a page cache of no blocks.)
//!
//! The first half of each trace warms both, the second is counted: what is shown is a cache that has been in use,
//! not how it fills.

use crate::algorithm::{Algorithm, Belady, Kind, Lru, Outcome};
use seawall_cache::access::Access;
use seawall_cache::key::Block;

use crate::trace::Trace;

/// Where the database's reads ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All reads.
    pub reads: u64,
    /// Those that neither cache had.
    pub disk: u64,
    /// Blocks that were let into ours: each is written to its medium.
    pub admitted: u64,
}

impl Counts {
    /// Reads that did not go to the disk, for each hundred; 0 if there were none.
    pub fn spared_percent(self) -> f64 {
        (self.reads - self.disk) as f64 * 100.0 / self.reads.max(1) as f64
    }

    /// Blocks let in for each hundred reads; 0 if there were none.
    pub fn admitted_percent(self) -> f64 {
        self.admitted as f64 * 100.0 / self.reads.max(1) as f64
    }

    fn count(&mut self, outcome: Option<Outcome>) {
        self.reads += 1;
        self.disk += u64::from(matches!(outcome, Some(Outcome::Admitted | Outcome::Passed)));
        self.admitted += u64::from(outcome == Some(Outcome::Admitted));
    }
}

/// Runs a trace through a page cache of `pages` blocks and one of ours of `capacity`.
pub fn run(trace: &Trace, kind: Kind, pages: usize, capacity: usize) -> Counts {
    let pages = (pages > 0).then(|| Lru::new(pages));
    // If ours admitted whatever is missed, it would leave the page cache nothing.
    let mut caches = Caches { pages, ours: Some(kind.make(capacity)), gives_up: kind == Kind::Sets };
    counted(trace, |access| caches.access(access))
}

/// What the page cache does alone.
pub fn without(trace: &Trace, pages: usize) -> Counts {
    let pages = (pages > 0).then(|| Lru::new(pages));
    let mut caches = Caches { pages, ours: None, gives_up: false };
    counted(trace, |access| caches.access(access))
}

/// The best that can be done by one who knows the whole trace, with one cache as large as both together.
pub fn optimum(trace: &Trace, pages: usize, capacity: usize) -> Counts {
    let mut best = Belady::new(trace, pages + capacity, pages > 0);
    counted(trace, |access| best.step(access))
}

struct Caches {
    pages: Option<Lru>,
    ours: Option<Box<dyn Algorithm>>,
    /// The page cache gives up what ours admits.
    gives_up: bool,
}

impl Caches {
    /// What ours did about a read; `None` if only the page cache had it.
    fn access(&mut self, access: Access) -> Option<Outcome> {
        match access {
            Access::Read(block) => {
                let is_ours = self.ours.as_ref().is_some_and(|ours| ours.contains(block));
                let is_page = self.pages.as_ref().is_some_and(|pages| pages.contains(block));
                let is_asked = is_ours || !is_page;
                let outcome =
                    is_asked.then(|| self.ours.as_mut().map_or(Outcome::Passed, |ours| ours.read(block)));
                match outcome {
                    Some(Outcome::Hit) => {}
                    Some(Outcome::Admitted) if self.gives_up => {
                        self.pages.iter_mut().for_each(|pages| pages.kill(block))
                    }
                    _ => self.touch(block),
                }
                outcome
            }
            Access::Write(block) => {
                self.ours.iter_mut().for_each(|ours| ours.kill(block));
                self.touch(block);
                None
            }
        }
    }

    fn touch(&mut self, block: Block) {
        self.pages.iter_mut().for_each(|pages| pages.touch(block));
    }
}

fn counted(trace: &Trace, mut step: impl FnMut(Access) -> Option<Outcome>) -> Counts {
    let mut counts = Counts::default();
    for (i, access) in trace.accesses.iter().enumerate() {
        let outcome = step(*access);
        if i >= trace.accesses.len() / 2 && matches!(access, Access::Read(_)) {
            counts.count(outcome);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::synthetic;

    #[test]
    fn nobody_is_better_than_the_optimum() {
        for trace in synthetic::all() {
            for (pages, capacity) in [(0, 500), (0, 4000), (1000, 4000)] {
                let best = optimum(&trace, pages, capacity);
                for kind in Kind::ALL {
                    let counts = run(&trace, kind, pages, capacity);
                    assert_eq!(counts.reads, best.reads);
                    assert!(
                        counts.disk >= best.disk,
                        "{} on {}, {pages} and {capacity}",
                        kind.name(),
                        trace.name
                    );
                }
            }
        }
    }

    #[test]
    fn the_page_cache_and_ours_hold_different_blocks() {
        let block = |number| Block { file: 0, number };
        let reads = [1, 2, 3, 4, 1, 2, 3, 4].map(|n| Access::Read(block(n)));
        let trace = Trace { name: String::new(), accesses: reads.to_vec() };
        // One page, and three of ours: the fourth block is in the page cache, where it was read last.
        assert_eq!(without(&trace, 1).disk, 4);
        assert_eq!(run(&trace, Kind::Lru, 1, 3).disk, 4);
        assert_eq!(run(&trace, Kind::Lru, 0, 4).disk, 0);
        assert_eq!(run(&trace, Kind::Lru, 0, 4).admitted, 0);
    }
}
