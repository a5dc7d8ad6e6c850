//! Room for a spill area: a file that does not exist yet, or a device that holds nothing.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use super::block::device::is_device;
use super::block::make::{empty_device, unnamed};
use super::error::PoolError;
use super::file;
use crate::spill::Plan;

/// The path that shows whether it is a disk.
pub(super) fn lies_on(path: &Path) -> &Path {
    if is_device(path) { path } else { file::directory(path) }
}

/// A file without a name, or the device, with this process as its only user.
pub(super) fn room(plan: &Plan, force: bool) -> Result<File, PoolError> {
    if is_device(&plan.path) {
        return empty_device(&plan.path, plan.bytes, force);
    }
    unnamed(&plan.path, plan.bytes).map_err(of_the_area)
}

/// Gives a new file its name.
pub(super) fn give_name(file: &File, plan: &Plan) -> Result<(), PoolError> {
    if is_device(&plan.path) {
        return Ok(());
    }
    file::give_name(file, &plan.path).map_err(of_the_area)
}

/// Keeps the error from sounding as if the pool itself were there.
fn of_the_area(error: PoolError) -> PoolError {
    match error {
        PoolError::Exists(path) => PoolError::SpillPath { path, error: ErrorKind::AlreadyExists.into() },
        error => error,
    }
}
