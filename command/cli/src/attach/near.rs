//! `attach --recovery`: the server's settings in a file beside its own, and a unit that asks PostgreSQL for checkpoints.
//!
//! ```text
//! SERVICE.service ─ Wants ─▶ seawall-pace-SERVICE.service ─ BindsTo, After ─▶ SERVICE.service
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_wire::shm::Preset;

use super::choice::Near;
use super::drop_in::Attached;
use super::how::Attach;
use super::known::Service;
use super::machine::Machine;
use super::steps::{Step, without_unit};
use super::unit::{made, pacer, short_name};
use crate::recovery::{Recovery, Setting};
use crate::time;

/// What is wanted, now or before.
///
/// # Errors
/// If it was asked for and cannot be.
pub fn find(
    machine: &Machine,
    how: &Attach,
    service: &Service,
    before: Option<&Attached>,
) -> Result<Option<Near>> {
    let wanted = match &how.recovery {
        _ if how.no_recovery => return Ok(None),
        None => return Ok(before.and_then(|before| before.near.clone())),
        Some(wanted) => wanted,
    };
    Recovery::of(service.preset, Some(&service.data), wanted.1)?;
    Ok(Some(Near {
        time: wanted.0.clone(),
        file: file(machine, service)?,
        user: (service.preset == Preset::Postgres).then(|| service.user(machine)),
    }))
}

/// Where the server reads settings of others.
fn file(machine: &Machine, service: &Service) -> Result<PathBuf> {
    let dir = match (service.preset, &service.environment) {
        (Preset::Postgres, Some(environment)) => {
            let etc = environment.parent().unwrap_or(Path::new("/"));
            let text = machine.read(etc.join("postgresql.conf"))?.unwrap_or_default();
            let reads = |line: &str| line.trim_start().starts_with("include_dir") && line.contains("conf.d");
            text.lines().any(reads).then(|| etc.join("conf.d"))
        }
        (Preset::Mariadb, _) => {
            let known = ["/etc/mysql/mariadb.conf.d", "/etc/my.cnf.d"].map(PathBuf::from);
            known.into_iter().find(|dir| machine.at(dir).is_dir())
        }
        _ => None,
    };
    let end = if service.preset == Preset::Mariadb { "cnf" } else { "conf" };
    match dir {
        // It comes last, and so counts.
        Some(dir) => Ok(dir.join(format!("zz-seawall-recovery.{end}"))),
        None => bail!(
            "--recovery: this server reads no directory of settings (PostgreSQL: include_dir = 'conf.d'; MariaDB: \
             mariadb.conf.d or my.cnf.d): set by hand what `seawall tune {} --recovery` says",
            service.preset.name()
        ),
    }
}

/// The files: settings, and the unit.
///
/// # Errors
/// If the goal cannot be had any more.
pub fn files(wanted: &Attached) -> Result<Vec<(PathBuf, String)>> {
    let Some(near) = &wanted.near else { return Ok(Vec::new()) };
    let preset = Preset::from_name(&wanted.preset).unwrap_or(Preset::Postgres);
    let goal = time::goal(&near.time).map_err(anyhow::Error::msg)?;
    let settings = Recovery::of(preset, Some(&wanted.data), goal)?.settings();
    let mut files = vec![(near.file.clone(), settings_file(preset, wanted, &settings))];
    files.extend(near.user.as_ref().map(|user| (made(&pacer(&wanted.unit)), unit(wanted, near, user))));
    Ok(files)
}

fn settings_file(preset: Preset, wanted: &Attached, settings: &[Setting]) -> String {
    let service = short_name(&wanted.unit);
    let mut text =
        format!("# Written by `seawall attach --recovery`, removed by `seawall detach {service}`.\n");
    if preset == Preset::Mariadb {
        text += "[mariadbd]\n";
    }
    for Setting { name, value, .. } in settings {
        text += &match preset {
            Preset::Mariadb => format!("{name} = {value}\n"),
            _ => format!("{name} = '{value}'\n"),
        };
    }
    text
}

fn unit(wanted: &Attached, near: &Near, user: &str) -> String {
    let (unit, service) = (&wanted.unit, short_name(&wanted.unit));
    let (program, data, time) = (wanted.program.display(), wanted.data.display(), &near.time);
    format!(
        "# Written by `seawall attach`, removed by `seawall detach {service}`. Do not edit it: attach again.\n\
         [Unit]\nDescription=Checkpoints of {service}, near enough for a recovery within {time}\n\
         BindsTo={unit}\nAfter={unit}\n\n\
         [Service]\nUser={user}\n\
         ExecStart={program} service pace --data {data} --recovery {time}\n\
         Restart=on-failure\nRestartSec=10s\nNoNewPrivileges=yes\n"
    )
}

/// What ends and removes what a service has, and is not wanted any more.
pub fn remove(machine: &Machine, attached: &Attached, wanted: Option<&Near>) -> Vec<Step<'static>> {
    let Some(near) = &attached.near else { return Vec::new() };
    let paced = |near: &Near| near.user.is_some();
    let mut steps = Vec::new();
    if paced(near) && !wanted.is_some_and(paced) {
        steps.extend(without_unit(machine, pacer(&attached.unit)));
    }
    if wanted.is_none_or(|wanted| wanted.file != near.file) && machine.at(&near.file).exists() {
        steps.push(Step::Remove(near.file.clone()));
    }
    steps
}
