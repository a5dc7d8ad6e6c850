//! The policies of a cache: kept in a file beside its zone, so that they outlive daemon, database and zone.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use seawall_cache::set::Policy;
use seawall_cache::shared::{Arrangement, Cache, CachedFile};
use seawall_media::durable;
use seawall_media::locks::lock;
use serde::{Deserialize, Serialize};

use super::rules::{Rule, Rules};
use crate::log::Log;
use crate::place;

/// Version of the file. One of another version is left alone.
const VERSION: u32 = 1;

/// Rules to be taken in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// They take the place of those with the same path.
    pub rules: Vec<Rule>,
    /// All that were made for these tables go.
    pub tables: Vec<String>,
}

/// The policies, and what was made of them.
pub(super) struct Policies {
    path: PathBuf,
    rules: Mutex<Rules>,
    /// What is wrong with the file.
    broken: Option<String>,
    /// What the places were arranged for.
    arranged: Mutex<Option<Arrangement>>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    policies: Rules,
}

impl Policies {
    /// Those of the zone at this path.
    pub fn load(zone: &Path) -> Self {
        let path = beside(zone);
        let (rules, broken) = match read(&path) {
            Ok(rules) => (rules, None),
            Err(why) => (Rules::default(), Some(format!("{}: {why}", path.display()))),
        };
        Self { path, rules: Mutex::new(rules), broken, arranged: Mutex::default() }
    }

    /// The policy of the file at this real path.
    pub fn of(&self, path: &Path) -> Policy {
        lock(&self.rules).of(path)
    }

    /// A file that is about to be served has this policy. It may lose it again before anybody looks what all have.
    pub fn give(&self, cache: &Cache, file: CachedFile, policy: Policy) {
        cache.set_policy(file, policy);
        if policy != Policy::Default {
            self.forget_arrangement();
        }
    }

    /// All rules.
    pub fn rules(&self) -> Rules {
        lock(&self.rules).clone()
    }

    /// Says what is wrong with their file, if anything is.
    pub fn tell(&self, log: &Log) {
        if let Some(why) = &self.broken {
            log.say(format!("the block cache works without its policies: {why}"));
        }
    }

    /// True if the places were arranged for something else before.
    pub fn is_another_arrangement(&self, now: &Arrangement) -> bool {
        lock(&self.arranged).replace(now.clone()).as_ref() != Some(now)
    }

    /// The places are to be arranged anew: there are others.
    pub fn forget_arrangement(&self) {
        *lock(&self.arranged) = None;
    }

    /// Takes rules in, durably before anything is made of them.
    pub fn set(&self, wanted: Wanted) -> Result<(), String> {
        if let Some(why) = &self.broken {
            return Err(format!(
                "the policies cannot be read, and were not overwritten: {why}; repair or remove that file, \
                 and start the daemon again"
            ));
        }
        let mut rules = lock(&self.rules);
        let mut new = rules.clone();
        new.set(wanted.rules, &wanted.tables);
        write(&self.path, &new).map_err(|e| format!("cannot write {}: {e}", self.path.display()))?;
        *rules = new;
        Ok(())
    }
}

/// Where the policies of the zone at this path are.
pub(super) fn beside(zone: &Path) -> PathBuf {
    place::beside(zone, ".policies")
}

fn read(path: &Path) -> Result<Rules, String> {
    let text = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Rules::default()),
        text => text.map_err(|e| e.to_string())?,
    };
    let stored: Stored = serde_json::from_slice(&text).map_err(|e| format!("it makes no sense: {e}"))?;
    match stored.version {
        VERSION => Ok(stored.policies),
        other => Err(format!("it is of version {other}, and this program knows {VERSION}")),
    }
}

/// Writes the file: after a crash it is the one or the other.
fn write(path: &Path, rules: &Rules) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(&Stored { version: VERSION, policies: rules.clone() })?;
    text.push(b'\n');
    let private = Permissions::from_mode(0o600);
    durable::replace(path, &place::beside(path, ".new"), &text, |file| file.set_permissions(private))
}

#[cfg(test)]
mod tests {
    use super::super::rules::{Choice, Covers};
    use super::*;

    fn wanted(policy: Choice) -> Wanted {
        let rule = Rule { policy, path: "/pg/base".into(), covers: Covers::Tree, table: None };
        Wanted { rules: vec![rule], tables: Vec::new() }
    }

    #[test]
    fn policies_outlive_whoever_set_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let zone = dir.path().join("zone");
        Policies::load(&zone).set(wanted(Choice::Keep)).expect("written");
        let found = Policies::load(&zone);
        assert_eq!(found.of(Path::new("/pg/base/1")), Policy::Keep);
        found.set(wanted(Choice::Default)).expect("written");
        assert_eq!(Policies::load(&zone).of(Path::new("/pg/base/1")), Policy::Default);
    }

    #[test]
    fn what_cannot_be_read_is_not_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let zone = dir.path().join("zone");
        let file = dir.path().join("zone.policies");
        for text in ["", "{", r#"{"version": 2, "policies": []}"#, r#"{"policies": []}"#] {
            fs::write(&file, text).expect("written");
            let policies = Policies::load(&zone);
            assert!(policies.broken.is_some(), "{text:?}");
            let error = policies.set(wanted(Choice::Keep)).expect_err("refused");
            assert!(error.contains("zone.policies") && error.contains("remove"), "{error}");
            assert_eq!(fs::read_to_string(&file).expect("there"), text);
        }
    }
}
