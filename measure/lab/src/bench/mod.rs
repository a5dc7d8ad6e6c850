//! `bench`: every figure as a ratio against named baselines, all sides interleaved in one run.
//!
//! Output: `bench.json` (its keys: [`keys`], and docs/measure/BENCHMARKS.md) and tables. Figures are medians over rounds, with
//! `_min` and `_max` beside them. Nothing is asserted about speed here: it is printed.

mod atomic;
mod block;
mod block_databases;
mod block_sustained;
mod cache;
mod capture;
mod databases;
mod definitions;
mod disk;
mod fields;
mod first_write;
mod frozen;
mod keys;
mod late;
mod mariadb;
mod mariadb_atomic;
mod measure;
mod mount;
mod names;
mod page;
mod placed;
mod replicated;
mod runs;
mod scope;
mod slow_disk;
pub mod snap;
mod spill;
mod start;
mod stores;
mod sustained;
mod twin;
mod virtual_disk;
mod write;

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::{BenchOptions, Section};
use crate::lab::{Lab, POOL_BYTES};
use crate::machine::Machine;
use crate::pool::Pool;
use crate::progress::Progress;
use fields::Fields;
pub use measure::word;
pub use page::write as write_page;
use scope::{Scope, SectionResult};

/// Everything measured, as written to `bench.json`.
#[derive(Serialize)]
struct Results {
    /// The pool's medium, as `seawall status` names it: it belongs to every `seawall_*` figure.
    medium: String,
    machine: Machine,
    /// Size of the pool by section.
    pool_mb: Fields,
    quick: bool,
    /// How often each section's figures were measured.
    rounds: Fields,
    /// Rows by section; one that was not measured has none.
    #[serde(flatten)]
    sections: Fields<Vec<Fields>>,
}

/// What the bench knows of a section before it runs it.
struct Part {
    section: Section,
    /// Its name in the file.
    key: &'static str,
    /// How often each figure is measured unless `--rounds` or `--quick` says otherwise: databases differ more
    /// from run to run than single writes do.
    rounds: usize,
    /// Size of its pool unless `--pool-size` says otherwise.
    pool: u64,
    /// Finds what it runs: what is missing is named before anything is measured.
    find: fn() -> Result<()>,
    /// How many steps of progress it takes.
    steps: fn(Scope) -> usize,
    /// How many bytes it needs on the disk.
    space: fn(Scope) -> u64,
    run: fn(&mut Lab, Scope) -> Result<SectionResult>,
}

/// A database's pool: the redo of a run stays in it, as it stays in the page cache on the unsafe side. How small
/// a log is enough is the question of the lab's case `tail`.
const DATABASE_POOL_BYTES: u64 = 1 << 30;
/// For a database whose data files are in the log too: what its checkpoints write in a run stays in it likewise.
const ATOMIC_POOL_BYTES: u64 = 4 << 30;

/// All sections, in the order they are measured.
const PARTS: [Part; 26] = [
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
        section: Section::Postgres,
        key: "postgres",
        rounds: 8,
        pool: DATABASE_POOL_BYTES,
        find: databases::find_postgres,
        steps: databases::postgres_steps,
        space: databases::postgres_space,
        run: |lab, scope| databases::postgres(lab, scope),
    },
    Part {
        section: Section::PostgresAtomic,
        key: "postgres_atomic",
        rounds: 3,
        pool: ATOMIC_POOL_BYTES,
        find: databases::find_postgres,
        steps: atomic::steps,
        space: |_| atomic::SPACE,
        run: |lab, scope| atomic::run(lab, scope),
    },
    Part {
        section: Section::Sqlite,
        key: "sqlite",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: || Ok(()),
        steps: databases::sqlite_steps,
        space: |_| 0,
        run: |lab, scope| databases::sqlite(lab, scope),
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
        section: Section::Names,
        key: "names",
        rounds: 5,
        pool: POOL_BYTES,
        find: names::find_programs,
        steps: names::steps,
        space: |_| names::SPACE,
        run: |lab, scope| names::run(lab, scope),
    },
    Part {
        section: Section::Definitions,
        key: "definitions",
        rounds: 3,
        pool: DATABASE_POOL_BYTES,
        find: definitions::find_programs,
        steps: definitions::steps,
        space: |_| definitions::SPACE,
        run: |lab, scope| definitions::run(lab, scope),
    },
    Part {
        section: Section::Mariadb,
        key: "mariadb",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: mariadb::find_programs,
        steps: mariadb::steps,
        space: |_| mariadb::SPACE,
        run: |lab, scope| mariadb::measure(lab, scope),
    },
    Part {
        section: Section::MariadbAtomic,
        key: "mariadb_atomic",
        rounds: 3,
        pool: DATABASE_POOL_BYTES,
        find: mariadb::find_programs,
        steps: mariadb_atomic::steps,
        space: |_| mariadb_atomic::SPACE,
        run: |lab, scope| mariadb_atomic::run(lab, scope),
    },
    Part {
        section: Section::Redis,
        key: "redis",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: stores::find_redis,
        steps: stores::redis_steps,
        space: |_| 0,
        run: |lab, scope| stores::redis(lab, scope),
    },
    Part {
        section: Section::Rocksdb,
        key: "rocksdb",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: stores::find_rocksdb,
        steps: stores::rocksdb_steps,
        space: |_| stores::SPACE,
        run: |lab, scope| stores::rocksdb(lab, scope),
    },
    Part {
        section: Section::Lmdb,
        key: "lmdb",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: || Ok(()),
        steps: stores::lmdb_steps,
        space: |_| 0,
        run: |lab, scope| stores::lmdb(lab, scope),
    },
    Part {
        section: Section::Mount,
        key: "mount",
        rounds: 3,
        pool: POOL_BYTES,
        find: mount::find_programs,
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
        run: virtual_disk::run,
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
        section: Section::BlockDatabases,
        key: "block_databases",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: block_databases::find_programs,
        steps: block_databases::steps,
        space: |_| block_databases::SPACE,
        run: |lab, scope| block_databases::run(lab, scope),
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
        find: replicated::find_programs,
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
        section: Section::Capture,
        key: "capture",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: databases::find_postgres,
        steps: capture::steps,
        space: |_| capture::SPACE,
        run: |lab, scope| capture::run(lab, scope),
    },
    Part {
        section: Section::Twin,
        key: "twin",
        rounds: 5,
        pool: DATABASE_POOL_BYTES,
        find: stores::find_redis,
        steps: twin::rate_steps,
        space: |_| 0,
        run: |lab, scope| twin::rate(lab, scope),
    },
    Part {
        section: Section::TwinRestart,
        key: "twin_restart",
        rounds: 3,
        pool: POOL_BYTES,
        find: stores::find_redis,
        steps: twin::restart_steps,
        space: twin::restart_space,
        run: |lab, scope| twin::restart(lab, scope),
    },
];

