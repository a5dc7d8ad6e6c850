//! Another disk in the place of one, while the database runs.

use std::path::{Path, PathBuf};

use seawall_doctor::machine::Machine;

use super::change::{Change, with};
use super::notes::{Member, Notes, Set, md_name};
use super::power::Power;
use super::wish::By;
use super::{groups, md};
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Act, Check, Plan, Step};

/// Another disk in the place of one, which may be gone already.
///
/// # Errors
/// Copies would not be apart, or one of them is not as it must be.
pub fn replace(
    host: &dyn Host,
    machine: &Machine,
    recorded: &Plan,
    old: &Path,
    new: (PathBuf, Option<String>),
    power: Power,
) -> Result<Change, Error> {
    let notes = Notes::of(recorded)?;
    let (at, place) = place_of(host, &notes, old)?;
    let set = &notes.sets[at];
    let mut member = groups::grouped(host, machine, std::slice::from_ref(&new))?.remove(0);
    let partners = partners(host, &notes, set, &set.members[place])?;
    let is_taken = |group: &str| partners.iter().find(|partner| partner.group == group);
    if new.1.is_none() && is_taken(&member.group).is_some() {
        // The user named no group: it is that of the disk whose place it takes, if it hangs there.
        member.group = set.members[place].group.clone();
    }
    if let Some(partner) = is_taken(&member.group) {
        return Err(Error::refused(format!(
            "the new disk is in group {}, and so is {}, which holds the other copy: both would fail together",
            member.group,
            partner.device.display()
        )));
    }
    let mut after = set.members.clone();
    after.retain(|other| other.identity != member.identity);
    if let Some(free) = after.iter_mut().find(|other| other.identity == set.members[place].identity) {
        *free = member.clone();
    }
    let both = with(&set.members, std::slice::from_ref(&member));
    let mut change = Change::new(recorded, &notes, &both, &after, at)?;
    change.plan.needs.push(Check::Empty { device: member.device.clone() });
    match notes.by {
        By::Md => by_md(host, &mut change, set, old, &member, power)?,
        By::Btrfs => by_btrfs(host, &mut change, set, old, &member),
    }
    change.plan.next.push(format!("seawall layout status {}", recorded.name));
    Ok(change)
}

/// Which set has this disk, and which of the set's disks it is.
fn place_of(host: &dyn Host, notes: &Notes, old: &Path) -> Result<(usize, usize), Error> {
    let is_old = |member: &Member| {
        let now = disk::name(host, old).map(|name| disk::identity(host, &name));
        member.device == old || now.is_ok_and(|identity| identity == member.identity)
    };
    let mut sets = notes.sets.iter().enumerate();
    let found = sets.find_map(|(at, set)| Some((at, set.members.iter().position(is_old)?)));
    found.ok_or_else(|| Error::refused(format!("{} is not one of its disks", old.display())))
}

/// The disks that hold the same blocks as this one, or as the place that has none: as the kernel has them now.
fn partners<'s>(
    host: &dyn Host,
    notes: &Notes,
    set: &'s Set,
    old: &Member,
) -> Result<Vec<&'s Member>, Error> {
    let others = || set.members.iter().filter(|member| member.identity != old.identity);
    if notes.by == By::Btrfs {
        return Ok(others().collect());
    }
    let array = md::read(host, &md_name(host, set)?);
    let identity =
        |place: usize| array.places.get(place)?.as_ref().map(|(name, _)| disk::identity(host, name));
    let mut places = 0..array.places.len();
    let place = places.clone().find(|place| identity(*place).as_ref() == Some(&old.identity));
    let place = place.or_else(|| places.find(|place| identity(*place).is_none()));
    let sets = groups::together(array.places.len(), array.copies).into_iter();
    let beside: Vec<String> = sets
        .filter(|set| place.is_some_and(|place| set.contains(&place)))
        .flatten()
        .filter_map(identity)
        .collect();
    Ok(others().filter(|member| beside.contains(&member.identity)).collect())
}

fn by_md(
    host: &dyn Host,
    change: &mut Change,
    set: &Set,
    old: &Path,
    new: &Member,
    power: Power,
) -> Result<(), Error> {
    let (name, shown) = (md_name(host, set)?, format!("/dev/md/{}", set.name));
    let array = md::read(host, &name);
    let (out, into) = (old.to_string_lossy(), new.device.to_string_lossy());
    let is_well = md::holds(host, &array, old).is_some_and(|state| state.contains("in_sync"));
    let steps = &mut change.plan.steps;
    steps.push(power.of_md(&name));
    if is_well {
        steps.push(Step::new("the array gets the new disk", Act::run(["mdadm", &shown, "--add", &into])));
        let replaced = Act::run(["mdadm", &shown, "--replace", &out, "--with", &into]);
        steps.push(Step::new("the old disk is copied to it, and stays in use until that is done", replaced));
        change
            .plan
            .next
            .push(format!("mdadm {shown} --remove {out} && blockdev --setrw {out}        # once it is done"));
        return Ok(());
    }
    // A disk that is gone has no name any more; one that failed has.
    let gone = Act::All(vec![
        Act::run(["mdadm", &shown, "--remove", "failed"]),
        Act::run(["mdadm", &shown, "--remove", "detached"]),
    ]);
    steps.push(Step::new("the array forgets the lost disk", gone));
    steps.push(Step::new(
        "the new disk gets the data of the others",
        Act::run(["mdadm", &shown, "--add", &into]),
    ));
    Ok(())
}

fn by_btrfs(host: &dyn Host, change: &mut Change, set: &Set, old: &Path, new: &Member) {
    let point = set.mount.to_string_lossy();
    let gone = || {
        let at = format!("/sys/fs/btrfs/{}/devinfo", set.uuid);
        let is_missing = |id: &String| host.root().text(format!("{at}/{id}/missing")).as_deref() == Some("1");
        host.root().names(&at).into_iter().find(is_missing)
    };
    // A missing disk is named by its number.
    let which = gone().unwrap_or_else(|| old.display().to_string());
    let started = Act::run(["btrfs", "replace", "start", &which, &new.device.to_string_lossy(), &point]);
    change.plan.steps.push(Step::new("the new disk gets the data of the old one", started));
    if host.root().has(old) {
        change.plan.next.push(format!("blockdev --setrw {}        # once it is done", old.display()));
    }
}
