//! A disk less, while the database runs.

use std::path::Path;

use super::change::{Change, chosen};
use super::guard;
use super::notes::{Member, Notes};
use super::wish::By;
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Act, Plan, Step};

/// A disk less: what is on it goes to the others.
///
/// # Errors
/// It cannot, and why.
pub fn drop(host: &dyn Host, recorded: &Plan, device: &Path, redo: bool) -> Result<Change, Error> {
    let notes = Notes::of(recorded)?;
    let (at, set) = chosen(&notes, redo)?;
    if notes.by == By::Md {
        return Err(Error::refused(
            "the file system of a layout by md cannot become smaller while it is mounted: replace the disk \
             (seawall layout replace), or use --by btrfs for disks that come and go",
        ));
    }
    let identity = disk::identity(host, &disk::name(host, device)?);
    let left: Vec<Member> =
        set.members.iter().filter(|member| member.identity != identity).cloned().collect();
    if left.len() == set.members.len() {
        return Err(Error::refused(format!("{} is not one of its disks", device.display())));
    }
    if left.len() < notes.copies.max(2) {
        return Err(Error::refused(format!("{} disks are too few for {} copies", left.len(), notes.copies)));
    }
    let mut change = Change::new(recorded, &notes, &set.members, &left, at)?;
    let (gone, point) = (device.to_string_lossy(), set.mount.to_string_lossy());
    let removed = Act::run(["btrfs", "device", "remove", &gone, &point]);
    let free = Act::All(vec![removed, guard::marked("--setrw", device)]);
    change.plan.steps.push(Step::new("its data goes to the other disks, and the disk is free", free));
    Ok(change)
}
