//! More disks, while the database runs.

use std::path::PathBuf;

use seawall_doctor::machine::Machine;

use super::change::{Change, chosen, paths, with};
use super::notes::{Member, Notes, Set, md_name};
use super::power::Power;
use super::wish::By;
use super::{btrfs, groups, md};
use crate::error::Error;
use crate::host::Host;
use crate::mkfs::FileSystem;
use crate::plan::{Act, Check, Plan, Step};

/// Disks more.
///
/// # Errors
/// They do not fit.
pub fn add(
    host: &dyn Host,
    machine: &Machine,
    recorded: &Plan,
    disks: &[(PathBuf, Option<String>)],
    redo: bool,
    power: Power,
) -> Result<Change, Error> {
    let notes = Notes::of(recorded)?;
    let (at, set) = chosen(&notes, redo)?;
    let new = groups::grouped(host, machine, disks)?;
    let all = with(&set.members, &new);
    let mut change = Change::new(recorded, &notes, &all, &all, at)?;
    change.plan.needs.extend(new.iter().map(|member| Check::Empty { device: member.device.clone() }));
    match notes.by {
        By::Btrfs => {
            if !btrfs::is_apart(&Set { members: all.clone(), ..set.clone() }) {
                return Err(Error::refused("with btrfs each disk must be a group of its own"));
            }
            let point = set.mount.to_string_lossy();
            let words = ["btrfs", "device", "add"].into_iter().map(str::to_owned).chain(paths(&new));
            let added = Act::run(words.chain([point.into_owned()]));
            change.plan.steps.push(Step::new("the file system gets them too", added));
            change.plan.next.push(format!("seawall layout rebalance {} --power {}", recorded.name, power.0));
        }
        By::Md => grow(host, &mut change, &notes, set, &new, power)?,
    }
    Ok(change)
}

/// With md the new disks are one set of copies.
fn check_one_for_each_copy(copies: usize, new: &[Member]) -> Result<(), Error> {
    if copies == 1 {
        return Err(Error::refused(
            "md can add disks only to a layout with several copies: with one copy use --by btrfs, or a new \
             layout",
        ));
    }
    let apart = new.iter().enumerate().all(|(n, one)| new[..n].iter().all(|other| other.group != one.group));
    if new.len() != copies || !apart {
        return Err(Error::refused(format!(
            "md takes {copies} disks at a time, each of another group, so that copies stay apart"
        )));
    }
    Ok(())
}

/// One set of copies more: where it is put is then the same whichever of its disks md takes first.
fn grow(
    host: &dyn Host,
    change: &mut Change,
    notes: &Notes,
    set: &Set,
    new: &[Member],
    power: Power,
) -> Result<(), Error> {
    check_one_for_each_copy(notes.copies, new)?;
    let (name, shown) = (md_name(host, set)?, format!("/dev/md/{}", set.name));
    let array = md::read(host, &name);
    if array.degraded > 0 || array.action != "idle" {
        return Err(Error::refused(format!(
            "{shown} is incomplete or busy: {} (seawall layout status)",
            array.action
        )));
    }
    change.plan.steps.push(power.of_md(&name));
    change.plan.steps.push(Step::new(
        "the array gets them as spares",
        Act::run(["mdadm", &shown, "--add"].map(str::to_owned).into_iter().chain(paths(new))),
    ));
    let count = format!("--raid-devices={}", array.places.len() + new.len());
    change
        .plan
        .steps
        .push(Step::new("the array spreads over them", Act::run(["mdadm", "--grow", &shown, &count])));
    let larger = match set.file_system {
        FileSystem::Xfs => format!("xfs_growfs {}", set.mount.display()),
        FileSystem::Ext4 => format!("resize2fs {shown}"),
    };
    change.plan.next.push(format!("seawall layout status {}        # until it is done; then:", set.name));
    change.plan.next.push(larger);
    Ok(())
}
