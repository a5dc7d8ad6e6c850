//! Which pool: the one that is named, or a default one. On persistent memory, and in RAM, that is the user's; where there
//! is no persistent memory it is a log on the disk, beside the data.

mod fit;
mod keepers;

use std::cell::Cell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use nix::unistd::geteuid;
use seawall_core::pool::{self, PoolError};
use seawall_core::spill::Plan;
use seawall_media::{Medium, dax_mounts, probe};

use seawall_daemon::control::Control;
use seawall_daemon::kept::{self, KeptError};

pub use keepers::Keepers;

use crate::{beside, size, user};

/// Size of a pool that is made on demand.
const DEFAULT_SIZE: u64 = 256 << 20;
/// The same of one on a block device: three times as much lies there, and is read at a start.
const DEFAULT_BLOCK_SIZE: u64 = 128 << 20;

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

/// Where the user's pool in RAM is.
pub fn emulated_default() -> PathBuf {
    format!("/dev/shm/seawall-{}.pool", geteuid()).into()
}

/// Where the user's pool on a DAX mount is.
fn on_mount(mount: &Path) -> PathBuf {
    mount.join(format!("seawall-{}.pool", geteuid()))
}

/// The pool to ask about, which exists: the named one, or a default one.
///
/// # Errors
/// If there is none.
pub fn existing(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return std::fs::canonicalize(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => PoolError::Missing(path.into()).into(),
            _ => anyhow!(e).context(format!("cannot find the pool {}", path.display())),
        });
    }
    let on_dax = dax_mounts().iter().map(|mount| on_mount(mount)).find(|path| is_mine(path));
    let logs: Vec<PathBuf> = beside::noted().into_iter().filter(|path| is_mine(path)).collect();
    let emulated = Some(emulated_default()).filter(|path| is_mine(path));
    let all = on_dax.iter().chain(&logs).chain(&emulated);
    // What is in use now is meant, else what is strongest.
    match all.filter(|path| is_served(path)).collect::<Vec<_>>().as_slice() {
        [] => {}
        [one] => return Ok((*one).clone()),
        many => return several(many),
    }
    match (on_dax, logs.as_slice(), emulated) {
        (Some(one), ..) | (None, [], Some(one)) => Ok(one),
        (None, [one], _) => Ok(one.clone()),
        (None, [], None) => bail!("you have no default pool{}: name one with --pool", others()),
        (None, many, _) => several(many),
    }
}

fn several<P: AsRef<Path>>(pools: &[P]) -> Result<PathBuf> {
    bail!("you have several pools: name one with --pool ({})", list(pools))
}

/// True if a daemon answers for this pool.
pub fn is_served(pool: &Path) -> bool {
    matches!(Control::connect(pool), Ok(Some(_)))
}

fn list<P: AsRef<Path>>(paths: &[P]) -> String {
    paths.iter().map(|p| p.as_ref().display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Pools of others in RAM, for the message.
fn others() -> String {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|e| e.path());
    let pools: Vec<_> = names.filter(|p| p.extension().is_some_and(|e| e == "pool")).collect();
    if pools.is_empty() { String::new() } else { format!(" (in /dev/shm there are {})", list(&pools)) }
}

fn is_mine(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.uid() == geteuid().as_raw())
}

/// The area behind a new pool.
#[derive(clap::Args)]
pub struct Spill {
    /// Add a spill area to a new pool: a new file on a fast disk, or an empty device. It takes what the pool has no
    /// room for while the data's disk is slower than the commits
    #[arg(long, value_name = "PATH")]
    spill: Option<PathBuf>,
    /// With --spill: its size; without it 16 times the pool's
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "spill")]
    spill_size: Option<u64>,
}

/// An area is that many times as large as its pool, if nothing else was said.
const SPILL_TIMES: u64 = 16;

impl Spill {
    /// The area of a pool of so many bytes.
    pub fn plan(&self, pool: u64) -> Option<Plan> {
        let bytes = self.spill_size.unwrap_or(pool.saturating_mul(SPILL_TIMES));
        Some(Plan { path: self.spill.clone()?, bytes })
    }

