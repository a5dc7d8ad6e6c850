//! Directories for which the daemon was asked in vain: their names are not in the log, and it is not asked again.

use std::collections::HashSet;
use std::sync::Mutex;

use seawall_media::locks::lock;

/// As many are remembered. A directory that is forgotten is asked for once more, which costs a request.
const MOST: usize = 4096;

/// By st_dev and st_ino.
#[derive(Default)]
pub struct Refused(Mutex<HashSet<(u64, u64)>>);

impl Refused {
    /// True for one of them.
    pub fn has(&self, inode: (u64, u64)) -> bool {
        lock(&self.0).contains(&inode)
    }

    /// Notes one.
    pub fn note(&self, inode: (u64, u64)) {
        let mut refused = lock(&self.0);
        if refused.len() >= MOST {
            refused.clear();
        }
        refused.insert(inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_makes_directories_for_ever_does_not_fill_the_memory() {
        let refused = Refused::default();
        for ino in 0..3 * MOST as u64 {
            refused.note((1, ino));
            assert!(refused.has((1, ino)));
            assert!(lock(&refused.0).len() <= MOST);
        }
    }
}
