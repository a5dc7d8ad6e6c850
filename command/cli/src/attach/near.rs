//! `attach --recovery`: the server's settings in a file beside its own, and a unit that asks PostgreSQL for checkpoints.
//!
//! ```text
//! SERVICE.service ─ Wants ─▶ seawall-pace-SERVICE.service ─ BindsTo, After ─▶ SERVICE.service
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use seawall_media::durable;
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

/// How the file of settings begins.
const WRITTEN: &str = "# Written by `seawall attach --recovery`";

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

/// A server was started, and what that showed counts from its next start on: its settings are written anew, if they are ours.
///
/// # Errors
/// The file's, or if the goal cannot be had any more.
pub fn learn(file: &Path, preset: Preset, data: &Path, goal: Duration) -> Result<()> {
    if Recovery::of(preset, Some(data), goal)?.learn_from_start().is_none() {
        return Ok(());
    }
    let settings = Recovery::of(preset, Some(data), goal)?.settings();
    let before = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(head) = before.lines().next().filter(|head| head.starts_with(WRITTEN)) else { return Ok(()) };
    let now = format!("{head}\n{}", lines(preset, &settings));
    if now == before {
        return Ok(());
    }
    // As it was: the server reads it.
    let mode = fs::metadata(file)?.permissions();
    durable::replace(file, &file.with_extension("new"), now.as_bytes(), |new| new.set_permissions(mode))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn settings_file(preset: Preset, wanted: &Attached, settings: &[Setting]) -> String {
    let service = short_name(&wanted.unit);
    format!("{WRITTEN}, removed by `seawall detach {service}`.\n{}", lines(preset, settings))
}

fn lines(preset: Preset, settings: &[Setting]) -> String {
    let mut text = String::new();
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

/// The text of the unit that paces its checkpoints.
pub fn unit(wanted: &Attached, near: &Near, user: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Crashed;

    #[test]
    fn settings_follow_what_a_start_showed_if_they_are_ours() {
        const GOAL: Duration = Duration::from_secs(1);
        for (head, is_ours) in [(WRITTEN, true), ("# by hand", false)] {
            let data = Crashed::new();
            let (place, file) = (data.0.path(), data.0.path().join("zz-seawall-recovery.conf"));
            let before = format!("{head}, removed by hand.\nmax_wal_size = '32MB'\n");
            fs::write(&file, &before).expect("written");
            let learn = || learn(&file, Preset::Postgres, place, GOAL).expect("learned");
            learn();
            assert_eq!(fs::read_to_string(&file).expect("read"), before, "no start was noted");
            data.start();
            learn();
            let after = fs::read_to_string(&file).expect("read");
            assert_eq!(after != before, is_ours, "{after}");
            assert!(after.starts_with(head) && after.contains("\nmax_wal_size = '"), "{after}");
            let settings = data.recovery().settings();
            let is_now = settings.iter().all(|Setting { value, .. }| after.contains(&value.to_string()));
            assert!(is_now || !is_ours, "{after}");
        }
    }
}
