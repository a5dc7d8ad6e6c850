//! Another size, while everybody goes on: how many places a set has. Which set a block belongs to stays, and so do the blocks
//! in the places that are left; nobody has to hear of it.
//!
//! ```text
//! grow:   room is made ─▶ sets have more places
//! shrink: sets have fewer places ─▶ the others are vacated, until nobody is filling one ─▶ their room is given back
//! ```
//!
//! Whoever fills claims a place first and looks then whether it is still one; whoever takes places away says so first and looks
//! for claims then. One of the two sees the other. Whoever is reading a block of a place that was vacated finds that its tag
//! is another one when it has been read, whatever it read.
//!
//! One at a time; the daemon's alone.

use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::fence;

use super::Cache;
use super::view::Set;
use crate::set::WAYS;

impl Cache {
    /// Places for blocks now.
    pub fn blocks(&self) -> u64 {
        self.layout.blocks() / WAYS as u64 * u64::from(self.ways())
    }

    /// Sets have so many places from now on, 1 to [`WAYS`]. If these are more, there is room for them. If they are fewer,
    /// the others are to be [vacated](Self::vacate).
    pub fn resize(&self, ways: u32) {
        self.set_ways(ways);
    }

    /// Takes the blocks out of the places that sets do not have any more. False if somebody is filling one: then once more,
    /// a little later. A walk through the whole index.
    pub fn vacate(&self) -> bool {
        // What takes places away is seen before the claims of those who did not see it are looked for.
        fence(SeqCst);
        let places = self.places();
        let busy = self.sets().filter(|set| !vacate(*set, places)).count();
        self.settle();
        busy == 0
    }
}

fn vacate(set: Set<'_>, places: u16) -> bool {
    let is_busy = |way: &usize| places >> way & 1 == 0 && set.load_tag(*way).filler().is_some();
    if (0..WAYS).any(|way| is_busy(&way)) {
        return false;
    }
    let out = set.load().valid() & !places;
    if out != 0 {
        let seen = set.tags(out);
        set.clear(out);
        set.scrub(out, &seen);
        set.flush();
    }
    let mut memory = set.memory();
    if memory.kept & !places != 0 {
        memory.kept &= places;
        set.set_memory(&memory);
    }
    true
}
