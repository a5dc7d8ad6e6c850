//! The spill area: room behind a small pool, on a fast disk.
//!
//! ```text
//! segment in the pool, full ──▶ copied to a free slot, durably ──▶ the slot's entry in the pool ──▶ segment free again
//!                                                                  from here on the slot is the log
//! ```
//!
//! Commits go to the pool's memory alone. When its segments fill faster than the data's disk takes the files, the
//! daemon copies full ones to the area, oldest first, and frees them. The content of a slot is retired like everything
//! else, by the pool's one retired LSN; a slot whose highest LSN is retired is free. Wherever this is cut, each record
//! is in the segment or in a slot that an entry names, or in both, and recovery takes it once.
//!
//! Invariants:
//!
//! * A segment is copied only if it is full and everything in it is published: nobody writes into it any more, and no
//!   death can make anybody read it.
//! * An entry is written after the copy is durable, and a segment is freed after the entry is persisted.
//! * A slot is written only while its entry names nothing above the retired LSN.
//!
//! Not handled here: when there is too little room (nobody calls for [`Spiller::round`]; it checks by itself), the area
//! of a pool on a block device (such a pool has a journal, and refuses an area).

mod area;
mod spiller;

pub(crate) use area::make;
pub use area::{Area, Plan};
pub(crate) use spiller::inherit;
pub use spiller::{Spiller, Spilling};
