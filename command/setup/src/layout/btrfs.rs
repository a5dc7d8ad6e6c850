//! A layout by btrfs: every chunk on different disks, so each disk is a failure group of its own.

use super::made::{empty, made};
use super::notes::{Member, Set};
use super::wish::{By, Redundancy, Wish};
use crate::error::Error;
use crate::plan::{Act, Check, Plan, Step};

/// The file system over all disks.
pub fn steps(plan: &mut Plan, wish: &Wish, set: &Set) -> Result<(), Error> {
    if wish.redundancy != Redundancy::External && !is_apart(set) {
        return Err(Error::refused(
            "btrfs chooses the disks of each chunk by their free space, and knows no groups: with --by btrfs each disk must be a \
             group of its own (or use --by md)",
        ));
    }
    plan.about.push(
        "btrfs copies on write: over time a database's pages are scattered, and each fsync costs more than \
         on md. It checks the data that it reads, and disks of any size can be added and removed while it \
         runs"
            .into(),
    );
    plan.needs.push(Check::program("mkfs.btrfs", "btrfs-progs"));
    plan.needs.extend(empty(set));
    let (data, metadata) = profiles(wish.redundancy);
    let mut words: Vec<String> = [
        "mkfs.btrfs",
        "--quiet",
        "--label",
        &set.name,
        "--uuid",
        &set.uuid,
        "--data",
        data,
        "--metadata",
        metadata,
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(set.members.iter().map(|member| member.device.to_string_lossy().into_owned()));
    let title = format!("btrfs over {} disks", set.members.len());
    plan.steps.push(made(set, By::Btrfs, title, Act::run(words)));
    plan.steps.push(Step::new("the kernel knows all of them", Act::run(["btrfs", "device", "scan"])));
    Ok(())
}

/// It puts copies wherever there is room: any number of disks will do.
pub fn enough(disks: Vec<Member>, copies: usize) -> Result<Vec<Member>, Error> {
    if disks.len() >= copies.max(2) {
        return Ok(disks);
    }
    Err(Error::refused(format!(
        "{} disks are too few for {copies} copies: at least {} are needed",
        disks.len(),
        copies.max(2)
    )))
}

/// Of the data, and of what it is found by, which has two copies in any case.
pub fn profiles(redundancy: Redundancy) -> (&'static str, &'static str) {
    match redundancy {
        Redundancy::External => ("raid0", "raid1"),
        Redundancy::Normal => ("raid1", "raid1"),
        Redundancy::High => ("raid1c3", "raid1c3"),
    }
}

/// No two disks are of one group.
pub fn is_apart(set: &Set) -> bool {
    let groups = || set.members.iter().map(|member| &member.group);
    groups().enumerate().all(|(at, group)| groups().take(at).all(|other| other != group))
}
