//! The sections of the bench.

use anyhow::Result;

use super::scope::{Scope, SectionResult};
use super::{
    block, block_sustained, cache, first_write, frozen, mount, reopen, replicated, spill, start, sustained,
    twin, virtual_disk, write,
};
use crate::cli::Section;
use crate::lab::{Lab, POOL_BYTES};
use crate::pool::Pool;

/// What the bench knows of a section before it runs it.
pub struct Part {
    pub section: Section,
    /// Its name in the file.
    pub key: &'static str,
    /// How often each figure is measured unless `--rounds` or `--quick` says otherwise: databases differ more
    /// from run to run than single writes do.
    pub rounds: usize,
    /// Size of its pool unless `--pool-size` says otherwise.
    pub pool: u64,
    /// Finds what it runs: what is missing is named before anything is measured.
    pub find: fn() -> Result<()>,
    /// How many steps of progress it takes.
    pub steps: fn(Scope) -> usize,
    /// How many bytes it needs on the disk.
    pub space: fn(Scope) -> u64,
    pub run: fn(&mut Lab, Scope) -> Result<SectionResult>,
}

/// A database's pool: the redo of a run stays in it, as it stays in the page cache on the unsafe side. How small
/// a log is enough is the question of the lab's case `tail`.
const DATABASE_POOL_BYTES: u64 = 1 << 30;

/// All sections, in the order they are measured.
pub const PARTS: [Part; 15] = [
    Part {
        section: Section::Write,
        key: "write_fdatasync",
        rounds: 3,
        pool: write::POOL,
        find: write::find_programs,
        steps: write::steps,
        space: |_| write::space(),
        run: |lab, scope| write::run(lab, scope),
    },
    Part {
        section: Section::Sustained,
        key: "sustained",
        rounds: 3,
        pool: POOL_BYTES,
        find: write::find_programs,
        steps: sustained::steps,
        space: sustained::space,
        run: |lab, scope| sustained::run(lab, scope),
    },
    Part {
        section: Section::FirstWrite,
        key: "first_write",
        rounds: 5,
        pool: POOL_BYTES,
        find: || Ok(()),
        steps: first_write::steps,
        space: |_| first_write::SPACE,
        run: |lab, scope| first_write::run(lab, scope),
    },
    Part {
        section: Section::Mount,
        key: "mount",
        rounds: 3,
        pool: POOL_BYTES,
        find: || Ok(()),
        steps: mount::steps,
        space: |_| mount::SPACE,
        run: |lab, scope| mount::run(lab, scope),
    },
    Part {
        section: Section::Disk,
        key: "disk",
        rounds: 3,
        pool: DATABASE_POOL_BYTES,
        find: virtual_disk::find_programs,
        steps: virtual_disk::steps,
        space: |_| virtual_disk::SPACE,
        run: |lab, scope| virtual_disk::run(lab, scope),
    },
    Part {
        section: Section::Block,
        key: "block",
        rounds: 3,
        pool: block::POOL,
        find: || Ok(()),
        steps: block::steps,
        space: block::space,
        run: |lab, scope| block::run(lab, scope),
    },
    Part {
        section: Section::BlockSustained,
        key: "block_sustained",
        rounds: 3,
        pool: block_sustained::POOL,
        find: || Ok(()),
        steps: block_sustained::steps,
        space: block_sustained::space,
        run: |lab, scope| block_sustained::run(lab, scope),
    },
    Part {
        section: Section::Replicated,
        key: "replicated",
        rounds: 5,
        pool: replicated::POOL,
        find: || Ok(()),
        steps: replicated::steps,
        space: |_| replicated::SPACE,
        run: replicated::run,
    },
    Part {
        section: Section::Frozen,
        key: "frozen",
        rounds: 5,
        pool: frozen::POOL,
        find: || Ok(()),
        steps: frozen::steps,
        space: frozen::space,
        run: |lab, scope| frozen::run(lab, scope),
    },
    Part {
        section: Section::Spill,
        key: "spill",
        rounds: 5,
        pool: spill::POOL,
        find: || Ok(()),
        steps: spill::steps,
        space: spill::space,
        run: |lab, scope| spill::run(lab, scope),
    },
    Part {
        section: Section::Start,
        key: "start",
        rounds: 5,
        pool: start::POOL,
        find: || Ok(()),
        steps: start::steps,
        space: start::space,
        run: |lab, scope| start::run(lab, scope),
    },
    Part {
        section: Section::Reopen,
        key: "reopen",
        rounds: 5,
        pool: POOL_BYTES,
        find: || Ok(()),
        steps: reopen::steps,
        space: |_| reopen::SPACE,
        run: |lab, scope| reopen::run(lab, scope),
    },
    Part {
        section: Section::Cache,
        key: "cache",
        rounds: 5,
        pool: POOL_BYTES,
        find: || Ok(()),
        steps: cache::steps,
        space: |_| cache::SPACE,
        run: |lab, scope| cache::run(lab, scope),
    },
    Part {
        section: Section::Twin,
        key: "twin",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: twin::find_programs,
        steps: twin::rate_steps,
        space: |_| 0,
        run: |lab, scope| twin::rate(lab, scope),
    },
    Part {
        section: Section::TwinRestart,
        key: "twin_restart",
        rounds: 3,
        pool: POOL_BYTES,
        find: twin::find_programs,
        steps: twin::restart_steps,
        space: twin::restart_space,
        run: |lab, scope| twin::restart(lab, scope),
    },
];

impl Part {
    /// True if the log is elsewhere, whatever medium the lab's own pool has; its table says so.
    pub fn has_a_log_of_its_own(&self) -> bool {
        matches!(
            self.section,
            Section::Block | Section::BlockSustained | Section::Frozen | Section::Replicated
        )
    }

    /// Measures it on a pool of its size.
    pub fn measure(&self, lab: &mut Lab, scope: Scope) -> Result<SectionResult> {
        if matches!(self.section, Section::Block | Section::Frozen) {
            return lab.on_block(scope.pool, |lab| (self.run)(lab, scope));
        }
        if self.section != Section::Replicated && lab.pool.size() != scope.pool {
            lab.pool = Pool::create(&lab.tools, &lab.identity, scope.pool, self.key)?;
        }
        (self.run)(lab, scope)
    }
}
