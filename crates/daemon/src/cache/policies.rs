//! The policies of a cache: kept in a file beside its zone, so that they outlive daemon, database and zone, and applied to
//! the files that are entered.
//!
//! A file's policy follows from its path, which is looked at when it is entered, when a policy is set, and every ten
//! seconds: a file may be renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use seawall_cache::set::Policy;
use seawall_cache::shared::{Arrangement, Cache, CachedFile, Holding};
use seawall_media::locks::lock;
use serde::{Deserialize, Serialize};

use super::prewarm::Prewarm;
use super::resize::Resize;
use super::rules::{Rule, Rules};
use super::{Entered, Zone};
use crate::parts::files::path_of;
use crate::place;
use crate::state::Daemon;

/// Version of the file. One of another version is left alone.
const VERSION: u32 = 1;

/// The body of a [`Kind::Cache`](seawall_wire::message::Kind::Cache).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// What holds: [`Listed`].
    List,
    /// Something else is to hold: [`Listed`].
    Set(Wanted),
    /// A part of a file is to be brought: [`Prewarmed`](super::Prewarmed).
    Prewarm(Prewarm),
    /// It is to have another size: [`Resized`](super::Resized).
    Resize(Resize),
}

/// Rules to be taken in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// They take the place of those with the same path.
    pub rules: Vec<Rule>,
    /// All that were made for these tables go.
    pub tables: Vec<String>,
}

/// What holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// What the cache lies on, in one word: `pmem`, `block` or `emulated`.
    #[serde(default)]
    pub medium: String,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Places for blocks.
    pub blocks: u64,
    /// The most places that kept blocks can have to themselves.
    pub kept_max: u64,
    /// Directories of databases: what lies outside of them is not cached.
    pub directories: Vec<Directory>,
    /// The rules.
    pub policies: Vec<PolicyStatus>,
    /// What no rule is for.
    pub others: FilesStatus,
}

/// A directory of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Name of its preset.
    pub preset: String,
    /// The database's directory.
    #[serde(with = "seawall_core::path_text")]
    pub data: PathBuf,
}

/// A rule, and what there is of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// What there is.
    #[serde(flatten)]
    pub files: FilesStatus,
    /// False if there is no such file: that of a table which was rewritten, for example.
    pub exists: bool,
}

/// Files, and their blocks that are there.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct FilesStatus {
    /// Files that are entered.
    pub files: u32,
    /// Their blocks.
    pub blocks: u64,
    /// Of these, the ones that others do not drive out.
    pub kept: u64,
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

    /// The places are to be arranged anew: there are others.
    pub fn forget_arrangement(&self) {
        *lock(&self.arranged) = None;
    }

    /// Takes rules in, durably before anything is made of them.
    fn set(&self, wanted: Wanted) -> Result<(), String> {
        if let Some(why) = &self.broken {
            return Err(format!(
                "the policies cannot be read, and are not written over: {why}; repair or remove that file, and start the daemon anew"
            ));
        }
        let mut rules = lock(&self.rules);
        let mut new = rules.clone();
        new.set(wanted.rules, &wanted.tables);
        write(&self.path, &new).map_err(|e| format!("writing {}: {e}", self.path.display()))?;
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
    let new = place::beside(path, ".new");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    serde_json::to_writer_pretty(&mut file, &Stored { version: VERSION, policies: rules.clone() })?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Says what is wrong with the policies.
pub(super) fn tell(daemon: &Daemon, zone: &Zone) {
    if let Some(why) = &zone.policies.broken {
        daemon.log.say(format!("the block cache goes without its policies: {why}"));
    }
}

/// Every file that is entered gets the policy of its path, and every place what follows from that.
pub(super) fn apply(zone: &Zone) {
    for entered in zone.all() {
        let Some(path) = current(&entered) else { continue };
        let _alone = lock(&zone.entering);
        zone.cache.set_policy(entered.reference, zone.policies.of(&path));
    }
    let now = zone.cache.arrangement();
    // Not under the lock: who enters a file must not wait for a walk through the index.
    let before = lock(&zone.policies.arranged).replace(now.clone());
    if before.as_ref() != Some(&now) {
        zone.cache.arrange(&now);
    }
}

/// Where a file is now.
fn current(entered: &Entered) -> Option<PathBuf> {
    path_of(&entered.file).ok()
}

pub(super) fn zone(daemon: &Daemon) -> Result<&Zone, String> {
    let none = || {
        format!(
            "the daemon of {} has no block cache: end it, and start the database with `seawall run --cache SIZE`",
            daemon.pool.path.display()
        )
    };
    daemon.cache.as_ref().ok_or_else(none)
}

/// The zone, for a file of a database at this path.
pub(super) fn zone_for<'d>(daemon: &'d Daemon, path: &Path) -> Result<&'d Zone, String> {
    let zone = zone(daemon)?;
    let roots = daemon.roots.all();
    if roots.values().any(|root| path.starts_with(&root.data) || path.starts_with(&root.path)) {
        return Ok(zone);
    }
    let mut known: Vec<_> = roots.values().map(|root| root.data.display().to_string()).collect();
    known.sort();
    known.dedup();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Err(format!(
        "{} is in no directory of a database that runs with this daemon ({known}): nothing of it is ever cached",
        path.display()
    ))
}

/// Sets policies, and says what holds then.
pub(crate) fn set(daemon: &Daemon, wanted: Wanted) -> Result<Listed, String> {
    for rule in &wanted.rules {
        zone_for(daemon, &rule.path)?;
    }
    zone(daemon)?.policies.set(wanted)?;
    apply(zone(daemon)?);
    list(daemon)
}

/// What holds.
pub(crate) fn list(daemon: &Daemon) -> Result<Listed, String> {
    let zone = zone(daemon)?;
    let layout = zone.cache.layout();
    let rules = lock(&zone.policies.rules).clone();
    let status = |rule: &Rule| PolicyStatus {
        exists: rule.path.exists(),
        rule: rule.clone(),
        files: FilesStatus::default(),
    };
    let mut policies: Vec<_> = rules.all().iter().map(status).collect();
    let (mut others, holdings) = (FilesStatus::default(), zone.cache.holdings());
    for entered in zone.all() {
        let rule = current(&entered).and_then(|path| rules.find(&path));
        let files = rule.map_or(&mut others, |i| &mut policies[i].files);
        let Holding { blocks, kept } = holdings.get(&entered.reference.slot).copied().unwrap_or_default();
        (files.files, files.blocks, files.kept) = (files.files + 1, files.blocks + blocks, files.kept + kept);
    }
    Ok(Listed {
        medium: zone.medium.name().into(),
        block_bytes: layout.block_bytes,
        blocks: zone.cache.blocks(),
        kept_max: zone.cache.kept_max(),
        directories: directories(daemon),
        policies,
        others,
    })
}

fn directories(daemon: &Daemon) -> Vec<Directory> {
    let of = |root: seawall_core::table::RootEntry| Directory {
        preset: root.preset.name().into(),
        data: root.data,
    };
    let mut directories: Vec<_> = daemon.roots.all().into_values().map(of).collect();
    directories.sort_by(|a, b| a.data.cmp(&b.data));
    directories.dedup();
    directories
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
