//! Room for a spill area: a file that does not exist yet, or a device that holds nothing.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::Path;

use seawall_media::block::size_of;

use super::{PoolError, block, create, io};
use crate::spill::Plan;

/// What tells whether it is a disk.
pub(super) fn lies_on(path: &Path) -> &Path {
    if block::is_device(path) { path } else { create::directory(path) }
}

/// A file without a name, or the device, whose only user this is.
pub(super) fn room(plan: &Plan, force: bool) -> Result<File, PoolError> {
    if block::is_device(&plan.path) { on_device(plan, force) } else { in_file(plan) }
}

/// Gives a new file its name.
pub(super) fn give_name(file: &File, plan: &Plan) -> Result<(), PoolError> {
    if block::is_device(&plan.path) {
        return Ok(());
    }
    create::give_name(file, &plan.path).map_err(|e| match e {
        PoolError::Exists(path) => is_there(&path),
        e => e,
    })
}

fn is_there(area: &Path) -> PoolError {
    PoolError::SpillPath { path: area.into(), error: ErrorKind::AlreadyExists.into() }
}

/// Written from end to end: later no write may have to change the file's extents.
fn in_file(plan: &Plan) -> Result<File, PoolError> {
    let path = &plan.path;
    if path.exists() {
        return Err(is_there(path));
    }
    let file = create::unnamed(path)?;
    block::take_room(&file, plan.bytes).map_err(|error| PoolError::NoRoom {
        path: create::directory(path).into(),
        bytes: plan.bytes,
        error,
    })?;
    create::fill(&file, plan.bytes).map_err(io(path, "filling"))?;
    Ok(file)
}

fn on_device(plan: &Plan, force: bool) -> Result<File, PoolError> {
    let path = &plan.path;
    let device = block::open_locked(path)?;
    let len = size_of(&device).map_err(io(path, "asking for the size of"))?;
    if len < plan.bytes {
        let error = Error::other(format!("it has {} MiB", len >> 20));
        return Err(PoolError::NoRoom { path: path.clone(), bytes: plan.bytes, error });
    }
    match block::holds(&device).map_err(io(path, "reading"))? {
        Some(by) if !force => Err(PoolError::UsedDevice { path: path.clone(), by }),
        _ => Ok(device),
    }
}
