//! Publish: by which way a logged write reaches the page cache, a call or a store into a mapping.
//!
//! Input: where writes go and what they took. Output: the way of the next one. The calls and the stores themselves
//! are the front's; nothing here touches a file.
//!
//! Words: a *chunk* is what is stored into as a whole, a *window* as much of a file as is looked at.

mod choice;
mod warmth;

pub use choice::Choice;
pub use warmth::{After, BLOCK, CHUNK, CHUNKS, Chunk, Warmth};
