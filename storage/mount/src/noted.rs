//! Directories that are remembered, as many as there is room for.

use std::collections::HashSet;
use std::sync::Mutex;

use seawall_media::locks::lock;

/// As many. What is forgotten costs a request to the daemon.
const MOST: usize = 4096;

/// By st_dev and st_ino.
#[derive(Default)]
pub struct Noted(Mutex<HashSet<(u64, u64)>>);

impl Noted {
    /// True for one of them.
    pub fn has(&self, inode: (u64, u64)) -> bool {
        lock(&self.0).contains(&inode)
    }

    /// Notes one.
    pub fn note(&self, inode: (u64, u64)) {
        let mut noted = lock(&self.0);
        if noted.len() >= MOST {
            noted.clear();
        }
        noted.insert(inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_makes_directories_for_ever_does_not_fill_the_memory() {
        let noted = Noted::default();
        for ino in 0..3 * MOST as u64 {
            noted.note((1, ino));
            assert!(noted.has((1, ino)));
            assert!(lock(&noted.0).len() <= MOST);
        }
    }
}
