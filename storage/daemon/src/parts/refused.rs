//! Processes that go without Seawall although the preload library is in them.
//!
//! The daemon refused those whose library speaks another version: it happens when the package is upgraded while a database
//! runs, for what the database starts from then on loads the new library and meets the old daemon. Others could not map
//! what they were given (`ulimit -v`). In: a refused process. Out: it and its children count as
//! foreign writers, although the library is mapped into them: their writes pass by the log unseen.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use seawall_media::locks::lock;

use crate::process;

/// Generations of children that are looked up.
const DEPTH: usize = 64;

/// The processes that were refused.
#[derive(Default)]
pub(crate) struct Refused {
    /// Process ids, and when (nanoseconds since boot).
    at: Mutex<HashMap<u32, u64>>,
    count: AtomicU32,
}

impl Refused {
    /// Counts a request of another version.
    pub fn count_version(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// Notes a process.
    pub fn add(&self, pid: u32) {
        lock(&self.at).insert(pid, process::now_ns());
    }

    /// How many requests were refused for their version.
    pub fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// True if the process was refused, or comes from one that was: a child without an exec of its own has
    /// its parent's library, and does not ask again.
    pub fn has(&self, pid: u32) -> bool {
        let mut at = lock(&self.at);
        at.retain(|pid, since| process::is_same(*pid, *since));
        if at.is_empty() {
            return false;
        }
        let parent = |pid: &u32| process::stat(*pid).map(|stat| stat.parent);
        std::iter::successors(Some(pid), parent).take(DEPTH).any(|pid| at.contains_key(&pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_refused_process_is_refused_with_its_children_and_forgotten_when_it_ends() {
        let me = std::process::id();
        let refused = Refused::default();
        assert!(!refused.has(me));
        let mut child = Command::new("sleep").arg("60").spawn().expect("spawned");
        refused.count_version();
        refused.add(child.id());
        assert!(refused.has(child.id()) && !refused.has(me));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!refused.has(child.id()));
        refused.add(me);
        let mut child = Command::new("sleep").arg("60").spawn().expect("spawned");
        assert!(refused.has(child.id()), "its parent was refused");
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_eq!(refused.count(), 1);
    }
}
