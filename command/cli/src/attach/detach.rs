//! `seawall detach`: a service goes back to its own ways. Only when nothing of its data is left in the log.

use std::path::PathBuf;

use anyhow::{Result, bail};
use seawall_daemon::control::{Control, Stop, Stopped};
use seawall_wire::message::Kind;
use serde_json::json;

use super::cached;
use super::drop_in::{self, Attached};
use super::environment;
use super::follow;
use super::hooks;
use super::machine::Machine;
use super::near;
use super::steps::{self, Step};
use super::unit::{self, Unit, full_name, short_name};
use crate::commands::{inspect, recover};
use crate::show;

/// Undo `attach`: drain, check that nothing is left, remove what was written
#[derive(clap::Args)]
pub struct Detach {
    /// The service
    service: String,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Work on the files of an image below this directory, and do not call systemd
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Detaches.
pub fn detach(how: &Detach) -> Result<()> {
    let machine = Machine::new(how.root.as_deref());
    if !how.dry_run {
        machine.check_may_change()?;
    }
    // The service itself may have been removed meanwhile; its drop-in is what counts.
    let unit = Unit::find(&machine, &how.service).map(|unit| unit.name);
    let unit = unit.or_else(|_| full_name(&how.service))?;
    let service = short_name(&unit);
    let Some(attached) = Attached::load(&machine, &unit)? else {
        if how.json {
            return show::json(&json!({ "unit": unit, "detached": false, "removed": [] }));
        }
        outln!("{service} is not attached; nothing was changed");
        return Ok(());
    };
    if machine.is_running(&unit) && !hooks::is_bare(&machine, &unit) {
        bail!(
            "{service} is running: its commits go through the log. `systemctl stop {service}`, then detach"
        );
    }
    close_log(&machine, &attached, how.dry_run)?;
    if machine.is_live() && !how.dry_run && is_last(&machine, &attached) {
        // Its daemon, if it runs, has closed the log, and enters the pool again if it is ever used again.
        seawall_daemon::boot::leave(&attached.pool);
    }
    let mut steps = steps(&machine, &attached)?;
    if !how.dry_run {
        steps = taken(&machine, steps)?;
    }
    tell(how, &attached, &steps)
}

/// What was done by these steps, or would be.
fn tell(how: &Detach, attached: &Attached, steps: &[Step<'_>]) -> Result<()> {
    if how.json {
        let mut all = steps::json(steps);
        all["unit"] = json!(attached.unit);
        all["detached"] = json!(!how.dry_run);
        return show::json(&all);
    }
    if how.dry_run {
        steps.iter().for_each(|step| outln!("would {}", step.words()));
    } else {
        steps.iter().filter_map(Step::removed).for_each(|path| outln!("removed {}", path.display()));
    }
    let service = short_name(&attached.unit);
    let verb = if how.dry_run { "would be detached" } else { "is detached" };
    outln!(
        "{service} {verb}: nothing is left in the log, and it starts without Seawall. The pool {} stays; remove it \
         if nothing else uses it",
        attached.pool.display()
    );
    if attached.protects_pages() {
        errln!("seawall: {}", drop_in::TORN_AGAIN);
    }
    Ok(())
}

/// All that is to be done when the log is closed.
fn steps(machine: &Machine, attached: &Attached) -> Result<Vec<Step<'static>>> {
    let mut steps = Vec::new();
    if let Some(file) = &attached.environment
        && let Some(text) = machine.read(file)?
    {
        steps.push(Step::Write(file.clone(), environment::without(&text)));
    }
    steps.extend(follow::remove(machine, attached));
    steps.extend(near::remove(machine, attached, None));
    let (daemon_drop_in, _) = attached.daemon_drop_in();
    let drop_ins = [unit::drop_in(&attached.unit), daemon_drop_in];
    steps.extend(drop_ins.into_iter().filter(|path| machine.at(path).exists()).map(Step::Remove));
    if machine.is_live() {
        steps.push(Step::Reload);
        // Without any service the daemon is not needed any more; systemd may notice by itself.
        if is_last(machine, attached) && machine.is_running(&attached.daemon()) {
            steps.push(Step::Stop(attached.daemon()));
        }
    }
    steps.extend(cached::to_remove(machine, attached));
    Ok(steps)
}

/// Takes steps; those that found something to do.
fn taken(machine: &Machine, steps: Vec<Step<'static>>) -> Result<Vec<Step<'static>>> {
    let mut taken = Vec::new();
    for step in steps {
        if step.take(machine)? {
            taken.push(step);
        }
    }
    Ok(taken)
}

/// Whether no other service has this daemon.
fn is_last(machine: &Machine, attached: &Attached) -> bool {
    let (mine, _) = attached.daemon_drop_in();
    let dir = mine.parent().map(|dir| machine.at(dir)).unwrap_or_default();
    let mut entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.all(|entry| Some(entry.file_name().as_os_str()) == mine.file_name())
}

/// Makes sure that the log holds nothing the files lack, and that the guards are down.
fn close_log(machine: &Machine, attached: &Attached, dry_run: bool) -> Result<()> {
    let pool = machine.at(&attached.pool);
    let service = short_name(&attached.unit);
    if pool.exists() {
        match Control::connect(&pool)? {
            Some(control) if !dry_run => close(&control, attached)?,
            Some(_) => {}
            None => check_closed(attached, &pool)?,
        }
    }
    if !dry_run && let Some(at) = guarded(machine, attached) {
        let (pool, data) = (attached.pool.display(), attached.data.display());
        bail!(
            "{service} stays attached: the guard {} is still up, so commits may be in the log only. `seawall recover \
             --pool {pool}`, then detach. If the pool is lost for good: `seawall guard --lower {data}`",
            at.display()
        );
    }
    Ok(())
}

fn close(control: &Control, attached: &Attached) -> Result<()> {
    let request = Stop { if_idle: true, stay: true };
    let closed: Stopped = control.request(Kind::Stop, &request)?;
    if !closed.ended {
        bail!(
            "{} stays attached: processes {:?} use the pool {}. Stop them (another service on the same pool?), then \
             detach",
            short_name(&attached.unit),
            closed.users,
            attached.pool.display()
        );
    }
    Ok(())
}

fn check_closed(attached: &Attached, pool: &std::path::Path) -> Result<()> {
    let found = inspect::look(pool)?;
    if found.live > 0 || !found.damage.is_empty() {
        bail!(
            "{} stays attached: no daemon serves the pool {1}, and it holds {2} live records: `seawall recover --pool \
             {1}`, then detach",
            short_name(&attached.unit),
            attached.pool.display(),
            found.live
        );
    }
    Ok(())
}

/// A guard that is up in the service's data, whatever its preset.
fn guarded(machine: &Machine, attached: &Attached) -> Option<PathBuf> {
    recover::guards(&machine.at(&attached.data)).into_iter().map(|(at, ..)| at).next()
}
