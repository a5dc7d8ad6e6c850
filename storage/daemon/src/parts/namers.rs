//! Who named a directory: a `seawall run`, a `seawall mount`, the start of an attached service.
//!
//! The pool remembers every directory it ever had; managed are those that a living process named. A process that is
//! gone may have left others behind (`pg_ctl start`, a service's start), so what it named stays as long as a process
//! lives that may use the log and was not started by somebody who named its own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use seawall_core::table::RootEntry;
use seawall_media::locks::lock;
use seawall_wire::shm::{Policy, Preset};

use crate::process;

/// One process, and what it named.
struct Namer {
    pid: u32,
    /// Nanoseconds since boot: when it named it.
    at: u64,
    what: What,
}

/// A database. The tablespaces of one are named with it.
type What = (Preset, Policy, PathBuf);

/// The processes that named something, as far as they live, and what.
#[derive(Default)]
pub(crate) struct Namers(Mutex<Vec<Namer>>);

impl Namers {
    /// Process `pid` has named it. 0, a process that cannot be seen from here, counts as one that lives.
    pub fn add(&self, root: &RootEntry, pid: u32) {
        let (what, at) = (what(root), process::now_ns());
        let mut all = lock(&self.0);
        all.retain(|namer| namer.lives() && (namer.pid, &namer.what) != (pid, &what));
        all.push(Namer { pid, at, what });
    }

    /// Those that live and named it.
    pub fn of(&self, root: &RootEntry) -> Vec<u32> {
        let what = what(root);
        let all = lock(&self.0);
        all.iter().filter(|namer| namer.what == what && namer.lives()).map(|namer| namer.pid).collect()
    }

    /// Those that live, and whoever they started.
    pub fn with_descendants(&self) -> BTreeSet<u32> {
        let living: BTreeSet<u32> =
            lock(&self.0).iter().filter(|namer| namer.lives()).map(|namer| namer.pid).collect();
        living.into_iter().flat_map(process::tree).collect()
    }
}

impl Namer {
    fn lives(&self) -> bool {
        self.pid == 0 || process::is_same(self.pid, self.at)
    }
}

fn what(root: &RootEntry) -> What {
    (root.preset, root.policy, root.data.clone())
}