impl Part {
    /// True if the log is elsewhere, whatever medium the lab's own pool has; its table says so.
    fn has_a_log_of_its_own(&self) -> bool {
        matches!(
            self.section,
            Section::Block
                | Section::BlockDatabases
                | Section::BlockSustained
                | Section::Frozen
                | Section::Replicated
        )
    }

    fn measure(&self, lab: &mut Lab, scope: Scope) -> Result<SectionResult> {
        if matches!(self.section, Section::Block | Section::BlockDatabases | Section::Frozen) {
            return lab.on_block(scope.pool, |lab| (self.run)(lab, scope));
        }
        if self.section != Section::Replicated && lab.pool.size() != scope.pool {
            lab.pool = Pool::create(&lab.tools, &lab.identity, scope.pool, self.key)?;
        }
        (self.run)(lab, scope)
    }
}

/// Runs the chosen sections.
pub fn run(options: &BenchOptions) -> Result<()> {
    let chosen = |part: &Part| options.only.is_empty() || options.only.contains(&part.section);
    let scope = |part: &Part| Scope {
        quick: options.quick,
        rounds: options.rounds.unwrap_or(if options.quick { 2 } else { part.rounds }),
        pool: options.common.pool_size.unwrap_or(part.pool),
    };
    let parts = || PARTS.iter().filter(|part| chosen(part));
    parts().try_for_each(|part| (part.find)())?;
    let steps = parts().map(|part| (part.steps)(scope(part))).sum();
    let space = parts().map(|part| (part.space)(scope(part))).sum();
    let mut lab = Lab::set_up(&options.common, Progress::new(steps), space)?;
    let mut sections = Fields::default();
    let mut tables = String::new();
    for part in &PARTS {
        let (rows, table) =
            if chosen(part) { part.measure(&mut lab, scope(part))? } else { Default::default() };
        sections = sections.with(part.key, rows);
        if !table.is_empty() {
            tables += &format!("\n{table}");
        }
    }
    lab.progress.finish();
    let results = Results {
        medium: lab.medium().to_owned(),
        machine: lab.machine.clone(),
        pool_mb: parts().fold(Fields::default(), |pools, part| pools.with(part.key, scope(part).pool >> 20)),
        quick: options.quick,
        rounds: parts().fold(Fields::default(), |rounds, part| rounds.with(part.key, scope(part).rounds)),
        sections,
    };
    drop(lab);
    out!("{tables}");
    outln!();
    if !parts().all(Part::has_a_log_of_its_own) {
        outln!("  medium of the log: {}", results.medium);
    }
    outln!("  data on:           {}", results.machine.filesystem);
    outln!("  idle processors:   {}", results.machine.idle);
    let path = options.common.out.join("bench.json");
    fs::write(&path, serde_json::to_vec_pretty(&results)?)
        .with_context(|| format!("write {}", path.display()))?;
    outln!("\nAll figures: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_keys_on_the_page() {
        let parts: Vec<_> = PARTS.iter().map(|part| part.key).collect();
        let page: Vec<_> = keys::SECTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(parts, page);
    }
}
