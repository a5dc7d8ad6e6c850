//! Which pool a service gets: the named one, or the default one that `seawall run` would have; made if that was asked
//! for.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use seawall_media::dax_mounts;

use super::drop_in::Attached;
use super::known::Service;
use super::machine::Machine;
use super::{Attach, owner_name};
use crate::commands::inspect;
use crate::{beside, pool};

/// Where a pool is, or is to be.
pub struct Place {
    /// Its path; of one that is there, the real one.
    pub path: PathBuf,
    /// To be made as a log on a block device, though that was not asked for by name.
    pub on_disk: bool,
}

impl Place {
    fn as_wanted(path: PathBuf) -> Self {
        Place { path, on_disk: false }
    }
}

/// Where the service's pool is, or is to be made. Makes nothing.
///
/// # Errors
/// If there is none and none may be made, or the service may not use it.
pub fn place(machine: &Machine, how: &Attach, service: &Service, before: Option<&Attached>) -> Result<Place> {
    let mut place = match (how.wanted.named(), before) {
        (Some(path), _) => Place::as_wanted(std::path::absolute(path)?),
        // Attaching again changes nothing that was not asked for.
        (None, Some(before)) => Place::as_wanted(before.pool.clone()),
        (None, None) => default(machine, how, service)?,
    };
    if machine.at(&place.path).exists() {
        place.path = machine.real(&place.path)?;
        check(machine, &place.path, how, service, before)?;
        return Ok(place);
    }
    let may_make = how.wanted.may_make() || (how.wanted.named().is_none() && before.is_none());
    if !may_make {
        bail!(
            "there is no pool {0}: add --size (for example --size 1G) and it is made, for {1}",
            place.path.display(),
            owner_name(service.uid)
        );
    }
    if how.wanted.mirror().is_some() {
        bail!(
            "{0} is not there: make the mirrored log first, as {1}: `seawall init --block {0} --mirror …`",
            place.path.display(),
            owner_name(service.uid)
        );
    }
    if how.wanted.spill().is_some() {
        bail!(
            "{0} is not there: make the pool with its spill area first, as {1}: `seawall init {0} --size … --spill …`",
            place.path.display(),
            owner_name(service.uid)
        );
    }
    place.path = real_path_of_new(machine, &place.path)?;
    Ok(place)
}

/// A pool that is to be made.
pub struct NewPool<'a> {
    place: Place,
    how: &'a Attach,
    service: &'a Service,
}

/// The pool that is to be made there; `None` if it is there.
pub fn make<'a>(
    machine: &Machine,
    how: &'a Attach,
    service: &'a Service,
    place: Place,
) -> Option<NewPool<'a>> {
    (!machine.at(&place.path).exists()).then_some(NewPool { place, how, service })
}

impl NewPool<'_> {
    /// Where it is to be.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Whose it is to be.
    pub fn owner(&self) -> String {
        owner_name(self.service.uid)
    }

    /// Makes it.
    ///
    /// # Errors
    /// If it cannot be made, or the service could not use it.
    pub fn make(&self, machine: &Machine) -> Result<()> {
        let Self { place: Place { path, on_disk }, how, service } = self;
        let at = machine.at(path);
        match on_disk {
            true => pool::make_block(&at, how.wanted.size(), false, None).map_err(|e| which(e.into()))?,
            false => how.wanted.make(&at)?,
        }
        give(&at, path, service)?;
        check(machine, path, how, service, None)
    }
}

/// The path that a file which is not there would have.
fn real_path_of_new(machine: &Machine, path: &Path) -> Result<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("{} is no path of a pool", path.display())
    };
    let dir = machine.real(dir).with_context(|| format!("looking for the directory {}", dir.display()))?;
    Ok(dir.join(name))
}

/// `seawall-UID.pool` of the database's user on persistent memory, or a log on the disk beside the data: where `seawall
/// run` would have it. What persistent memory the machine of an image has, nobody knows here.
fn default(machine: &Machine, how: &Attach, service: &Service) -> Result<Place> {
    let name = format!("seawall-{}.pool", service.uid);
    if how.wanted.emulated {
        return Ok(Place::as_wanted(Path::new("/dev/shm").join(name)));
    }
    let mounts = if machine.is_live() { dax_mounts() } else { Vec::new() };
    let present = mounts.iter().map(|mount| mount.join(&name)).find(|path| path.exists());
    if let Some(path) = present.or_else(|| mounts.first().map(|mount| mount.join(&name))) {
        return Ok(Place::as_wanted(path));
    }
    let path = beside::place(&service.data, |path| machine.at(path)).map_err(which)?;
    Ok(Place { path, on_disk: true })
}

/// Nothing was named, and there is no place for a default.
fn which(why: anyhow::Error) -> anyhow::Error {
    anyhow!(
        "which pool? There is no persistent memory mounted with DAX here, and beside the data no log can be made: \
         {why:#}. Name a place with --block (a file on a disk) or --pool, or try Seawall with --emulated: in RAM, \
         which survives a crash of the database, but NOT a crash or power cut of this machine"
    )
}

/// To the database's user.
fn give(at: &Path, path: &Path, service: &Service) -> Result<()> {
    let owner = owner_name(service.uid);
    lchown(at, Some(service.uid), None).with_context(|| format!("giving {} to {owner}", path.display()))?;
    eprintln!("seawall: made the pool {} for {owner}", path.display());
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
