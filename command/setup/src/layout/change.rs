//! Changes while the database runs: a disk more, a disk less, another one in the place of a lost one, and how much of the
//! disks' time that may take.
//!
//! The record names old and new disks before anything is done, and afterwards those that are left: whatever happens in
//! between, `undo` empties only disks that carry the layout's own mark.

use std::path::{Path, PathBuf};

use seawall_doctor::machine::Machine;

use super::made::undone;
use super::notes::{Member, Notes, Set, md_name};
use super::wish::By;
use super::{btrfs, groups, guard, md, status};
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::mkfs::FileSystem;
use crate::plan::{Act, Check, Of, Plan, Step, change as carry, check, record};

/// How much of the disks' time a rebuild may take, 1 to 11: as ASM counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power(u32);

impl Power {
    /// The highest: as fast as the disks are.
    pub const FULL: u32 = 11;

    /// From 1 to 11.
    ///
    /// # Errors
    /// Another number.
    pub fn new(number: u32) -> Result<Self, Error> {
        match number {
            1..=Self::FULL => Ok(Self(number)),
            _ => Err(Error::refused(
                "--power takes 1 (leaves the database alone) to 11 (as fast as the disks are)",
            )),
        }
    }

    /// KiB a second for each disk, at most: 4 MiB at 1, twice as much at each step.
    fn most(self) -> Option<u64> {
        (self.0 < Self::FULL).then(|| 4096 << (self.0 - 1))
    }

    /// The share of the time that is worked, of steps that cannot be slowed down themselves.
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::FULL)
    }

    /// What md is told. It holds to the least even while others use the disks.
    fn of_md(self, name: &str) -> Step {
        let most = self.most().map_or_else(|| "4194304".to_owned(), |most| most.to_string());
        let least = self.most().map_or(1 << 20, |most| most / 4).to_string();
        let file = |file: &str| PathBuf::from(format!("/sys/block/{name}/md/{file}"));
        let set = |path, value| Act::Set { path, value };
        let acts = vec![set(file("sync_speed_max"), most), set(file("sync_speed_min"), least)];
        Step::new(format!("power {}", self.0), Act::All(acts))
    }
}

/// A change of a layout: what is shown and done, and the record afterwards.
pub struct Change {
    /// What is done.
    pub plan: Plan,
    /// The record before, with the new disks in it.
    before: Plan,
    /// The record afterwards.
    after: Plan,
}

impl Change {
    fn new(
        recorded: &Plan,
        notes: &Notes,
        before: &[Member],
        after: &[Member],
        set: usize,
    ) -> Result<Self, Error> {
        let with = |members: &[Member]| -> Result<Plan, Error> {
            let mut notes = notes.clone();
            notes.sets[set].members = members.to_vec();
            let mut plan = recorded.clone();
            rewrite(&mut plan, &notes.sets[set], notes.by);
            plan.notes = notes.value()?;
            Ok(plan)
        };
        let (before, after) = (with(before)?, with(after)?);
        Ok(Self { plan: Plan::new(Of::Layout, &recorded.name), before, after })
    }

    /// Does it.
    ///
    /// # Errors
    /// What does not allow it, or the step that failed.
    pub fn carry_out(&mut self, host: &dyn Host, say: impl FnMut(usize, &Step)) -> Result<(), Error> {
        check(&self.plan, host)?;
        record::save(host, &self.before)?;
        carry(&mut self.plan, host, say)?;
        record::save(host, &self.after)?;
        guard::guard(host, &self.after, true).map(|_| ())
    }
}

/// What takes the layout back empties these disks.
fn rewrite(plan: &mut Plan, set: &Set, by: By) {
    let is_its = |check: &Check| matches!(check, Check::Ours { uuid, .. } if *uuid == set.uuid);
    for step in plan.steps.iter_mut().filter(|step| step.undo_needs.iter().any(is_its)) {
        *step = undone(step.clone(), set, by);
    }
}

/// The set that is meant: the data's, unless the redo log's own is named.
fn chosen(notes: &Notes, redo: bool) -> Result<(usize, &Set), Error> {
    let found = notes.sets.iter().enumerate().find(|(_, set)| set.redo == redo);
    found.ok_or_else(|| Error::refused("this layout has no disks of its own for the redo log"))
}

/// Old and new ones. What an earlier change that failed has left in the record is there once.
fn with(old: &[Member], new: &[Member]) -> Vec<Member> {
    let is_new = |member: &&Member| new.iter().any(|other| other.identity == member.identity);
    old.iter().filter(|member| !is_new(member)).chain(new).cloned().collect()
}

fn paths(members: &[Member]) -> impl Iterator<Item = String> {
    members.iter().map(|member| member.device.to_string_lossy().into_owned())
}

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

/// One set of copies more: where it is put is then the same whichever of its disks md takes first.
fn grow(
    host: &dyn Host,
    change: &mut Change,
    notes: &Notes,
    set: &Set,
    new: &[Member],
    power: Power,
) -> Result<(), Error> {
    let copies = notes.copies;
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
    let is_old = |member: &Member| {
        let now = disk::name(host, old).map(|name| disk::identity(host, &name));
        member.device == old || now.is_ok_and(|identity| identity == member.identity)
    };
    let found = notes
        .sets
        .iter()
        .enumerate()
        .find_map(|(at, set)| Some((at, set, set.members.iter().position(is_old)?)));
    let (at, set, place) =
        found.ok_or_else(|| Error::refused(format!("{} is not one of its disks", old.display())))?;
    let mut member = groups::grouped(host, machine, std::slice::from_ref(&new))?.remove(0);
    let partners = partners(host, &notes, set, &set.members[place])?;
    let is_taken = |group: &str| partners.iter().find(|partner| partner.group == group);
    if new.1.is_none() && is_taken(&member.group).is_some() {
        // Which group it is of nobody said: the one of the disk whose place it takes, if it hangs there.
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
    // What is gone has no name any more; what failed has.
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

/// How fast a rebuild that is under way goes on; with btrfs what is started here.
///
/// # Errors
/// What the kernel or btrfs said.
pub fn rebalance(
    host: &dyn Host,
    recorded: &Plan,
    power: Power,
    mut say: impl FnMut(&str),
) -> Result<(), Error> {
    let notes = Notes::of(recorded)?;
    for set in &notes.sets {
        match notes.by {
            By::Md => {
                let name = md_name(host, set)?;
                power.of_md(&name).act.carry_out(host)?;
                say(&format!("{}: {}", set.name, status::words_of(host, &name)));
            }
            By::Btrfs => in_steps(host, set, power, &mut say)?,
        }
    }
    Ok(())
}

/// btrfs knows no speed: a chunk of a GiB is moved, and then the disks are left alone for as long as the power says.
fn in_steps(host: &dyn Host, set: &Set, power: Power, say: &mut impl FnMut(&str)) -> Result<(), Error> {
    let point = set.mount.to_string_lossy().into_owned();
    // Chunks that are nearly full are as good where they are; what is spread has room afterwards.
    for filling in [10, 30, 50, 70, 90] {
        let usage = format!("-dusage={filling}");
        let words = ["btrfs", "balance", "start", &usage, "-dlimit=4", &point].map(str::to_owned);
        let begin = std::time::Instant::now();
        let said = host.run(&words, "").map_err(|why| Error::Step { step: "balance".into(), why })?;
        say(said.lines().last().unwrap_or_default());
        host.pause(begin.elapsed().mul_f64(1.0 / power.share() - 1.0));
    }
    Ok(())
}