    /// A pool that is there must have the area that was asked for.
    fn check(&self, at: &Path) -> Result<(), KeptError> {
        let Some(wanted) = &self.spill else { return Ok(()) };
        let there = kept::open_read_only(at)?.area.map(|area| area.path().to_owned());
        let why = match there {
            Some(there) if real(&there) == real(wanted) => return Ok(()),
            Some(there) => format!("its spill area is {}", there.display()),
            None => "it already exists, without a spill area: only a new pool can get one".into(),
        };
        Err(PoolError::Spill { path: at.into(), why }.into())
    }
}

/// The pool options of a command that needs a pool.
#[derive(clap::Args)]
pub struct Wanted {
    /// The pool; without it the user's default pool on persistent memory, or a log beside the data; made on demand
    #[arg(long)]
    pool: Option<PathBuf>,
    /// Size of a pool that is made on demand
    #[arg(long, value_parser = size::parse)]
    size: Option<u64>,
    /// Allow a pool in RAM, for trying out, testing, measuring: it does not survive a crash of the machine
    #[arg(long)]
    pub emulated: bool,
    /// The log on a block device: a file on a disk, made on demand, or a device that `seawall init --block` prepared
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pool", "emulated", "spill"])]
    block: Option<PathBuf>,
    /// With --block: the log's second copy, on another device, so that the log survives the loss of one
    #[arg(long, value_name = "PATH", requires = "block")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    spill: Spill,
    #[command(flatten)]
    keepers: Keepers,
    /// Files of the database that need to be managed, as far as that is known.
    #[arg(skip)]
    files: Cell<usize>,
}

impl Wanted {
    /// The pool that was named.
    pub fn named(&self) -> Option<&Path> {
        self.pool.as_deref().or(self.block.as_deref())
    }

    /// The size in bytes that was asked for.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// A pool that is made on demand has room for so many files in its table.
    pub fn has_files(&self, files: usize) {
        self.files.set(files);
    }

    /// True if a pool that is named and not there is to be made.
    pub fn may_make(&self) -> bool {
        self.emulated || self.size.is_some() || self.block.is_some() || !self.keepers.is_empty()
    }

    /// True if a log on a block device was asked for by name.
    pub fn is_block(&self) -> bool {
        self.block.is_some()
    }

    /// True if keepers are to keep it.
    pub fn has_keepers(&self) -> bool {
        !self.keepers.is_empty()
    }

    /// Where the second copy of a log on a block device is to be.
    pub fn mirror(&self) -> Option<&Path> {
        self.mirror.as_deref()
    }

    /// Where the area behind a new pool is to be.
    pub fn spill(&self) -> Option<&Path> {
        self.spill.spill.as_deref()
    }

    /// Makes a pool here, of the kind that was asked for.
    ///
    /// # Errors
    /// [`PoolError`]; [`KeptError`].
    pub fn make(&self, at: &Path) -> Result<()> {
        if self.keepers.is_empty() {
            return Ok(self.make_here(at)?);
        }
        let usual = fit::with_room_for(self.files.get(), DEFAULT_SIZE);
        self.keepers.make(at, self.size.unwrap_or(usual))
    }

    /// The same of one without keepers.
    fn make_here(&self, at: &Path) -> Result<(), PoolError> {
        if self.block.is_some() {
            return make_block(at, self.block_size(at), false, self.mirror.as_deref());
        }
        let usual = fit::with_room_for(self.files.get(), DEFAULT_SIZE);
        let size = self.size.unwrap_or_else(|| fit::whole(at, usual));
        pool::create_with_area(at, size, self.emulated, false, self.spill.plan(size).as_ref())
    }

    /// That of a log on a block device. `None`: as always.
    fn block_size(&self, at: &Path) -> Option<u64> {
        let usual = fit::with_room_for(self.files.get(), DEFAULT_BLOCK_SIZE);
        self.size.or_else(|| (usual > DEFAULT_BLOCK_SIZE).then(|| fit::block(at, usual)))
    }

