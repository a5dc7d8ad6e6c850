//! The freeze under way, if there is one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use seawall_core::table::RootEntry;
use seawall_media::locks::lock;

/// What is frozen now, and how many freezes there were.
#[derive(Default)]
pub(crate) struct Freeze {
    /// Freezing and thawing exclude each other.
    turn: Mutex<()>,
    now: Mutex<Option<Frozen>>,
    count: AtomicU64,
}

/// One freeze.
#[derive(Clone)]
pub(crate) struct Frozen {
    id: u64,
    /// `None`: whatever the pool has.
    directory: Option<PathBuf>,
    since: Instant,
    lasts: Option<Duration>,
    writes_wait: bool,
}

impl Frozen {
    /// No other one of this daemon has this number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The directory that it is for; `None`: everything.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// True if files of this directory are frozen.
    pub fn covers(&self, root: &RootEntry) -> bool {
        let Some(dir) = &self.directory else { return true };
        root.data.starts_with(dir) || root.path.starts_with(dir)
    }

    /// True if changes of files wait for its end.
    pub fn writes_wait(&self) -> bool {
        self.writes_wait
    }

    /// True if its time is over.
    pub fn is_over(&self) -> bool {
        self.lasts.is_some_and(|lasts| self.since.elapsed() >= lasts)
    }

    /// For how long it has been, and how long it still is if it ends by itself.
    pub fn age(&self) -> (Duration, Option<Duration>) {
        let since = self.since.elapsed();
        (since, self.lasts.map(|lasts| lasts.saturating_sub(since)))
    }
}

impl Freeze {
    /// Until this is dropped nobody else freezes or thaws.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// True if files of this directory are not to be registered now. The caller has the turn of `registering`.
    pub fn covers(&self, root: &RootEntry) -> bool {
        lock(&self.now).as_ref().is_some_and(|frozen| frozen.covers(root))
    }

    /// The one under way.
    pub fn now(&self) -> Option<Frozen> {
        lock(&self.now).clone()
    }

    /// From now on nothing new comes. Returns its number.
    ///
    /// # Errors
    /// The one under way: there is only one at a time.
    pub fn begin(
        &self,
        directory: Option<PathBuf>,
        lasts: Option<Duration>,
        writes_wait: bool,
    ) -> Result<u64, Frozen> {
        let mut now = lock(&self.now);
        if let Some(frozen) = now.as_ref() {
            return Err(frozen.clone());
        }
        let id = self.count.fetch_add(1, Relaxed);
        *now = Some(Frozen { id, directory, since: Instant::now(), lasts, writes_wait });
        Ok(id)
    }

    /// It is over.
    pub fn end(&self) {
        lock(&self.now).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_freeze_at_a_time_and_each_has_a_number_of_its_own() {
        let freeze = Freeze::default();
        assert!(freeze.now().is_none());
        let first = freeze.begin(Some("/data".into()), None, false).ok().expect("begun");
        let under_way = freeze.begin(None, None, false).expect_err("frozen already");
        assert_eq!((under_way.id(), under_way.directory()), (first, Some(Path::new("/data"))));
        assert!(!under_way.is_over(), "only a thaw ends it");
        freeze.end();
        let second = freeze.begin(None, Some(Duration::ZERO), true).ok().expect("begun");
        assert_ne!(first, second);
        let now = freeze.now().expect("frozen");
        assert!(now.is_over() && now.age().1 == Some(Duration::ZERO));
    }
}
