//! Memory in large pages.

use rustix::mm::{Advice, madvise};

use crate::HUGE_PAGE;

/// Asks the kernel to give this memory in large pages when it is first touched: one fault instead of 512. Where it does
/// not, nothing changes.
pub fn in_large_pages(memory: &mut [u8]) {
    let start = memory.as_mut_ptr();
    let before = start.align_offset(HUGE_PAGE);
    let len = memory.len().saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
    if len == 0 {
        return;
    }
    // SAFETY: inside of the caller's memory, since something is left behind `before`; the advice changes no content.
    let _ = unsafe { madvise(start.add(before).cast(), len, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_length_stays_what_it_is() {
        for len in [0, 1, 4096, HUGE_PAGE, 3 * HUGE_PAGE + 5] {
            let mut memory = vec![0; len];
            in_large_pages(&mut memory);
            assert!(memory.iter().all(|byte| *byte == 0), "{len}");
            memory.fill(7);
            assert!(memory.iter().all(|byte| *byte == 7), "{len}");
        }
    }
}
