//! A log with keepers of its own, for as long as something is measured on it.

use anyhow::Result;

use crate::keepers::{Keepers, Shape};
use crate::lab::Lab;
use crate::pool::Pool;

/// Does something with a log that new keepers of this shape keep.
pub fn with_keepers<R>(
    lab: &mut Lab,
    shape: Shape,
    bytes: u64,
    what: impl FnOnce(&Lab, &mut Keepers) -> Result<R>,
) -> Result<R> {
    let mut keepers = Keepers::start(lab, shape)?;
    let addresses: Vec<_> = keepers.addresses().collect();
    let dir = lab.work.data("kept-log");
    lab.identity.create_dir(&dir)?;
    let path = dir.join("kept.log");
    let pool = Pool::on_keepers(&lab.tools, &lab.identity, bytes, path, (&addresses, shape.acks))?;
    lab.with_pool(pool, |lab| what(lab, &mut keepers))
}
