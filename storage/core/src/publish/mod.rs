//! Publish: by which way a logged write reaches the page cache, a call or a store into a mapping.
//!
//! Input: where writes go and how long they took. Output: the way for the next one. The calls and the stores themselves
//! belong to the front; nothing here touches a file.
//!
//! Words: a *chunk* is the unit that is stored into or not, a *window* is the part of a file that is tracked.

mod choice;
mod warmth;

pub use choice::Choice;
pub use warmth::{After, BLOCK, CHUNK, CHUNKS, Chunk, Warmth};
