//! What is remembered of a layout, and what follows from that alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::wish::By;
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::mkfs::FileSystem;
use crate::plan::{Of, Plan, record};

/// What is remembered of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// What made it.
    pub by: By,
    /// Copies.
    pub copies: usize,
    /// Bytes.
    pub unit: u64,
    /// One for everything, or one for the data and one for the redo log.
    pub sets: Vec<Set>,
}

/// Disks that became one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// `/dev/md/NAME`; the label.
    pub name: String,
    /// It holds the redo log alone.
    pub redo: bool,
    /// Of the array, or of the file system.
    pub uuid: String,
    /// Its disks, in order.
    pub members: Vec<Member>,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Its file system.
    pub file_system: FileSystem,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// As it was named.
    pub device: PathBuf,
    /// What stays the same from start to start.
    pub identity: String,
    /// What it fails together with.
    pub group: String,
}

impl Notes {
    /// What was remembered.
    ///
    /// # Errors
    /// The record is of something else.
    pub fn of(plan: &Plan) -> Result<Self, Error> {
        let wrong = |e| Error::refused(format!("cannot read the record of {}: {e}", plan.name));
        serde_json::from_value(plan.notes.clone()).map_err(wrong)
    }

    pub(crate) fn value(&self) -> Result<serde_json::Value, Error> {
        serde_json::to_value(self).map_err(|e| Error::refused(e.to_string()))
    }
}

/// What takes the log and the data at once.
pub fn shared(sets: &[Set]) -> Vec<String> {
    let [data, redo] = sets else {
        return vec![
            "redo log and data are on the same disks: a fault that takes one takes the other".into(),
        ];
    };
    let in_data = |member: &&Member| data.members.iter().any(|other| other.group == member.group);
    let both: BTreeSet<&str> =
        redo.members.iter().filter(in_data).map(|member| member.group.as_str()).collect();
    both.iter().map(|group| format!("group {group} is under both the redo log and the data")).collect()
}

/// Every layout of this machine.
///
/// # Errors
/// A record cannot be read.
pub fn all(host: &dyn Host) -> Result<Vec<Plan>, Error> {
    record::all(host, Of::Layout)
}

/// The name of a set's md device: `md127`.
pub fn md_name(host: &dyn Host, set: &Set) -> Result<String, Error> {
    disk::name(host, &Path::new("/dev/md").join(&set.name))
}
