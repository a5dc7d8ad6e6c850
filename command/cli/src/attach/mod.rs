//! `seawall attach`, `seawall detach`: Seawall permanently under a service of systemd.
//!
//! ```text
//! find the unit ─ which database, where is its data, whose ─ which pool, of the same owner
//!   ─ drop-ins (and the environment file, where a starter clears the environment) ─ systemd reads them
//! ```
//!
//! In: a service's name. Out: files below /etc, nothing else: neither is the database touched, nor a daemon
//! started; the next start of the service does both. Everything that can be wrong is found before the first
//! file is written. Repeating it changes nothing.

mod attached;
mod cached;
mod choice;
mod detach;
mod drop_in;
mod environment;
mod follow;
mod hooks;
mod how;
mod known;
pub(crate) mod machine;
mod near;
mod pools;
mod steps;
mod tell;
#[cfg(test)]
mod tests;
pub(crate) mod unit;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::place;
use seawall_wire::shm::Policy;

use crate::run::{database, preload};
use drop_in::{Attached, check_plain};
use known::{Given, Service};
use machine::Machine;
use steps::Step;
use unit::{Unit, short_name};

pub use attached::attached;
pub use detach::{Detach, detach};
pub use hooks::{Hook, hook, tell as tell_service};
pub use how::Attach;

/// Attaches.
pub fn attach(how: &Attach) -> Result<()> {
    let machine = Machine::new(how.root.as_deref());
    if !how.dry_run {
        machine.check_may_change()?;
    }
    let unit = Unit::find(&machine, &how.service)?;
    let given = Given { preset: how.preset.as_deref(), data: how.data.as_deref() };
    let service = known::service(&machine, &unit, &given)?;
    let before = Attached::load(&machine, &unit.name)?;
    let place = pools::place(&machine, how, &service, before.as_ref())?;
    let cache = cached::find(&machine, how, &service, &place, before.as_ref())?;
    let policy = how.policy.clone().or_else(|| before.as_ref().map(|before| before.policy.clone()));
    let policy = policy.and_then(|name| Policy::from_name(&name)).unwrap_or_default();
    database::check_preload(service.preset)?;
    database::check_policy(service.preset, policy)?;
    let follower = follow::find(&machine, how, &service, before.as_ref())?;
    let near = near::find(&machine, how, &service, before.as_ref())?;
    let area = pools::area(&machine, how, &place)?;
    let has_keepers = pools::has_keepers(&machine, how, &place)?;
    let planned = plan(&machine, &unit, &service, place.path.clone())?;
    let wanted =
        Attached { policy: policy.name().into(), area, has_keepers, cache, follower, near, ..planned };
    wanted.area.as_deref().map_or(Ok(()), check_plain)?;
    check_change(&machine, before.as_ref(), &wanted)?;
    cached::check_others(&machine, &wanted)?;
    follow::check(&machine, &wanted)?;
    let steps = to_do(&machine, how, &service, place, before.as_ref(), &wanted)?;
    if !how.dry_run {
        for step in &steps {
            step.take(&machine)?;
        }
    }
    tell::done(how, &machine, &wanted, &steps)?;
    tell::of_cache(&machine, before.as_ref(), &wanted);
    follow::tell(&machine, before.as_ref(), &wanted);
    if before.is_some_and(|before| before.protects_pages() && !wanted.protects_pages()) {
        errln!("seawall: {}", drop_in::TORN_AGAIN);
    }
    Ok(())
}

/// Where Seawall is installed on that machine.
fn installed(machine: &Machine) -> Result<(PathBuf, PathBuf)> {
    if machine.is_live() {
        let program = std::env::current_exe().context("cannot find this program")?;
        return Ok((std::fs::canonicalize(&program).unwrap_or(program), preload::find()?));
    }
    let places = ["/usr", "/usr/local"].map(|prefix| {
        let prefix = Path::new(prefix);
        (prefix.join("bin/seawall"), prefix.join("lib/seawall").join(seawall_daemon::process::PRELOAD_NAME))
    });
    let found = places.into_iter().find(|(a, b)| machine.at(a).exists() && machine.at(b).exists());
    found.context("Seawall is not installed in that root: install its package there first")
}

