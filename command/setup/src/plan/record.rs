//! What was done to this machine: one file for each plan, in [`DIRECTORY`].

use std::fs;
use std::path::{Path, PathBuf};

use super::steps::{Of, Plan};
use crate::error::Error;
use crate::file;
use crate::host::Host;

/// Where the records are.
pub const DIRECTORY: &str = "/var/lib/seawall/setup";

/// Every record of this kind, by name.
///
/// # Errors
/// One cannot be read.
pub fn all(host: &dyn Host, of: Of) -> Result<Vec<Plan>, Error> {
    let names = host.root().names(DIRECTORY);
    let plans = names.iter().filter_map(|name| name.strip_suffix(".json")).map(|name| load(host, name));
    plans.filter(|plan| plan.as_ref().map_or(true, |plan| plan.of == of)).collect()
}

/// One record.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn load(host: &dyn Host, name: &str) -> Result<Plan, Error> {
    let path = path(host, name)?;
    let text = file::text(&path)?;
    if text.is_empty() {
        return Err(Error::refused(format!("nothing called {name} was set up on this machine")));
    }
    serde_json::from_str(&text).map_err(|e| Error::refused(format!("{}: {e}", path.display())))
}

/// One record of this kind.
///
/// # Errors
/// There is none, or it is of another kind.
pub fn load_of(host: &dyn Host, name: &str, of: Of) -> Result<Plan, Error> {
    let plan = load(host, name)?;
    if plan.of == of {
        return Ok(plan);
    }
    Err(Error::refused(format!("{name} was set up by seawall {}", plan.of.command())))
}

/// Nothing of this name was set up yet.
pub(super) fn is_free(host: &dyn Host, name: &str) -> Result<(), Error> {
    let path = path(host, name)?;
    if !path.exists() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{name} is already set up ({}): choose another name (--name), or undo that one",
        path.display()
    )))
}

pub(crate) fn save(host: &dyn Host, plan: &Plan) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(plan)
        .map_err(|e| Error::refused(format!("cannot write the record of {}: {e}", plan.name)))?;
    file::replace(&path(host, &plan.name)?, &text)
}

pub(super) fn forget(host: &dyn Host, name: &str) -> Result<(), Error> {
    let path = path(host, name)?;
    fs::remove_file(&path).map_err(Error::file(&path))
}

/// A name becomes a file's, a label's and a unit's.
fn path(host: &dyn Host, name: &str) -> Result<PathBuf, Error> {
    check_name(name)?;
    Ok(host.root().host_path(&Path::new(DIRECTORY).join(format!("{name}.json"))))
}

/// What a plan may be called: letters, digits and `-`, at most 12, which is what an XFS label has room for.
///
/// # Errors
/// Another name.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=12).contains(&name.len()) && name.chars().all(is_fine) && !name.starts_with('-') {
        return Ok(());
    }
    Err(Error::refused(format!("{name:?} is not a valid name: use up to 12 small letters, digits and -")))
}
