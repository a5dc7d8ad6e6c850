//! Finds PostgreSQL's directories that appear while the mount serves: initdb in an empty volume.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use seawall_daemon::control::{Added, Control};
use seawall_media::locks::lock;
use seawall_wire::message::Kind;
use seawall_wire::shm::{Policy, Preset};

use super::{Mount, syncfs};
use crate::run::database;

/// What is looked for, and what was found.
pub struct Finder {
    pool: PathBuf,
    backing: PathBuf,
    policy: Option<Policy>,
    added: Mutex<Vec<PathBuf>>,
}

impl Finder {
    /// For a mount of `backing`.
    pub fn new(how: &Mount, pool: &Path, backing: &Path) -> Self {
        let wanted = how.preset.iter().any(|name| name == Preset::Postgres.name());
        let policy = wanted.then(|| Policy::from_name(&how.policy).unwrap_or_default());
        Self { pool: pool.into(), backing: backing.into(), policy, added: Mutex::default() }
    }

    /// True if the file lies below a root now. The pool remembers the root for the next daemon.
    pub fn find(&self, path: &Path) -> bool {
        let Some(policy) = self.policy else { return false };
        let mut above = path.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.backing));
        let is_data = |dir: &&Path| dir.join("PG_VERSION").exists() && dir.join("global").is_dir();
        let Some(data) = above.find(is_data) else { return false };
        if policy == Policy::Tail && path.parent() != Some(&data.join("pg_wal")) {
            return false;
        }
        let mut added = lock(&self.added);
        if added.iter().any(|known| known == data) {
            return true;
        }
        if let Err(e) = syncfs::check(data) {
            errln!("seawall: {e:#}");
        }
        let root = database::root(Preset::Postgres, policy, data);
        let control = Control::connect(&self.pool).ok().flatten();
        let told = root
            .ok()
            .zip(control)
            .is_some_and(|(root, control)| control.request::<Added>(Kind::AddRoot, &root).is_ok());
        if told {
            added.push(data.into());
        }
        told
    }
}
