//! Carrying a plan out, and taking it back.

use super::record;
use super::steps::{Plan, State, Step};
use crate::error::Error;
use crate::host::Host;

/// Carries a plan out. `say` hears of each step before it is begun.
///
/// Everything that the whole plan needs is looked at first: if anything does not hold, nothing is changed. The record of
/// each step is on disk before its change is.
///
/// # Errors
/// A refusal, or the step that failed: those before it stay done until the plan is undone.
pub fn carry_out(plan: &mut Plan, host: &dyn Host, say: impl FnMut(usize, &Step)) -> Result<(), Error> {
    check(plan, host)?;
    record::is_free(host, &plan.name)?;
    each_step(plan, host, say, |plan| record::save(host, plan))
}

/// Everything that the whole plan needs holds.
///
/// # Errors
/// What does not.
pub(crate) fn check(plan: &Plan, host: &dyn Host) -> Result<(), Error> {
    plan.needs.iter().try_for_each(|check| check.look(host))
}

/// Carries out [checked](check) changes of something that was set up, which keeps its own record.
///
/// # Errors
/// As [`carry_out`].
pub(crate) fn change(plan: &mut Plan, host: &dyn Host, say: impl FnMut(usize, &Step)) -> Result<(), Error> {
    each_step(plan, host, say, |_| Ok(()))
}

fn each_step(
    plan: &mut Plan,
    host: &dyn Host,
    mut say: impl FnMut(usize, &Step),
    keep: impl Fn(&Plan) -> Result<(), Error>,
) -> Result<(), Error> {
    for number in 0..plan.steps.len() {
        say(number, &plan.steps[number]);
        plan.steps[number].needs.iter().try_for_each(|check| check.look(host))?;
        plan.steps[number].state = State::Begun;
        keep(plan)?;
        let step = &plan.steps[number];
        let failed = |e: Error| Error::Step { step: step.title.clone(), why: e.to_string() };
        step.act.carry_out(host).map_err(failed)?;
        plan.steps[number].state = State::Done;
        keep(plan)?;
    }
    Ok(())
}

/// Takes back what was begun of a plan, the last step first, and forgets it.
///
/// # Errors
/// What does not allow it: then nothing was taken back. Or the step that cannot be: it and those before it are still there,
/// and `undo` may be tried again.
pub fn undo(plan: &mut Plan, host: &dyn Host, mut say: impl FnMut(usize, &Step)) -> Result<(), Error> {
    let of = |state: State| plan.steps.iter().filter(move |step| step.state == state);
    let needs = of(State::Done).chain(of(State::Begun)).flat_map(|step| &step.undo_needs);
    needs.chain(of(State::Done).flat_map(|step| &step.undo_if)).try_for_each(|check| check.look(host))?;
    for number in (0..plan.steps.len()).rev() {
        take_back(&plan.steps[number], host, || say(number, &plan.steps[number]))?;
        plan.steps[number].state = State::Planned;
        record::save(host, plan)?;
    }
    record::forget(host, &plan.name)
}

/// Of a step that was not seen to its end there may be nothing to take back, or only a part.
fn take_back(step: &Step, host: &dyn Host, say: impl FnOnce()) -> Result<(), Error> {
    let Some(act) = step.undo.as_ref().filter(|_| step.state != State::Planned) else { return Ok(()) };
    let is_sure = step.state == State::Done;
    if !is_sure && step.undo_if.as_ref().is_some_and(|check| check.look(host).is_err()) {
        return Ok(());
    }
    say();
    let undone = act.carry_out(host);
    if is_sure {
        undone.map_err(|e| Error::Step { step: step.title.clone(), why: e.to_string() })
    } else {
        Ok(())
    }
}
