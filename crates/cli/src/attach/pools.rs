//! Which pool a service gets: the named one, or its user's default one; made if that was asked for.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_media::dax_mounts;

use super::drop_in::Attached;
use super::known::Service;
use super::machine::Machine;
use super::{Attach, owner_name};
use crate::commands::inspect;

/// Finds or makes the pool; returns its real path.
///
/// # Errors
/// If there is none, or the service may not use it.
pub fn find(
    machine: &Machine,
    how: &Attach,
    service: &Service,
    before: Option<&Attached>,
) -> Result<PathBuf> {
    let path = match (how.wanted.named(), before) {
        (Some(path), _) => std::path::absolute(path)?,
        // Attaching again changes nothing that was not asked for.
        (None, Some(before)) => before.pool.clone(),
        (None, None) => default(machine, how, service)?,
    };
    if !machine.at(&path).exists() {
        let wanted = how.wanted.may_make() || (how.wanted.named().is_none() && before.is_none());
        if !wanted {
            bail!(
                "there is no pool {0}: add --size (for example --size 1G) and it is made, for {1}",
                path.display(),
                owner_name(service.uid)
            );
        }
        if how.dry_run {
            return Ok(path);
        }
        make(machine, &path, how, service)?;
    }
    let path = machine.real(&path)?;
    check(machine, &path, how, service, before)?;
    Ok(path)
}

/// `seawall-UID.pool` of the database's user, where `seawall run` would have it.
fn default(machine: &Machine, how: &Attach, service: &Service) -> Result<PathBuf> {
    let name = format!("seawall-{}.pool", service.uid);
    if how.wanted.emulated {
        return Ok(Path::new("/dev/shm").join(name));
    }
    let mounts = if machine.is_live() { dax_mounts() } else { Vec::new() };
    let present = mounts.iter().map(|mount| mount.join(&name)).find(|path| path.exists());
    present.or_else(|| mounts.first().map(|mount| mount.join(&name))).context(
        "which pool? There is no persistent memory mounted with DAX here. Name a pool with --pool (and --size, to \
         have it made), or try Seawall with --emulated: in RAM, which survives a crash of the database, but NOT a \
         crash or power cut of this machine",
    )
}

fn make(machine: &Machine, path: &Path, how: &Attach, service: &Service) -> Result<()> {
    let at = machine.at(path);
    how.wanted.make(&at)?;
    lchown(&at, Some(service.uid), None)
        .with_context(|| format!("giving {} to {}", path.display(), owner_name(service.uid)))?;
    eprintln!("seawall: made the pool {} for {}", path.display(), owner_name(service.uid));
    Ok(())
}

/// Is it a pool, the database's user's, and as strong as was asked for?
fn check(
    machine: &Machine,
    path: &Path,
    how: &Attach,
    service: &Service,
    before: Option<&Attached>,
) -> Result<()> {
    let at = machine.at(path);
    how.wanted.check(&at)?;
    let found = inspect::look(&at)?;
    let owner = std::fs::metadata(&at)?.uid();
    if owner != service.uid {
        let wanted = owner_name(service.uid);
        bail!(
            "the pool {0} belongs to {1}, the data to {wanted}, and only the owner's processes are served: take \
             another pool, or `chown {wanted} {0}` if nothing of {1} uses it",
            path.display(),
            owner_name(owner)
        );
    }
    // It was asked for by name when it was attached.
    let again = before.is_some_and(|before| before.pool == path);
    if found.emulated && !how.wanted.emulated && !again {
        bail!(
            "the pool {} is in RAM: it survives a crash of the database, but NOT a crash or power cut of this \
             machine. If that is what you want, add --emulated",
            path.display()
        );
    }
    Ok(())
}
