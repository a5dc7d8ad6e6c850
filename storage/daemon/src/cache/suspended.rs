//! Files that are suspended, each because of a stranger.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use seawall_cache::shared::Identity;

/// A foreign open is not yet visible in `/proc` when it is allowed.
const GRACE: Duration = Duration::from_secs(1);

/// These files, by slot.
#[derive(Default)]
pub(super) struct Suspended(HashMap<u32, Stranger>);

struct Stranger {
    pid: u32,
    /// Not to be served again before.
    until: Instant,
    /// What the file was before the stranger could write it; `None` if that is not known.
    before: Option<Identity>,
}

impl Stranger {
    fn is_due(&self) -> bool {
        self.until <= Instant::now()
    }
}

impl Suspended {
    /// The stranger `pid` has the file open, or is about to. Of several the first knows what the file was `before`.
    pub fn note(&mut self, slot: u32, pid: u32, before: Option<Identity>) {
        let until = Instant::now() + GRACE;
        let stranger = self.0.entry(slot).or_insert(Stranger { pid, until, before });
        (stranger.pid, stranger.until) = (pid, until);
    }

    /// The slot is another file's, or nobody's; or the file is served again.
    pub fn forget(&mut self, slot: u32) {
        self.0.remove(&slot);
    }

    /// Slots whose strangers may have gone, and the stranger that was seen last.
    pub fn due(&self) -> Vec<(u32, u32)> {
        self.0.iter().filter(|(_, s)| s.is_due()).map(|(slot, s)| (*slot, s.pid)).collect()
    }

    /// False if another stranger came since, or the slot is not suspended.
    pub fn is_due(&self, slot: u32) -> bool {
        self.0.get(&slot).is_some_and(Stranger::is_due)
    }

    /// It stays suspended a while longer.
    pub fn wait_on(&mut self, slot: u32) {
        self.0.entry(slot).and_modify(|stranger| stranger.until = Instant::now() + GRACE);
    }

    /// True if the file is known to be `now` what it was before the stranger came.
    pub fn is_as_before(&self, slot: u32, now: Option<Identity>) -> bool {
        now.is_some() && self.0.get(&slot).is_some_and(|stranger| stranger.before == now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64) -> Identity {
        Identity { fs: [7; 16], inode: 3, generation: 1, size, mtime_ns: 5, ctime_ns: 6 }
    }

    #[test]
    fn of_several_strangers_the_first_knows_what_the_file_was() {
        let mut suspended = Suspended::default();
        suspended.note(4, 100, Some(file(8192)));
        suspended.note(4, 101, Some(file(0)));
        assert!(suspended.is_as_before(4, Some(file(8192))));
        assert!(!suspended.is_as_before(4, Some(file(0))) && !suspended.is_as_before(4, None));
        assert!(!suspended.is_due(4) && suspended.due().is_empty(), "the open may not be seen yet");
        suspended.forget(4);
        assert!(!suspended.is_as_before(4, Some(file(8192))) && !suspended.is_due(4));
    }

    #[test]
    fn a_file_of_which_nothing_was_known_is_never_as_before() {
        let mut suspended = Suspended::default();
        suspended.note(4, 100, None);
        assert!(!suspended.is_as_before(4, None) && !suspended.is_as_before(4, Some(file(0))));
    }
}
