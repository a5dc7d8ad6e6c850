//! What commands have in common that change the machine by a plan: it is shown, carried out with --yes, listed, undone.

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::unistd::geteuid;
use seawall_setup::plan::{Of, Plan, State, Step, carry_out, record, undo as take_back};
use seawall_setup::{Host, plan};
use serde::Serialize;

use crate::show;

/// How far to go.
#[derive(Args)]
pub struct Go {
    /// Do it. Without this the plan is only shown
    #[arg(long)]
    pub yes: bool,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Lists what was set up.
#[derive(Args)]
pub struct List {
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Undoes something.
#[derive(Args)]
pub struct Undo {
    /// Its name, as `list` shows it
    name: String,
    #[command(flatten)]
    go: Go,
}

/// A plan as JSON.
#[derive(Serialize)]
struct Shown<'p> {
    version: u32,
    name: &'p str,
    of: Of,
    about: &'p [String],
    steps: Vec<ShownStep<'p>>,
    next: &'p [String],
}

#[derive(Serialize)]
struct ShownStep<'p> {
    title: &'p str,
    commands: Vec<String>,
    undo: Vec<String>,
    state: State,
}

/// Shows a plan, or carries it out.
///
/// # Errors
/// What does not allow it, or the step that failed.
pub fn go(host: &dyn Host, mut plan: Plan, go: &Go) -> Result<()> {
    if !go.yes {
        return shown(&plan, go.json);
    }
    must_be_root()?;
    let (count, command) = (plan.steps.len(), plan.of.command());
    let name = plan.name.clone();
    plan.about.iter().for_each(|line| errln!("{line}"));
    carry_out(&mut plan, host, |number, step| progress(number, count, step)).with_context(|| {
        let begun = record::load(host, &name).is_ok();
        if begun {
            format!("the plan is only partly carried out (`seawall {command} undo {name} --yes` undoes that)")
        } else {
            "nothing was changed".to_owned()
        }
    })?;
    if go.json {
        return shown(&plan, true);
    }
    outln!("{name} is set up. To undo it: seawall {command} undo {name} --yes");
    plan.next.iter().for_each(|line| outln!("  {line}"));
    Ok(())
}

/// Shows a plan.
///
/// # Errors
/// It cannot be written as JSON.
pub fn shown(plan: &Plan, json: bool) -> Result<()> {
    if json {
        let steps = plan.steps.iter().map(|step| ShownStep {
            title: &step.title,
            commands: step.act.lines(),
            undo: step.undo.as_ref().map(plan::Act::lines).unwrap_or_default(),
            state: step.state,
        });
        let Plan { version, name, of, about, next, .. } = plan;
        return show::json(&Shown { version: *version, name, of: *of, about, steps: steps.collect(), next });
    }
    out!("{}", plan.text());
    outln!();
    outln!(
        "Nothing was changed. The same command with --yes does this, after checking again that nothing is in \
         use."
    );
    Ok(())
}

/// Says which step is begun.
pub fn progress(number: usize, count: usize, step: &Step) {
    errln!("{}/{count}  {}", number + 1, step.title);
}

/// Lists what was set up.
///
/// # Errors
/// A record cannot be read.
pub fn list(host: &dyn Host, how: &List, of: Of) -> Result<()> {
    let plans = record::all(host, of)?;
    if how.json {
        return show::json(&plans);
    }
    for plan in &plans {
        let begun = plan.steps.iter().filter(|step| step.state == State::Done).count();
        let unfinished = if begun < plan.steps.len() { ", not finished" } else { "" };
        outln!("{}  {begun} of {} steps{unfinished}", plan.name, plan.steps.len());
        plan.steps
            .iter()
            .filter(|step| step.state != State::Planned)
            .for_each(|step| outln!("      {}", step.title));
    }
    if plans.is_empty() {
        outln!("Nothing was set up by seawall {}{}.", of.command(), as_root());
    }
    Ok(())
}

/// Shows how something is taken back, or does it.
///
/// # Errors
/// What does not allow it, or the step that failed.
pub fn undo(host: &dyn Host, how: &Undo, of: Of) -> Result<()> {
    take_back_named(host, &how.name, &how.go, of)
}

/// The same by name.
///
/// # Errors
/// As [`undo`].
pub fn take_back_named(host: &dyn Host, name: &str, go: &Go, of: Of) -> Result<()> {
    let mut plan = record::load_of(host, name, of)?;
    if !go.yes {
        let begun = |step: &&Step| step.state != State::Planned;
        for step in plan.steps.iter().rev().filter(begun) {
            let Some(act) = &step.undo else { continue };
            outln!("{}; to undo it:", step.title);
            act.lines().iter().for_each(|line| outln!("      {line}"));
        }
        outln!("Nothing was changed. The same command with --yes does this.");
        return Ok(());
    }
    must_be_root()?;
    take_back(&mut plan, host, |_, step| errln!("undone: {}", step.title))?;
    outln!("{name} is gone.");
    Ok(())
}

pub fn must_be_root() -> Result<()> {
    if !geteuid().is_root() {
        bail!(
            "this changes the machine, so it needs root: sudo seawall …. Without --yes any user can see the \
             plan"
        );
    }
    Ok(())
}

/// What a user who sees nothing should know.
pub fn as_root() -> &'static str {
    if geteuid().is_root() { "" } else { " that you may see (root sees more)" }
}
