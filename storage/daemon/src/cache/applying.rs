//! Policies applied to the files that are entered, and what holds then.
//!
//! A file's policy follows from its path, which is looked at when it is entered, when a policy is set, and every ten
//! seconds: a file may be renamed.

use std::path::{Path, PathBuf};

use seawall_cache::shared::Holding;
use serde::{Deserialize, Serialize};

use super::policies::Wanted;
use super::rules::Rule;
use super::zone::{Entered, Zone};
use crate::parts::files::path_of;
use crate::parts::roots::Roots;
use crate::state::Daemon;

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

/// Every file that is entered gets the policy of its path, and every place what follows from that.
pub(super) fn apply(zone: &Zone) {
    for entered in zone.all() {
        let Some(path) = current(&entered) else { continue };
        let _alone = zone.entering.take();
        zone.cache.set_policy(entered.reference, zone.policies.of(&path));
    }
    let now = zone.cache.arrangement();
    // Not under the lock: a thread that enters a file must not wait for a walk through the index.
    if zone.policies.is_another_arrangement(&now) {
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
        "{} is not in a directory of a database that runs with this daemon ({known}): nothing in it is ever \
         cached",
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
    let rules = zone.policies.rules();
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
        directories: directories(&daemon.roots),
        policies,
        others,
    })
}

fn directories(roots: &Roots) -> Vec<Directory> {
    let of = |root: seawall_core::table::RootEntry| Directory {
        preset: root.preset.name().into(),
        data: root.data,
    };
    let mut directories: Vec<_> = roots.all().into_values().map(of).collect();
    directories.sort_by(|a, b| a.data.cmp(&b.data));
    directories.dedup();
    directories
}
