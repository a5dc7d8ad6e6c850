//! Which pool a service gets: the named one, or the default one that `seawall run` would have; made if that was asked
//! for.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use seawall_core::pool::block;
use seawall_daemon::kept;
use seawall_media::dax_mounts;

use super::drop_in::Attached;
use super::how::Attach;
use super::known::Service;
use super::machine::Machine;
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
            "there is no pool {0}: add --size (for example --size 1G) to make it, for {1}",
            place.path.display(),
            crate::user::name(service.uid)
        );
    }
    place.path = real_path_of_new(machine, &place.path)?;
    check_second(machine, how, service, &place)?;
    Ok(place)
}

/// The file beside the pool that holds a part of the log too: its second copy, or the area behind it.
fn second(how: &Attach) -> Option<&Path> {
    how.wanted.mirror().or(how.wanted.spill())
}

/// That of a pool that is to be made is made with it, as a file, by the path that it has on this machine.
fn check_second(machine: &Machine, how: &Attach, service: &Service, place: &Place) -> Result<()> {
    let Some(second) = second(how) else { return Ok(()) };
    if place.on_disk {
        bail!("a log on a disk has no spill area (--spill): it is as large as it needs to be, see --size");
    }
    let (path, owner) = (place.path.display(), crate::user::name(service.uid));
    let (what, init) = match how.wanted.mirror() {
        Some(_) => ("the mirrored log", format!("--block {path} --mirror {}", second.display())),
        None => ("the pool with its spill area", format!("{path} --size … --spill {}", second.display())),
    };
    let by_hand = |why| format!("{why}: make {what} first, as {owner}: `seawall init {init}`");
    if !machine.is_live() {
        bail!(by_hand("a log made from here cannot hold the paths of the image's machine"));
    }
    if block::is_device(second) {
        bail!(by_hand(
            "the database's user must own the device after every start of the machine (a udev rule)"
        ));
    }
    Ok(())
}

/// Where the area behind a service's pool is, or is to be.
///
/// # Errors
/// If the pool cannot be read.
pub fn area(machine: &Machine, how: &Attach, place: &Place) -> Result<Option<PathBuf>> {
    let at = machine.at(&place.path);
    if at.exists() {
        return Ok(kept::open_read_only(&at)?.area.map(|area| area.path().to_owned()));
    }
    Ok(how.wanted.spill().map(std::path::absolute).transpose()?)
}

/// Whether a service's pool is a log that keepers on other hosts keep, or is to be.
///
/// # Errors
/// If the pool cannot be read.
pub fn has_keepers(machine: &Machine, how: &Attach, place: &Place) -> Result<bool> {
    let at = machine.at(&place.path);
    if at.exists() { Ok(kept::keepers(&at)?.is_some()) } else { Ok(how.wanted.has_keepers()) }
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
        crate::user::name(self.service.uid)
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
        if let Some(second) = second(how) {
            give(second, second, service)?;
        }
        check(machine, path, how, service, None)
    }
}

/// The path that a file which is not there would have.
fn real_path_of_new(machine: &Machine, path: &Path) -> Result<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("{} cannot be the path of a pool", path.display())
    };
    let dir = machine.real(dir).with_context(|| format!("cannot find the directory {}", dir.display()))?;
    Ok(dir.join(name))
}

/// `seawall-UID.pool` of the database's user on persistent memory, or a log on the disk beside the data: where `seawall
/// run` would have it. Nobody knows here which persistent memory the machine of an image has.
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
        "no pool is named, there is no persistent memory mounted with DAX here, and Seawall cannot make a \
         log beside the data: {why:#}. Name a place with --block (a file on a disk) or --pool, or try \
         Seawall with --emulated: in RAM, which survives a crash of the database, but NOT a crash or power \
         cut of this machine"
    )
}

/// To the database's user.
fn give(at: &Path, path: &Path, service: &Service) -> Result<()> {
    let owner = crate::user::name(service.uid);
    lchown(at, Some(service.uid), None)
        .with_context(|| format!("cannot give {} to {owner}", path.display()))?;
    errln!("seawall: made {} for {owner}", path.display());
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
        let wanted = crate::user::name(service.uid);
        bail!(
            "the pool {0} belongs to {1}, the data to {wanted}, and a daemon serves only processes of the \
             pool's owner: take another pool, or `chown {wanted} {0}` if nothing of {1} uses it",
            path.display(),
            crate::user::name(owner)
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
