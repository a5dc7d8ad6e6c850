//! A change while the database runs: what is done, and what is recorded of it.
//!
//! The record names old and new disks before anything is done, and afterwards those that are left: whatever happens in
//! between, `undo` empties only disks that carry the layout's own mark.

use super::guard;
use super::made::undone;
use super::notes::{Member, Notes, Set};
use super::wish::By;
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Check, Of, Plan, Step, change as carry, check, record};

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
    pub(super) fn new(
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

/// The steps that take the layout back empty these disks.
fn rewrite(plan: &mut Plan, set: &Set, by: By) {
    let is_its = |check: &Check| matches!(check, Check::Ours { uuid, .. } if *uuid == set.uuid);
    for step in plan.steps.iter_mut().filter(|step| step.undo_needs.iter().any(is_its)) {
        *step = undone(step.clone(), set, by);
    }
}

/// The set that is meant: the data's, unless the redo log's own is named.
pub(super) fn chosen(notes: &Notes, redo: bool) -> Result<(usize, &Set), Error> {
    let found = notes.sets.iter().enumerate().find(|(_, set)| set.redo == redo);
    found.ok_or_else(|| Error::refused("this layout has no disks of its own for the redo log"))
}

/// Old and new ones. A disk that an earlier, failed change left in the record is there once.
pub(super) fn with(old: &[Member], new: &[Member]) -> Vec<Member> {
    let is_new = |member: &&Member| new.iter().any(|other| other.identity == member.identity);
    old.iter().filter(|member| !is_new(member)).chain(new).cloned().collect()
}

pub(super) fn paths(members: &[Member]) -> impl Iterator<Item = String> {
    members.iter().map(|member| member.device.to_string_lossy().into_owned())
}
