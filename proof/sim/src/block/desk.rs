//! The desk of a journal: the part of the run-time memory by which those who write it agree.

use std::sync::atomic::Ordering::SeqCst;

use seawall_core::format::Layout;
use seawall_media::Region;
use seawall_wire::desk::Desk;

use super::Block;

/// The desk's words.
const WORDS: usize = 4096;

impl Block {
    /// Keeps the desk's words as they are: a kill is about to tidy them up.
    pub fn remember(&self, memory: &Region) {
        let mut words = vec![0; WORDS];
        memory.read(self.desk_at, &mut words);
        *self.at_death.borrow_mut() = Some(words);
    }

    /// What of the image has no memory yet: from where to where.
    pub fn without_memory(&self, memory: &Region) -> (usize, usize) {
        let layout = Layout::for_size(self.desk_at as u64).expect("it is a pool's");
        let unbacked = Desk::new(memory, self.desk_at).unbacked().load(SeqCst);
        (layout.segment(layout.segments - unbacked), layout.segment(layout.segments))
    }

    /// The process that leads, 0 for none.
    pub fn holder(&self, memory: &Region) -> u32 {
        Desk::new(memory, self.desk_at).leader().map_or(0, |(_, holder)| (holder >> 32) as u32)
    }

    /// How many wait for the records that are being written; 0 while it is something else.
    pub fn company(&self, memory: &Region) -> u64 {
        let desk = Desk::new(memory, self.desk_at);
        let is_capture = desk.begun().load(SeqCst) != desk.done().load(SeqCst);
        if is_capture { desk.company().load(SeqCst) } else { 0 }
    }

    /// Undoes what the tidying did.
    pub fn restore(&self, memory: &Region) {
        if let Some(words) = self.at_death.borrow_mut().take() {
            memory.copy_in(self.desk_at, &words);
        }
    }
}
