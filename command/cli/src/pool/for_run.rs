//! The pool to run on: the one that is named, or a default one. On persistent memory, and in RAM, that is the user's; where
//! there is no persistent memory it is a log on the disk, beside the data.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use seawall_core::pool::{self, PoolError};
use seawall_daemon::kept;
use seawall_media::dax_mounts;

use super::find::{emulated_default, existing, is_mine, is_served, on_mount};
use super::on_device::make_block;
use super::wanted::Wanted;
use crate::commands::inspect;
use crate::{beside, size, user};

const CHOICES: &str = "there is no place here for a log that survives a power cut, so nothing was started.

Seawall keeps commits where they survive a power cut. The choices:

  Persistent memory (Optane, NVDIMM, CXL): mount it with DAX and let Seawall find it
      mount -o dax=always /dev/pmem0 /mnt/pmem
  A pool at a place of your choice on such a mount
      seawall init /mnt/pmem/seawall.pool --size 1G
      seawall run --pool /mnt/pmem/seawall.pool -- COMMAND...
  A disk: commits of the same moment share one write to it; survives power loss if the disk honours flush
      seawall run --block /srv/fast/seawall.log -- COMMAND...
  Trying it out, tests, measurements: a pool in RAM, which survives a crash of the database,
  but NOT a crash or power cut of this machine
      seawall run --emulated -- COMMAND...";

/// The pool to run on; a default one is made on demand. `data` is the directory of the database, a real path.
///
/// # Errors
/// If there is none and none may be made.
pub fn for_run(wanted: &Wanted, data: &Path) -> Result<PathBuf> {
    wanted.keepers.check()?;
    let path = match wanted.named() {
        Some(path) => {
            if !path.exists() && wanted.may_make() {
                make(path, wanted)?;
            }
            wanted.check(path)?;
            path.to_owned()
        }
        None if wanted.emulated => default_at(&emulated_default(), wanted)?,
        None => persistent(wanted, data)?,
    };
    wanted.spill.check(&path)?;
    remake_if_it_has_another_size(&path, wanted)?;
    existing(Some(&path))
}

/// `--size` is for a new pool. One that was made with another size, and that nobody can miss, is made anew: a log that
/// does not fit into memory would be refused for ever, whatever size is asked for.
fn remake_if_it_has_another_size(path: &Path, wanted: &Wanted) -> Result<()> {
    let Some(size) = wanted.size() else { return Ok(()) };
    let is_journal = pool::block::is_journal(path)?;
    let has = match pool::block::sizes(path)? {
        Some(sizes) => sizes.image,
        None if let Some(image) = kept::size(path)? => image,
        None => std::fs::metadata(path).with_context(|| path.display().to_string())?.len(),
    };
    if has == size {
        return Ok(());
    }
    let is_plain = !pool::block::is_device(path) && wanted.spill().is_none() && wanted.mirror().is_none();
    let is_ours = wanted.pool.is_none() && is_plain && pool::block::mirror_of(path).ok().flatten().is_none();
    let is_missed = || {
        is_served(path) || inspect::look(path).map_or(true, |found| found.live > 0 || !found.files.is_empty())
    };
    if !is_ours || is_missed() {
        errln!("seawall: {} already has {}: --size is only for a new log", path.display(), size::human(has));
        return Ok(());
    }
    errln!(
        "seawall: {} is empty: making it again, with {} instead of {}",
        path.display(),
        size::human(size),
        size::human(has)
    );
    match is_journal {
        true => make_block(path, Some(size), true, None)?,
        false => pool::create_with_area(path, size, wanted.emulated, true, None)?,
    }
    Ok(())
}

/// The default pool on the first DAX mount that has one or takes one; without any such mount the one beside the data.
fn persistent(wanted: &Wanted, data: &Path) -> Result<PathBuf> {
    let mounts = dax_mounts();
    if mounts.is_empty() {
        return beside_data(wanted, data).map_err(|e| anyhow!("{CHOICES}\n\nBeside the data: {e:#}"));
    }
    if let Some(pool) = mounts.iter().map(|m| on_mount(m)).find(|pool| is_mine(pool)) {
        return Ok(pool);
    }
    let mut reasons = String::new();
    for mount in mounts {
        match default_at(&on_mount(&mount), wanted) {
            Ok(pool) => return Ok(pool),
            Err(e) => reasons += &format!("\n\nOn the DAX mount {}: {e:#}", mount.display()),
        }
    }
    bail!("{CHOICES}{reasons}")
}

/// The log beside the data.
fn beside_data(wanted: &Wanted, data: &Path) -> Result<PathBuf> {
    let path = beside::place(data, Path::to_owned)?;
    if wanted.spill().is_some() {
        bail!("a log on a disk has no spill area (--spill): it is as large as it needs to be, see --size");
    }
    if !path.exists() {
        errln!(
            "seawall: there is no persistent memory here: making a log on the disk, {} (--pool or --block name another \
             place)",
            path.display()
        );
        made(&path, wanted, || make_block(&path, wanted.block_size(&path), false, None))?;
    }
    if !is_mine(&path) {
        bail!("{} is not a file of yours", path.display());
    }
    if !pool::block::is_journal(&path)? {
        return Err(PoolError::NotALog(path).into());
    }
    beside::note(&path);
    Ok(path)
}

fn default_at(path: &Path, wanted: &Wanted) -> Result<PathBuf> {
    if !path.exists() {
        make(path, wanted)?;
    }
    if !is_mine(path) {
        bail!("{} is not a file of yours: remove it, or name another pool with --pool", path.display());
    }
    Ok(path.to_owned())
}

fn make(path: &Path, wanted: &Wanted) -> Result<()> {
    match wanted.has_keepers() {
        true => wanted.make(path),
        false => made(path, wanted, || wanted.make_here(path)),
    }
}

/// Where the database's user may not write, root does it for them.
fn made(path: &Path, wanted: &Wanted, make: impl Fn() -> Result<(), PoolError>) -> Result<()> {
    let is_one_file = wanted.spill().is_none() && wanted.mirror().is_none();
    match make() {
        Err(e) if e.is_denied() && is_one_file => {
            user::make_as_root(path, || or_exists(make())).unwrap_or_else(|| Err(e.into()))
        }
        made => or_exists(made),
    }
}

fn or_exists(made: Result<(), PoolError>) -> Result<()> {
    match made {
        // Another `run` was quicker.
        Err(PoolError::Exists(_)) => Ok(()),
        made => made.map_err(Into::into),
    }
}
