//! The options of a command that needs a pool.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::Result;
use seawall_core::pool::{self, PoolError};
use seawall_core::spill::Plan;
use seawall_daemon::kept::{self, KeptError};

use super::fit;
use super::keepers::Keepers;
use super::on_device::{DEFAULT_BLOCK_SIZE, check_mirror, make_block, real};
use crate::size;

/// Size of a pool that is made on demand.
const DEFAULT_SIZE: u64 = 256 << 20;
/// An area is that many times as large as its pool, unless the user chose a size.
const SPILL_TIMES: u64 = 16;

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

impl Spill {
    /// The area of a pool of so many bytes.
    pub fn plan(&self, pool: u64) -> Option<Plan> {
        let bytes = self.spill_size.unwrap_or(pool.saturating_mul(SPILL_TIMES));
        Some(Plan { path: self.spill.clone()?, bytes })
    }

    /// A pool that is there must have the area that was asked for.
    pub(super) fn check(&self, at: &Path) -> Result<(), KeptError> {
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
    pub(super) pool: Option<PathBuf>,
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
    pub(super) spill: Spill,
    #[command(flatten)]
    pub(super) keepers: Keepers,
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
    pub(super) fn make_here(&self, at: &Path) -> Result<(), PoolError> {
        if self.block.is_some() {
            return make_block(at, self.block_size(at), false, self.mirror.as_deref());
        }
        let usual = fit::with_room_for(self.files.get(), DEFAULT_SIZE);
        let size = self.size.unwrap_or_else(|| fit::whole(at, usual));
        pool::create_with_area(at, size, self.emulated, false, self.spill.plan(size).as_ref())
    }

    /// The size of a log on a block device. `None`: as always.
    pub(super) fn block_size(&self, at: &Path) -> Option<u64> {
        let usual = fit::with_room_for(self.files.get(), DEFAULT_BLOCK_SIZE);
        self.size.or_else(|| (usual > DEFAULT_BLOCK_SIZE).then(|| fit::block(at, usual)))
    }

    /// The path that --block names must be a log: a device that holds something else is never taken.
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
