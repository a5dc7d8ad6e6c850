//! The unit that follows PostgreSQL's tables: `seawall cache refresh --follow`, beside the service.
//!
//! ```text
//! SERVICE.service ─ Wants ─▶ seawall-follow-SERVICE.service ─ BindsTo, After ─▶ SERVICE.service
//! ```
//!
//! It comes and goes with the database, as the user whom its server knows. Where no table was named it asks nobody anything.

use std::path::PathBuf;

use anyhow::{Result, bail};
use seawall_wire::shm::Preset;

use super::drop_in::Attached;
use super::how::Attach;
use super::known::Service;
use super::machine::Machine;
use super::steps::{Step, without_unit};
use super::unit::{follower, made, short_name};

/// The user who follows the service's tables; `None` if nobody asked for that, now or before.
///
/// # Errors
/// If it was asked for and cannot be.
pub fn find(
    machine: &Machine,
    how: &Attach,
    service: &Service,
    before: Option<&Attached>,
) -> Result<Option<String>> {
    if how.no_cache || how.no_follow_tables {
        return Ok(None);
    }
    if !how.follow_tables {
        return Ok(before.and_then(|before| before.follower.clone()));
    }
    if service.preset != Preset::Postgres {
        bail!(
            "--follow-tables: only PostgreSQL rewrites a table into new files; those of {} keep their names",
            service.preset.name()
        );
    }
    Ok(Some(service.user(machine)))
}

/// Whether what was planned can be followed.
///
/// # Errors
/// If there is no cache, or the daemon has two servers, of which each would be asked for the other's tables.
pub fn check(machine: &Machine, wanted: &Attached) -> Result<()> {
    if wanted.follower.is_some() && wanted.cache.is_none() {
        bail!("--follow-tables is for tables in a block cache, and this service has none: add --cache SIZE");
    }
    if wanted.preset != Preset::Postgres.name() {
        return Ok(());
    }
    for other in others(machine, wanted)? {
        if other.preset == wanted.preset && (other.follower.is_some() || wanted.follower.is_some()) {
            bail!(
                "{0} is another PostgreSQL server with the pool {1}, and with two of them Seawall cannot \
                 tell whose a table is: attach one of them to another pool, or without following tables \
                 (`seawall attach SERVICE --no-follow-tables`)",
                short_name(&other.unit),
                wanted.pool.display()
            );
        }
    }
    Ok(())
}

/// Other services that are attached to the same pool.
fn others(machine: &Machine, wanted: &Attached) -> Result<Vec<Attached>> {
    let (mine, _) = wanted.daemon_drop_in();
    let dir = mine.parent().map(|dir| machine.at(dir)).unwrap_or_default();
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let names = entries.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let units = names.map(|name| format!("{name}.service")).filter(|unit| *unit != wanted.unit);
    units.filter_map(|unit| Attached::load(machine, &unit).transpose()).collect()
}

/// Where the unit is.
pub fn path(attached: &Attached) -> PathBuf {
    made(&follower(&attached.unit))
}

/// The unit's text, if there is to be one.
pub fn render(attached: &Attached) -> Option<String> {
    let user = attached.follower.as_ref()?;
    let (unit, service, daemon) = (&attached.unit, short_name(&attached.unit), attached.daemon());
    let (program, pool) = (attached.program.display(), attached.pool.display());
    Some(format!(
        "# Written by `seawall attach`, removed by `seawall detach {service}`. Do not edit it: attach again.\n\
         [Unit]\nDescription=Tables of {service} that the block cache keeps, followed through rewrites\n\
         Documentation=man:seawall-cache(1)\nBindsTo={unit}\nAfter={unit} {daemon}\n\n\
         [Service]\nUser={user}\n\
         ExecStart={program} cache refresh --follow --wait --pool {pool}\n\
         # It waits for the server and the daemon itself.\nRestart=on-failure\nRestartSec=10s\nNoNewPrivileges=yes\n"
    ))
}

/// From when on tables are followed, where that is not from the service's next start.
pub fn tell(machine: &Machine, before: Option<&Attached>, wanted: &Attached) {
    let is_new = wanted.follower.is_some() && before.is_none_or(|before| before.follower.is_none());
    if is_new && machine.is_running(&wanted.unit) {
        let service = short_name(&wanted.unit);
        errln!(
            "seawall: tables are followed from the next start of {service} on; to follow them now: \
             `systemctl start {}`",
            follower(&wanted.unit)
        );
    }
}

/// What ends and removes the unit that a service has.
pub fn remove(machine: &Machine, attached: &Attached) -> Vec<Step<'static>> {
    let unit = attached.follower.as_ref().map(|_| follower(&attached.unit));
    unit.map_or_else(Vec::new, |unit| without_unit(machine, unit))
}
