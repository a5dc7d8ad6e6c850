//! The plan for a new layout.

use std::path::PathBuf;

use seawall_doctor::machine::Machine;

use super::notes::{Member, Notes, Set, shared};
use super::wish::{By, Wish};
use super::{btrfs, figure, groups, guard, md};
use crate::error::Error;
use crate::host::Host;
use crate::mounted::{self, Wanted};
use crate::plan::{Check, Of, Plan, record};
use crate::uuid::uuid;

/// Draws the plan.
///
/// # Errors
/// What was asked for is not possible with these disks, and why.
pub fn plan(host: &dyn Host, machine: &Machine, wish: &Wish) -> Result<Plan, Error> {
    let names = Names::of(wish)?;
    let copies = wish.redundancy.copies();
    if !wish.unit.is_power_of_two() || !(64 << 10..=64 << 20).contains(&wish.unit) {
        return Err(Error::refused("--unit takes a power of two from 64K to 64M"));
    }
    let mut plan = Plan::new(Of::Layout, &wish.name);
    let apart = !wish.redo.is_empty();
    plan.about.push(figure::of(&wish.measured, apart));
    let mut sets = vec![set(host, machine, wish, &names.data, &wish.disks, false)?];
    if apart {
        sets.push(set(host, machine, wish, &names.redo, &wish.redo, true)?);
    }
    for set in &sets {
        plan.needs.push(Check::MountPoint { directory: set.mount.clone() });
        plan.about.push(describe(set, copies));
        steps(host, &mut plan, wish, set)?;
    }
    plan.about.extend(shared(&sets));
    let members: Vec<Member> = sets.iter().flat_map(|set| set.members.iter().cloned()).collect();
    plan.needs.push(Check::program("blockdev", "util-linux"));
    plan.steps.push(guard::step(&members));
    guard::unit(host, &mut plan);
    plan.next.push(format!("seawall layout status {}", wish.name));
    plan.notes = Notes { by: wish.by, copies, unit: wish.unit, sets }.value()?;
    Ok(plan)
}

struct Names {
    data: String,
    redo: String,
}

impl Names {
    /// `-redo` is put behind one, and both are labels.
    fn of(wish: &Wish) -> Result<Self, Error> {
        record::check_name(&wish.name)?;
        let redo = format!("{}-redo", wish.name);
        if !wish.redo.is_empty() {
            record::check_name(&redo)
                .map_err(|_| Error::refused("with --redo a name has at most 7 characters"))?;
        }
        Ok(Self { data: wish.name.clone(), redo })
    }
}

fn set(
    host: &dyn Host,
    machine: &Machine,
    wish: &Wish,
    name: &str,
    disks: &[(PathBuf, Option<String>)],
    redo: bool,
) -> Result<Set, Error> {
    let grouped = groups::grouped(host, machine, disks)?;
    let ordered = match wish.by {
        By::Md => groups::ordered(grouped, wish.redundancy.copies())?,
        By::Btrfs => btrfs::enough(grouped, wish.redundancy.copies())?,
    };
    let beside =
        || wish.redo_mount.clone().unwrap_or_else(|| PathBuf::from(format!("{}-redo", wish.mount.display())));
    Ok(Set {
        name: name.to_owned(),
        redo,
        uuid: uuid(),
        members: ordered,
        mount: if redo { beside() } else { wish.mount.clone() },
        file_system: wish.file_system,
    })
}

fn describe(set: &Set, copies: usize) -> String {
    let member = |member: &Member| format!("{} ({})", member.device.display(), member.group);
    let sets: Vec<String> = set
        .members
        .chunks(copies)
        .map(|chunk| chunk.iter().map(member).collect::<Vec<_>>().join(" = "))
        .collect();
    let what = if set.redo { "the redo log" } else { "the data" };
    format!("{what}: {} copies; striped over: {}", copies, sets.join(" | "))
}

fn steps(host: &dyn Host, plan: &mut Plan, wish: &Wish, set: &Set) -> Result<(), Error> {
    let (kind, uuid) = match wish.by {
        By::Md => (wish.file_system.name(), md::steps(host, plan, wish, set)),
        By::Btrfs => {
            btrfs::steps(plan, wish, set)?;
            ("btrfs", set.uuid.clone())
        }
    };
    let wanted = Wanted {
        name: &set.name,
        point: &set.mount,
        uuid: &uuid,
        kind,
        options: "noatime",
        fstab: wish.fstab,
        names: Vec::new(),
    };
    plan.steps.extend(mounted::steps(host.root(), &wanted, wish.owner.as_ref()));
    Ok(())
}
