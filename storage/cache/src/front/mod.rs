//! What every front does with the shared zone, the preload and the mount alike: look there first, offer what came from
//! the disk, and say whatever may change a file.
//!
//! | module | |
//! |---|---|
//! | [`word`] | what is remembered of an open file |
//! | [`change`] | a change of a file: announced, counted, or its cell pinned |
//! | [`reader`] | a read: the zone, the page cache without waiting, the disk |
//! | [`sequential`] | streams of adjacent reads, which offer nothing |
//!
//! A front brings its own memory of what is open, its own system calls, and whom it asks. Nothing here allocates, waits or
//! keeps a lock.

pub mod change;
pub mod reader;
pub mod sequential;
pub mod word;
