//! What others may know of a service that is attached.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::drop_in::Attached;
use super::hooks;
use super::machine::Machine;
use super::unit::Unit;

/// The pool of an attached service.
///
/// # Errors
/// If it is not attached.
pub fn attached(service: &str) -> Result<(PathBuf, serde_json::Value)> {
    let machine = Machine::new(None);
    let unit = Unit::find(&machine, service)?;
    let Some(found) = Attached::load(&machine, &unit.name)? else {
        bail!("{service} is not attached: `seawall attach {service}`, or name a pool with --pool");
    };
    let facts = hooks::facts(&machine, &found);
    Ok((found.pool, facts))
}
