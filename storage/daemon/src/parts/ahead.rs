//! Files to be synced before they are used, in the order in which they were asked for.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};

use seawall_media::locks::{self, lock};

/// Segments that were written first in their directory.
#[derive(Default)]
pub(crate) struct Ahead {
    first: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Default)]
struct Wanted {
    first: VecDeque<PathBuf>,
    over: bool,
}

impl Ahead {
    /// Has those that follow this one synced.
    pub fn ask(&self, first: &Path) {
        lock(&self.first).first.push_back(first.to_owned());
        self.changed.notify_all();
    }

    /// The thread ends when it has done the file that it is at.
    pub fn end(&self) {
        lock(&self.first).over = true;
        self.changed.notify_all();
    }

    /// True from [`Self::end`] on.
    pub fn is_over(&self) -> bool {
        lock(&self.first).over
    }

    /// Waits for the next one; `None` at the end.
    pub fn next(&self) -> Option<PathBuf> {
        let mut wanted = lock(&self.first);
        while wanted.first.is_empty() && !wanted.over {
            wanted = locks::wait(&self.changed, wanted);
        }
        if wanted.over { None } else { wanted.first.pop_front() }
    }
}
