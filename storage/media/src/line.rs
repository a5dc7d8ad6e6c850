//! The unit in which the processor's caches hold memory.

/// A cache line: the unit of flushing, and the alignment of everything that is streamed.
pub const LINE: usize = 64;