    /// What was named as a log on a block device must be one: a device that holds something else is never taken.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn check(&self, at: &Path) -> Result<(), KeptError> {
        self.keepers.are_of(at)?;
        self.spill.check(at)?;
        match &self.block {
            Some(named) if !pool::block::is_journal(at)? => Err(PoolError::NotALog(named.clone()).into()),
            _ => Ok(self.mirror.as_deref().map_or(Ok(()), |mirror| check_mirror(at, mirror))?),
        }
    }
}

/// Makes a log on a block device, and says what that takes.
///
/// # Errors
/// [`PoolError`].
pub fn make_block(at: &Path, size: Option<u64>, force: bool, mirror: Option<&Path>) -> Result<(), PoolError> {
    let memory = Path::new(pool::MEMORY);
    if let Some(mirror) = mirror.filter(|mirror| !pool::block::is_device(mirror) && mirror.exists()) {
        // Before anything is made: it may be the copy that is left of a log.
        return Err(if pool::block::is_journal(mirror)? {
            let why = "it is a log, or a copy of one: start it with --pool and its path".into();
            PoolError::Mirror { path: mirror.into(), why }
        } else {
            PoolError::Mirror { path: mirror.into(), why: "it already exists, and is not a log".into() }
        });
    }
    let size = size.unwrap_or_else(|| {
        if pool::block::is_device(at) { DEFAULT_BLOCK_SIZE } else { fit::block(at, DEFAULT_BLOCK_SIZE) }
    });
    pool::block::create(at, size, force, memory)?;
    let Some(mirror) = mirror else { return Ok(()) };
    pool::block::join_mirror(at, mirror, force, memory).inspect_err(|_| {
        if !pool::block::is_device(at) {
            // Nothing is in it yet; if it cannot be removed it is found, and says what it is.
            let _ = std::fs::remove_file(at);
        }
    })
}

/// A path without links, if it leads anywhere.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

/// A log that is there must be mirrored where it was said to be.
fn check_mirror(at: &Path, mirror: &Path) -> Result<(), PoolError> {
    let there = pool::block::mirror_of(at)?;
    let why = match &there {
        Some(there) if real(there) == real(mirror) => return Ok(()),
        Some(there) => format!("it is mirrored on {}, not on {}", there.display(), mirror.display()),
        None => "it has none: stop all processes that use it, then `seawall mirror` makes one".into(),
    };
    Err(PoolError::Mirror { path: at.into(), why })
}

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
    let Some(size) = wanted.size else { return Ok(()) };
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
        is_served(path)
            || crate::commands::inspect::look(path)
                .map_or(true, |found| found.live > 0 || !found.files.is_empty())
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
    match wanted.keepers.is_empty() {
        true => made(path, wanted, || wanted.make_here(path)),
        false => wanted.make(path),
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

/// The pool's medium, probed, and why we say so. Needs no lock.
///
/// # Errors
/// If the file cannot be opened or mapped.
pub fn medium(path: &Path) -> Result<(Medium, String)> {
    if let Some(because) = kept::describe(path)? {
        return Ok((Medium::Replicated, because));
    }
    if pool::block::is_journal(path)? {
        return Ok((Medium::Block, pool::block::describe(path)?));
    }
    let open = std::fs::OpenOptions::new().read(true).write(true).open(path);
    let file = open.with_context(|| format!("cannot open {}", path.display()))?;
    let probed = probe(&file).with_context(|| path.display().to_string())?;
    Ok((probed.medium, probed.because))
}

/// The size of a pool, for people.
///
/// # Errors
/// If it cannot be read.
pub fn how_large(path: &Path) -> Result<String> {
    if let Some(image) = kept::size(path)? {
        return Ok(format!("{} in memory", size::human(image)));
    }
    match pool::block::sizes(path)? {
        Some(sizes) => {
            let (image, journal) = (size::human(sizes.image), size::human(sizes.journal));
            Ok(format!("{image} in memory, {journal} on the device"))
        }
        None => Ok(size::human(std::fs::metadata(path).with_context(|| path.display().to_string())?.len())),
    }
}
