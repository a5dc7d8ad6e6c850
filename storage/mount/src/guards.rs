//! Names stand still while they are used: a guard that goes up gives a file another name.
//!
//! A registration may raise a guard, which renames what it protects in the backing directory. An operation on such a
//! name first asks where the file is, and then acts on it: should the guard go up between the two, it would act on
//! the guard. So an operation on a name that a guard may take shares this lock, and a registration has it alone.
//! Other names never wait.
//!
//! Order of locks: this one, then a node's class, then its opens.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use seawall_core::stand_in;
use seawall_core::stand_in::OWN_SUFFIX;
use seawall_media::locks;

/// The lock.
#[derive(Default)]
pub struct Guards(RwLock<()>);

/// Names stand still, as long as this lives. `None` for names that no guard takes.
pub struct Still<'g>(#[allow(dead_code)] Option<RwLockReadGuard<'g, ()>>);

impl Guards {
    /// The names stand still from now on, unless that had to be waited for.
    pub fn try_still(&self, names: &[&OsStr]) -> Option<Still<'_>> {
        if !concerns(names) {
            return Some(Still(None));
        }
        locks::try_read(&self.0).map(|held| Still(Some(held)))
    }

    /// The names stand still from now on.
    pub fn still(&self, names: &[&OsStr]) -> Still<'_> {
        Still(concerns(names).then(|| locks::read(&self.0)))
    }

    /// No operation on such a name is under way, or begins, as long as the result lives.
    pub fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        locks::write(&self.0)
    }
}

/// No names at all stand for all of a directory.
fn concerns(names: &[&OsStr]) -> bool {
    names.is_empty() || names.iter().any(|name| may_be_taken(name.as_bytes()))
}

fn may_be_taken(name: &[u8]) -> bool {
    name.ends_with(OWN_SUFFIX) || stand_in::may_stand_at(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_guard_may_take_wait() {
        let guards = Guards::default();
        let names = |name: &'static str| [OsStr::new(name)];
        let alone = guards.alone();
        for name in ["a.db-journal", "backup_label", "CURRENT", "a.db-journal.seawall"] {
            assert!(guards.try_still(&names(name)).is_none(), "{name}");
        }
        assert!(guards.try_still(&[]).is_none(), "a directory's listing");
        assert!(guards.try_still(&names("a.db-wal")).is_some());
        drop(alone);
        assert!(guards.try_still(&names("backup_label")).is_some());
    }
}
