//! Memory as O_DIRECT wants it, for a whole file.

/// Of a version.
pub const BLOCK: usize = 4096;
/// Of a file.
pub const BLOCKS: usize = 160;

#[derive(Clone)]
#[repr(align(4096))]
struct Page(#[allow(dead_code)] [u8; BLOCK]); // By way of bytes only.

/// As long as the file.
pub struct Memory(Vec<Page>);

impl Memory {
    /// Zeros.
    pub fn new() -> Memory {
        Memory(vec![Page([0; BLOCK]); BLOCKS])
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: pages of bytes, one behind the other.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), BLOCK * BLOCKS) }
    }

    /// All of it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), BLOCK * BLOCKS) }
    }

    /// Says `version` in the first `blocks` of it.
    pub fn fill(&mut self, version: u64, blocks: usize) -> &[u8] {
        let bytes = &mut self.bytes_mut()[..blocks * BLOCK];
        bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&version.to_ne_bytes()));
        bytes
    }
}
