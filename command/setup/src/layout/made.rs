//! The step that makes one of several, and what takes it back.

use super::guard;
use super::notes::{Member, Set};
use super::wish::By;
use crate::emptied::emptied;
use crate::plan::{Act, Check, Step};

/// All its disks hold nothing.
pub fn empty(set: &Set) -> impl Iterator<Item = Check> {
    set.members.iter().map(|member| Check::Empty { device: member.device.clone() })
}

/// It: only disks that still are its members are emptied.
pub fn made(set: &Set, by: By, title: String, act: Act) -> Step {
    let mut step = Step::new(title, act);
    step.needs.extend(empty(set));
    undone(step, set, by)
}

/// What takes it back, whatever disks it has by now.
pub fn undone(step: Step, set: &Set, by: By) -> Step {
    let free = set.members.iter().map(|member| guard::marked("--setrw", &member.device));
    let stopped = (by == By::Md).then(|| Act::run(["mdadm", "--stop", &format!("/dev/md/{}", set.name)]));
    let emptied = set.members.iter().map(|member| emptied(&member.device.to_string_lossy()));
    let mut step = step.undo(Act::All(free.chain(stopped).chain(emptied).collect()));
    let ours = |member: &Member| Check::Ours { device: member.device.clone(), uuid: set.uuid.clone() };
    step.undo_needs = set.members.iter().map(ours).collect();
    step
}