fn plan(machine: &Machine, unit: &Unit, service: &Service, pool: PathBuf) -> Result<Attached> {
    let (program, library) = installed(machine)?;
    let template = machine::UNIT_DIRS.iter().any(|dir| machine.at(dir).join("seawalld@.service").exists());
    if !template {
        bail!("systemd has no seawalld@.service: install Seawall's package, or run `make install`");
    }
    for path in [&pool, &service.data, &program, &library] {
        check_plain(path)?;
    }
    for private in ["/home", "/root", "/tmp", "/var/tmp"] {
        if machine.is_live() && library.starts_with(private) {
            bail!(
                "the preload library {} lies below {private}, which services may not see: install Seawall, for \
                 example in /usr/local",
                library.display()
            );
        }
    }
    let others = match &service.environment {
        Some(file) => environment::get(&machine.read(file)?.unwrap_or_default(), "LD_PRELOAD"),
        None => unit.variable("LD_PRELOAD"),
    };
    let preload = preload::join(&library, others.as_deref().map(std::ffi::OsStr::new));
    let families = unit.all("RestrictAddressFamilies").join(" ");
    let unix = families.is_empty() || families.starts_with('~') || families.contains("AF_UNIX");
    Ok(Attached {
        unit: unit.name.clone(),
        socket: place::of_service(&pool, service.uid).socket,
        pool,
        preset: service.preset.name().into(),
        policy: Policy::default().name().into(),
        data: service.data.clone(),
        program,
        preload: preload.to_string_lossy().into_owned(),
        environment: service.environment.clone(),
        needs_unix_sockets: !unix,
        area: None,
        has_keepers: false,
        cache: None,
        follower: None,
        near: None,
    })
}

/// Another pool, or other data, is another log: the present one must be closed first.
fn check_change(machine: &Machine, before: Option<&Attached>, wanted: &Attached) -> Result<()> {
    let Some(before) = before.filter(|b| b.pool != wanted.pool || b.data != wanted.data) else {
        return Ok(());
    };
    let service = short_name(&wanted.unit);
    let stop =
        if machine.is_running(&wanted.unit) { format!("systemctl stop {service}; ") } else { String::new() };
    bail!(
        "{service} is attached to the pool {} with the data {}: `{stop}seawall detach {service}` first",
        before.pool.display(),
        before.data.display()
    )
}

/// All that is to be done; nothing if everything is as it shall be.
fn to_do<'a>(
    machine: &Machine,
    how: &'a Attach,
    service: &'a Service,
    place: pools::Place,
    before: Option<&Attached>,
    wanted: &Attached,
) -> Result<Vec<Step<'a>>> {
    let mut steps = Vec::new();
    steps.extend(pools::make(machine, how, service, place).map(Step::MakePool));
    steps.extend(cached::directory_to_make(machine, wanted).map(|dir| Step::MakeDirectory(dir, service.uid)));
    for (path, text) in files(machine, wanted)? {
        if machine.read(&path)?.as_ref() != Some(&text) {
            steps.push(Step::Write(path, text));
        }
    }
    if let Some(before) = before.filter(|_| wanted.follower.is_none()) {
        steps.extend(follow::remove(machine, before));
    }
    steps.extend(before.into_iter().flat_map(|before| near::remove(machine, before, wanted.near.as_ref())));
    if machine.is_live() && !steps.is_empty() {
        steps.push(Step::Reload);
    }
    Ok(steps)
}

/// The files of an attached service, and their texts.
fn files(machine: &Machine, wanted: &Attached) -> Result<Vec<(PathBuf, String)>> {
    let mut files = vec![wanted.daemon_drop_in()];
    if let Some(file) = &wanted.environment {
        let text = environment::with(&machine.read(file)?.unwrap_or_default(), &wanted.variables());
        files.push((file.clone(), text));
    }
    files.extend(near::files(wanted)?);
    files.extend(follow::render(wanted).map(|text| (follow::path(wanted), text)));
    // Last: it is what says that the service is attached.
    files.push((unit::drop_in(&wanted.unit), wanted.render()));
    Ok(files)
}
